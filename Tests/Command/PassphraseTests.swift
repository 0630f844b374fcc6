import Foundation
import Testing

/// A passphrase on this device's keys, through the command. Serialised and few: each opening takes 256 MiB and a second.
@Suite("The passphrase of the keys", .serialized)
struct PassphraseTests {
  private func run(_ line: String, _ world: World, file: String? = nil) throws -> (reply: Reply, exit: Int32) {
    let result = try Program.run(
      "latchkey \(line) --home ana --json --no-input", in: world.folder,
      environment: file.map { ["LATCHKEY_PASSPHRASE_FILE": $0] } ?? [:])
    return (try Reply(result), result.exit)
  }

  @Test(
    "it is set, asked for, changed and removed; none, a wrong one and one that others can read have codes of their own")
  func lifeCycle() throws {
    let world = try World(.initialised)
    try world.shell(
      "printf 'correct horse\\n' > old; printf 'battery staple' > new; printf 'something' > wrong; chmod 600 old new wrong"
    )
    let none = try run("key passphrase remove", world)
    #expect(none.exit == 0 && none.reply.data["changed"] as? Bool == false)
    let dry = try run("key passphrase set --new-file old --dry-run", world)
    #expect(dry.exit == 0 && dry.reply.data["passphrase"] as? Bool == false)
    let set = try run("key passphrase set --new-file old", world)
    #expect(
      set.exit == 0 && set.reply.data["passphrase"] as? Bool == true && set.reply.data["changed"] as? Bool == true)

    let missing = try run("key show", world)
    #expect(missing.exit == 14 && missing.reply.code == "passphrase-missing")
    #expect(missing.reply.next.joined().contains("LATCHKEY_PASSPHRASE_FILE"))
    let wrong = try run("sync ana.db", world, file: "wrong")
    #expect(wrong.exit == 14 && wrong.reply.code == "passphrase-wrong")
    #expect(try run("attach ana.db --zone Budget", world, file: "old").exit == 0)
    #expect(try run("sync ana.db", world, file: "old").exit == 0)

    let change = try run("key passphrase set --new-file new", world, file: "old")
    #expect(change.exit == 0, "\(change.reply.message)")
    #expect(try run("key show", world, file: "old").reply.code == "passphrase-wrong")
    try world.shell("chmod 644 new")
    let loose = try run("key show", world, file: "new")
    #expect(
      loose.exit == 14 && loose.reply.code == "passphrase-unavailable" && loose.reply.message.contains("other users"))
    try world.shell("chmod 600 new")
    #expect(try run("key passphrase remove", world, file: "new").reply.data["changed"] as? Bool == true)
    #expect(try run("key show", world).exit == 0)
  }

  @Test("without a passphrase to set, with one too short, or for nobody's keys nothing is changed")
  func refusals() throws {
    let world = try World(.initialised)
    let before = try world.files()
    let missing = try run("key passphrase set < /dev/null", world)
    #expect(missing.exit == 14 && missing.reply.code == "secret-missing")
    let short = try Program.run("printf seven77 | latchkey key passphrase set --home ana --json", in: world.folder)
    #expect(try short.exit == 64 && Reply(short).code == "passphrase-too-short")
    let odd = try run("key passphrase remove --new-file x", world)
    #expect(odd.exit == 64 && odd.reply.code == "unexpected-option")
    let nobody = try Program.run("latchkey key passphrase set --home nobody --json", in: world.folder)
    #expect(try nobody.exit == 10 && Reply(nobody).code == "no-identity")
    #expect(try world.files() == before)
  }

  @Test("at a terminal it is typed twice to set it and once to use it, and never shown")
  func typed() throws {
    let world = try World(.initialised)
    let differing = try Dialogue("latchkey key passphrase set --home ana", in: world.folder)
    try differing.expect("New passphrase (it is not shown): ")
    try differing.type("correct horse\n")
    try differing.expect("The same once more: ")
    try differing.type("correct house\n")
    try differing.expect("The two passphrases differ.")
    #expect(try differing.end() == 14)

    let setting = try Dialogue("latchkey key passphrase set --home ana", in: world.folder)
    for prompt in ["New passphrase (it is not shown): ", "The same once more: "] {
      try setting.expect(prompt)
      try setting.type("correct horse\n")
    }
    try setting.expect("sealed with the passphrase")
    #expect(try setting.end() == 0)

    let using = try Dialogue("latchkey key show --home ana", in: world.folder)
    try using.expect("Passphrase of your keys (it is not shown): ")
    try using.type("correct horse\n")
    try using.expect("Ana")
    #expect(try using.end() == 0)
    for session in [differing, setting, using] { #expect(!session.shown.contains("horse")) }
  }
}
