import Foundation
import Latchkey
import LatchkeyFolder
import LatchkeyStorage
import Testing

/// What the command says when something is wrong: the exit code, which case, and nothing changed.
@Suite struct RefusalTests {
  struct Case: CustomStringConvertible {
    let stage: World.Stage
    /// Brings about what is wrong.
    let setting: String
    /// Without `latchkey`.
    let line: String
    let exit: Int32
    let code: String

    init(_ stage: World.Stage, _ setting: String, _ line: String, _ exit: Int32, _ code: String) {
      (self.stage, self.setting, self.line, self.exit, self.code) = (stage, setting, line, exit, code)
    }

    var description: String { "\(setting.isEmpty ? "" : "\(setting); ")latchkey \(line)" }
  }

  static let databases = [
    Case(.initialised, "echo hello hello hello hello > x.db", "attach x.db --home ana", 2, "not-a-database"),
    Case(.initialised, "head -c 4096 /dev/urandom > x.db", "attach x.db --home ana", 2, "not-a-database"),
    Case(
      .initialised, "printf 'garbage%.0s' $(seq 400) | dd of=ana.db bs=1 seek=100 conv=notrunc",
      "attach ana.db --home ana", 2,
      "corrupt"),
    Case(
      .initialised, "dd if=/dev/urandom of=ana.db bs=4096 seek=1 count=1 conv=notrunc", "attach ana.db --home ana", 2,
      "corrupt"),
    Case(
      .initialised, "dd if=/dev/urandom of=ana.db bs=4096 seek=1 count=1 conv=notrunc", "attach ana.db --home ana -n",
      2, "corrupt"),
    Case(.initialised, "", "attach missing.db --home ana", 2, "missing-file"),
    Case(.initialised, "mkdir x.db", "attach x.db --home ana", 2, "not-a-database"),
    Case(.initialised, ": > x.db", "attach x.db --home ana", 2, "no-table-can-sync"),
    Case(.initialised, "sqlite3 x.db 'CREATE TABLE t(a)'", "attach x.db --home ana", 2, "no-table-can-sync"),
    Case(.initialised, "sqlite3 x.db 'CREATE TABLE t(a)'", "attach x.db --home ana -n", 2, "no-table-can-sync"),
    Case(
      .initialised, "sqlite3 ana.db 'CREATE TABLE t(a)'", "attach ana.db --home ana --tables t", 64, "table-refused"),
    Case(.initialised, "", "attach ana.db --home ana --tables accounts,nope", 64, "no-such-table"),
    Case(.initialised, "", "attach ana.db --home ana --tables nope -n", 64, "no-such-table"),
    Case(.attached, "", "explain ana.db nope 1 --home ana", 64, "no-such-table"),
    Case(.attached, "", "explain ana.db accounts 99 --home ana", 64, "no-such-row"),
    Case(.attached, "", "export ana.db --table nope --home ana", 64, "no-such-table"),
    Case(.attached, "", "export ana.db --format csv --home ana", 64, "missing-option"),
    Case(.attached, "", "attach ana.db --zone Other --home ana", 64, "attached-elsewhere"),
    Case(.initialised, "", "sync ana.db --home ana", 10, "not-attached"),
    Case(.initialised, "", "detach ana.db --home ana", 10, "not-attached"),
    Case(.initialised, "", "status ana.db --home ana", 10, "not-attached"),
    Case(.initialised, "", "counts ana.db --home ana", 10, "not-attached"),
    Case(.initialised, "", "export ana.db --home ana", 10, "not-attached"),
    Case(.initialised, "", "share ana.db --household Smith --home ana", 10, "not-attached"),
    Case(.initialised, "", "sync missing.db --home ana", 2, "missing-file"),
    Case(.initialised, "", "detach missing.db --home ana", 2, "missing-file"),
    Case(.initialised, "", "counts missing.db --home ana", 2, "missing-file"),
    Case(.attached, "truncate -s 6000 ana.db", "sync ana.db --home ana", 2, "corrupt"),
    Case(.attached, "truncate -s 6000 ana.db", "counts ana.db --home ana", 2, "corrupt"),
    Case(.attached, "echo hello hello hello hello > ana.db", "sync ana.db --home ana", 2, "not-a-database"),
    Case(.attached, "echo '{}' > r.json", "counts ana.db --home ana --compare r.json", 64, "bad-report"),
    Case(.attached, "", "counts ana.db --home ana --compare r.json", 1, "file-unreadable"),
    Case(
      .attached, "echo '{\"data\":{\"zones\":[{\"name\":\"Other\",\"tables\":[]}]}}' > r.json",
      "counts ana.db --home ana --compare r.json", 64, "other-zone"),
  ]

