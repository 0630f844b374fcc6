import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("What an app writes down about its schema")
struct TemplateTests {
  private static let schema = """
    CREATE TABLE versions(name TEXT PRIMARY KEY, version INTEGER);
    CREATE TABLE entry(id INTEGER PRIMARY KEY, x);
    INSERT INTO versions VALUES ('entry', 4);
    """

  /// A device that joins with a file made by the app.
  private func join(_ folder: TemporaryFolder, _ number: UInt64, _ template: String, at now: Int64) throws -> Replica {
    let file = "\(folder.path)/joined-\(number).db"
    try Replica.adoptTemplate(template, to: file, zone: Device.binding(number))
    return try Replica(path: file)
  }

  private func apply(_ log: [IncomingGroup], to replica: Replica, now: Int64) throws {
    try replica.transaction { _ = try replica.apply(log, now: now) { _ in 1 } }
  }

  @Test(
    "where it stays on each device a newcomer needs a file of the app, and keeps what that says",
    arguments: [false, true])
  func versions(isLocal: Bool) throws {
    let rules = isLocal ? Rules(tables: ["versions": TableRules(isLocal: true)]) : .none
    let a = try Device(1, Self.schema, rules: rules)
    try a.app("INSERT INTO entry VALUES (1, 'row')")
    try a.stamp()
    #expect(try a.replica.survey().needsTemplate.contains { $0.hasPrefix("versions") } == isLocal)
    let folder = try TemporaryFolder()
    let template = try folder.file(
      "template.db", Self.schema.replacing("4", with: "3") + "INSERT INTO entry VALUES (7, 'of the template')")
    let joined = try join(folder, 2, template, at: a.now)
    try apply(a.log, to: joined, now: a.now + 10)
    #expect(try joined.database.rows("SELECT x FROM entry").map { show($0[0]) } == ["row"])
    #expect(try joined.database.integer("SELECT version FROM versions") == (isLocal ? 3 : 4))
    let plain = try Device(joining: 3, at: a.now + 10)
    if isLocal {
      #expect(throws: TablesError.self) { try plain.pull(a) }
    } else {
      try plain.pull(a)
      #expect(try plain.row("SELECT version FROM versions") == "4")
    }
  }
}
