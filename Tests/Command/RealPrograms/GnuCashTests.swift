import Foundation
import Testing

@Suite("Real programs: GnuCash", .enabled(if: RealPrograms.areInstalled))
struct GnuCashTests {
  /// Ana shares a book that GnuCash made; Ben joins with an empty one.
  private func household() throws -> World {
    let world = try World(.initialised)
    try gnucash("make", "ana", in: world)
    try gnucash("empty", "empty", in: world)
    for line in [
      "attach ana.gnucash --home ana --zone Book --recipe gnucash", "sync ana.gnucash --home ana",
      "share ana.gnucash --home ana --household Smith", "invite --home ana --household Smith --out link",
    ] { try world.ok(line) }
    // Without GnuCash's own record of its schema the file would be taken for one of an old version.
    let (reply, exit) = try world.ask("join --home ben --db ben.gnucash --name Ben --yes --invite-file link")
    #expect(exit != 0 && reply.code == "needs-template", "\(reply.message)")
    try world.ok(
      "join --home ben --db ben.gnucash --template empty.gnucash --name Ben --device phone --yes --invite-file link")
    try settle(world)
    return world
  }

  @discardableResult
  private func gnucash(_ verb: String, _ book: String, _ words: String = "", in world: World) throws -> String {
    try world.shell(
      "/usr/bin/python3 '\(RealPrograms.folder)/book.py' \(verb) \"$PWD/\(book).gnucash\" \(words) 2>>gnucash.log")
  }

  private func settle(_ world: World) throws {
    for _ in 0..<2 {
      for name in ["ana", "ben"] { try world.ok("sync \(name).gnucash --home \(name) --until-settled") }
    }
  }

  /// What GnuCash reads in both files, once everything was exchanged.
  private func books(_ world: World, sourceLocation: SourceLocation = #_sourceLocation) throws -> [String] {
    try settle(world)
    let (a, b) = (try gnucash("check", "ana", in: world), try gnucash("check", "ben", in: world))
    #expect(a == b, sourceLocation: sourceLocation)
    for name in ["ana", "ben"] {
      #expect(
        try world.shell("sqlite3 \(name).gnucash 'PRAGMA integrity_check'") == "ok\n", sourceLocation: sourceLocation)
    }
    return a.split(separator: "\n").map(String.init)
  }

  @Test(
    "both sides edit a shared book with GnuCash: each transaction stays balanced, the files are whole, and GnuCash opens both"
  )
  func bothSides() throws {
    let world = try household()
    #expect(
      try books(world) == [
        "December|Bank=-80000 Rent=80000|balanced", "Groceries|Bank=-2500 Food=2500|balanced",
      ])
    try gnucash("add", "ana", "Cinema Fun=1800 Cash=-1800", in: world)
    try gnucash("add", "ben", "Pizza Food=900 Fun=300 Cash=-1200", in: world)
    try gnucash("account", "ana", "Travel", in: world)
    try gnucash("rename", "ben", "December 'Rent of December'", in: world)
    #expect(
      try books(world) == [
        "Cinema|Cash=-1800 Fun=1800|balanced", "Groceries|Bank=-2500 Food=2500|balanced",
        "Pizza|Cash=-1200 Food=900 Fun=300|balanced", "Rent of December|Bank=-80000 Rent=80000|balanced",
      ])
    // One after the other, in what the other made.
    try gnucash("amount", "ben", "Cinema Fun=2000 Cash=-2000", in: world)
    try gnucash("add", "ben", "Train Travel=4500 Bank=-4500", in: world)
    try gnucash("delete", "ana", "Groceries", in: world)
    #expect(
      try books(world) == [
        "Cinema|Cash=-2000 Fun=2000|balanced", "Pizza|Cash=-1200 Food=900 Fun=300|balanced",
        "Rent of December|Bank=-80000 Rent=80000|balanced", "Train|Bank=-4500 Travel=4500|balanced",
      ])
  }

  @Test("started by latchkey run, GnuCash finds what the other side entered")
  func run() throws {
    let world = try household()
    try gnucash("add", "ana", "Cinema Fun=1800 Cash=-1800", in: world)
    try world.ok("sync ana.gnucash --home ana")
    let script = "/usr/bin/python3 \(RealPrograms.folder)/book.py"
    try world.ok("run ben.gnucash --home ben -- \(script) amount $PWD/ben.gnucash Cinema Fun=2100 Cash=-2100")
    #expect(try books(world).contains("Cinema|Cash=-2100 Fun=2100|balanced"))
  }
}