  static let stores = [
    Case(.attached, "mv store away", "sync ana.db --home ana", 11, "store-missing"),
    Case(.attached, "mv store away", "sync --home ana", 11, "store-missing"),
    Case(.attached, "rm -r store/*", "sync ana.db --home ana", 11, "store-missing"),
    Case(.attached, "rm -r store; mkdir store", "sync ana.db --home ana", 11, "store-missing"),
    Case(
      .attached, "rm -r store; latchkey init --home eve --name Eve --store store", "sync ana.db --home ana", 11,
      "other-store"),
    Case(.attached, "rm -r store; echo x > store", "sync ana.db --home ana", 11, "store-config"),
    Case(.attached, "mv store away", "share ana.db --household Smith --home ana", 11, "store-missing"),
    Case(.attached, "mv store away", "device add --home ana", 11, "store-missing"),
    Case(.shared, "mv store away", "invite --home ana --out i.txt", 11, "store-missing"),
    Case(
      .invited, "mv store away", "join --home ben --db ben.db --name Ben --yes --invite-file ben.invite", 11,
      "store-missing"),
    Case(
      .invited, "rm -r store; mkdir store", "join --home ben --db ben.db --name Ben --yes --invite-file ben.invite", 11,
      "store-missing"),
    Case(.empty, "", "init --home ana --name Ana --store no/such/folder", 11, "store-missing"),
    Case(.empty, "echo x > store", "init --home ana --name Ana --store ./store", 11, "store-config"),
    Case(.empty, "", "init --home ana --name Ana --store s3://bucket/prefix?key=x", 64, "bad-store-url"),
    Case(.empty, "", "init --home ana --name Ana --store s3://b/p?endpoint=http://store.example", 11, "store-config"),
    Case(.empty, "", "init --home ana --name Ana --store gopher+https://host/path", 64, "bad-store-url"),
    Case(.empty, "", "init --home ana --name Ana --store webdav+http://nas.example/path", 11, "store-config"),
    Case(.empty, "", "init --home ana --name Ana --store folder://host/path", 64, "bad-store-url"),
    Case(.attached, "", "share ana.db --household Smith --store ftp://x --home ana", 64, "bad-store-url"),
    Case(.empty, "", "init --home ana --name \"$(printf 'a\\033b')\" --store store", 64, "bad-name"),
  ]

  static let keys = [
    Case(.empty, "", "attach ana.db --home none", 10, "no-identity"),
    Case(.empty, "", "sync --home none", 10, "no-identity"),
    Case(.empty, "", "status --home none", 10, "no-identity"),
    Case(.empty, "", "members list --home none", 10, "no-identity"),
    Case(.empty, "", "key show --home none", 10, "no-identity"),
    Case(.empty, "", "device list --home none", 10, "no-identity"),
    Case(.empty, "", "device add --home none", 10, "no-identity"),
    Case(.empty, "", "invite --home none", 10, "no-identity"),
    Case(.attached, "", "sync ana.db --home none", 10, "no-identity"),
    Case(
      .attached, "latchkey init --home eve --name Eve --store evestore", "sync ana.db --home eve", 13, "not-a-member"),
    Case(
      .attached, "latchkey init --home eve --name Eve --store evestore", "counts ana.db --home eve", 13, "not-a-member"),
    Case(
      .attached, "latchkey init --home eve --name Eve --store evestore", "attach ana.db --home eve", 64,
      "attached-elsewhere"),
    Case(.initialised, "", "init --home ana --name Ana --store store", 64, "identity-exists"),
    Case(.initialised, "chmod 755 ana", "sync --home ana", 14, "loose-permissions"),
    Case(.initialised, "chmod 644 ana/keyring", "status --home ana", 14, "loose-permissions"),
    Case(.initialised, "printf x >> ana/keyring", "status --home ana", 14, "damaged-keyring"),
    Case(.initialised, "", "members list --home ana", 64, "no-shared-household"),
    Case(.initialised, "", "invite --home ana", 64, "no-shared-household"),
    Case(.shared, "", "invite --household Jones --home ana", 64, "no-such-household"),
    Case(.shared, "", "key show --household Jones --home ana", 64, "no-such-household"),
    Case(.shared, "", "invite --expires 5s --home ana", 64, "bad-expiry"),
    Case(.shared, ": > i.txt", "invite --out i.txt --home ana", 1, "file-not-written"),
    Case(.shared, "", "invite --out no/such/i.txt --home ana", 1, "file-not-written"),
    Case(.shared, "", "invite -n --home ana", 64, "no-dry-run"),
    Case(.joined, "", "invite --home ben", 13, "not-allowed"),
    Case(.shared, "", "share ana.db --household Smith --home ana", 64, "already-shared"),
    Case(.shared, "", "share ana.db --household Smith --home ana -n", 64, "already-shared"),
  ]

  /// Eve has an identity and a store of her own, and has put her card into Ana's.
  private static let met =
    "mkdir eves; latchkey init --home eve --name Eve --store eves; latchkey card publish --home eve --store store "
    + "--public-name Eve; latchkey card list --home ana --json | grep -o '\"id\":\"[0-9a-f]*' | cut -c 7- | head -n 1 > id"

  static let cards = [
    Case(.empty, "", "card publish --home none", 10, "no-identity"),
    Case(.empty, "", "card list --home none", 10, "no-identity"),
    Case(.empty, "", "card pin ffffff --name X --home none", 10, "no-identity"),
    Case(.empty, "", "inbox --home none", 10, "no-identity"),
    Case(.empty, "", "inbox accept ffffff --db x.db --home none", 10, "no-identity"),
    Case(.empty, "", "inbox decline ffffff --home none", 10, "no-identity"),
    Case(.shared, "", "card publish --store no/such --home ana", 11, "store-missing"),
    Case(.shared, "", "card publish --public-name '' --home ana", 64, "bad-value"),
    Case(.shared, "", "card publish -n --home ana", 64, "no-dry-run"),
    Case(.shared, "", "card list --store no/such --home ana", 11, "store-missing"),
    Case(.shared, "", "card pin ffffff --name X --home ana", 64, "no-such-card"),
    Case(.shared, "", "card pin ffffff --home ana", 64, "missing-option"),
    Case(.shared, "", "card pin --name X --home ana", 64, "missing-argument"),
    Case(.shared, "", "invite --to Nobody --home ana", 64, "no-such-card"),
    Case(.shared, "", "invite --to Nobody --out i.txt --home ana", 64, "unexpected-option"),
    Case(.shared, "", "invite --to Nobody --qr --home ana", 64, "unexpected-option"),
    Case(.shared, "", "inbox accept ffffff --db x.db --home ana", 64, "no-such-invite"),
    Case(.shared, "", "inbox decline ffffff --home ana", 64, "no-such-invite"),
    Case(.shared, "", "inbox accept --db x.db --home ana", 64, "missing-argument"),
    Case(.shared, "", "inbox decline ffffff --db x.db --home ana", 64, "unexpected-option"),
    Case(.shared, "", "inbox list ffffff --home ana", 64, "unexpected-argument"),
    Case(.shared, "", "inbox burn ffffff --home ana", 64, "bad-value"),
    Case(.shared, met, "invite --to $(cat id) --home ana", 15, "card-unverified"),
    Case(.shared, met, "invite --to Eve --home ana", 64, "no-such-card"),
    Case(.shared, met, "card pin $(cat id) --name Eve --words 'one two' --home ana", 14, "words-incomplete"),
    Case(
      .shared, "\(met); latchkey card publish --home ana | sed -n 's/^ *words *//p' > words",
      "card pin $(cat id) --name Eve --words \"$(cat words)\" --home ana", 14, "words-differ"),
    Case(.shared, "\(met); mv store away", "invite --to $(cat id) --home ana", 11, "store-missing"),
  ]

  private static let join = "join --home ben --db ben.db --name Ben --yes --invite-file"

  static let links = [
    Case(.invited, "", "join --home ben --db ben.db --name Ben --yes", 14, "secret-missing"),
    Case(.invited, ": > i.txt; chmod 600 i.txt", "\(join) i.txt", 14, "secret-missing"),
    Case(.invited, "", "\(join) i.txt", 1, "file-unreadable"),
    Case(.invited, "chmod 644 ben.invite", "\(join) ben.invite", 14, "file-not-private"),
    Case(.invited, "(umask 077; echo hello > i.txt)", "\(join) i.txt", 14, "not-a-link"),
    Case(.invited, "(umask 077; head -c 60 ben.invite > i.txt)", "\(join) i.txt", 14, "link-damaged"),
    Case(
      .invited, "(umask 077; sed 's/\\(.*\\)./\\1/' ben.invite > i.txt)", "\(join) i.txt", 14, "link-damaged"),
    Case(
      .invited, "(umask 077; sed 's/\\(#....................\\)./\\1_/' ben.invite | tr -- '-' '_' > i.txt)",
      "\(join) i.txt", 14,
      "link-damaged"),
    Case(.joined, "", "join --home eve --db eve.db --name Eve --yes --invite-file ben.invite", 14, "link-used"),
    Case(
      .invited, "latchkey init --home x --name X --store other", "\(join) ben.invite --store other", 14, "link-unknown"),
    Case(.invited, "", "join --home ben --db ben.db --name Ben --invite-file ben.invite", 15, "store-not-agreed"),
    Case(.invited, "", "join --home ben --db ben.db --yes --invite-file ben.invite", 10, "no-identity"),
    Case(.invited, "sqlite3 ben.db 'CREATE TABLE t(a)'", "\(join) ben.invite", 2, "no-table-can-sync"),
    Case(
      .invited,
      "latchkey init --home ben --name Ben --store ben-store; cp ana.db ben.db; latchkey detach ben.db --home ben; "
        + "latchkey attach ben.db --home ben", "\(join) ben.invite", 64, "attached-already"),
    Case(
      .invited, "", "join --home ben --db no/such/ben.db --name Ben --yes --invite-file ben.invite", 64,
      "no-such-folder"),
    Case(.invited, "echo hello > t.db", "\(join) ben.invite --template t.db", 2, "not-a-database"),
    Case(.invited, "", "\(join) ben.invite --zone Nope", 64, "no-such-zone"),
    Case(.invited, "", "\(join) ben.invite --template nope.db", 2, "missing-file"),
    Case(.invited, "", "\(join) ben.invite -n", 64, "no-dry-run"),
  ]

  @Test("a database that cannot be used is refused, and nothing changes", arguments: groups(of: databases))
  func database(_ group: [Case]) throws { try check(group) }

  @Test(
    "a store that is not there, was emptied or is not one stops the work, and nothing changes",
    arguments: groups(of: stores))
  func store(_ group: [Case]) throws { try check(group) }

  @Test(
    "a wrong home, keys that are missing or damaged, or names that are not known change nothing",
    arguments: groups(of: keys))
  func key(_ group: [Case]) throws { try check(group) }

  @Test("a card, an invite to one or one that came, which is wrong, changes nothing", arguments: groups(of: cards))
  func card(_ group: [Case]) throws { try check(group) }

  @Test("an invite that is wrong, altered, cut, used or not private changes nothing", arguments: groups(of: links))
  func link(_ group: [Case]) throws { try check(group) }

  /// Cases of one stage that need nothing set can share a world: nothing changes it.
  private static func groups(of cases: [Case]) -> [[Case]] {
    let plain = Dictionary(grouping: cases.filter(\.setting.isEmpty), by: \.stage)
    return plain.values.sorted { $0[0].stage < $1[0].stage } + cases.filter { !$0.setting.isEmpty }.map { [$0] }
  }

  private func check(_ group: [Case]) throws {
    let world = try World(group[0].stage)
    for refused in group {
      if !refused.setting.isEmpty { try world.shell("(\(refused.setting)) > /dev/null 2>&1") }
      let before = try world.files()
      let (reply, exit) = try world.ask(refused.line)
      #expect(exit == refused.exit, "\(refused): \(reply.code): \(reply.message)")
      #expect(reply.code == refused.code, "\(refused): \(reply.message)")
      #expect(!reply.ok)
      #expect(reply.message.hasSuffix(".") && reply.message.count > 20, "\(reply.message)")
      let after = try world.files()
      #expect(Set(before.keys).symmetricDifference(after.keys).sorted() == [], "\(refused)")
      for (name, bytes) in before { #expect(after[name] == bytes, "\(refused): \(name) changed") }
    }
  }

  @Test("an expired invite is refused, and nothing changes")
  func expired() async throws {
    let world = try World(.shared)
    var stores = StoreRegistry()
    stores.registerFolders()
    // A device whose clock is two hours behind makes an invite for one minute.
    let late = Latchkey.World(
      now: { Latchkey.World.system.now() - 7_200_000 }, random: Latchkey.World.system.random)
    let home = Home(directory: world.folder.url.appendingPathComponent("ana").path, stores: stores, world: late)
    let invite = try await home.invite(household: "Smith", expiresIn: 60_000)
    try Data(invite.link.utf8).write(to: world.folder.url.appendingPathComponent("late.invite"))
    try world.shell("chmod 600 late.invite")
    let before = try world.files()
    let (reply, exit) = try world.ask("\(RefusalTests.join) late.invite")
    #expect(exit == 14)
    #expect(reply.code == "link-expired")
    #expect(try world.files() == before)
  }

  @Test(
    "a file that another program holds is told as busy, and nothing changes",
    arguments: ["sync", "detach", "attach"])
  func busy(verb: String) throws {
    let world = try World(verb == "attach" ? .initialised : .attached)
    let before = try world.files()
    // Holds the file until its input ends.
    try world.shell(
      """
      mkfifo hold
      (sqlite3 ana.db < hold > held 2>&1 &)
      exec 3> hold
      echo "BEGIN EXCLUSIVE; SELECT 'held';" >&3
      until grep -q held held; do sleep 0.05; done
      latchkey \(verb) ana.db --home ana --json --no-input > reply < /dev/null; echo $? > exit
      exec 3>&-
      until sqlite3 ana.db 'BEGIN EXCLUSIVE; ROLLBACK'; do sleep 0.05; done
      """)
    let exit = try world.shell("cat exit").trimmingCharacters(in: .whitespacesAndNewlines)
    let reply = try Reply(Program.Result(output: try world.shell("cat reply"), error: "", exit: 0))
    #expect(exit == "12", "\(reply.message)")
    #expect(reply.code == "database-busy")
    try world.shell("rm -f hold held reply exit")
    #expect(try world.files() == before)
  }
}
