import Foundation
import Latchkey
import LatchkeyFolder
import LatchkeyKeys
import LatchkeySQLite
import LatchkeyStorage
import Synchronization
import Testing

/// The system's clock, which the capture triggers read too, moved by what a test says.
final class TestClock: Sendable {
  private let offset = Mutex<Int64>(0)
  var now: Int64 { World.system.now() + offset.withLock { $0 } }
  func advance(_ milliseconds: Int64) { offset.withLock { $0 += milliseconds } }
}

/// A temporary folder with a store in it, and homes beside.
final class Place: Sendable {
  let root: String
  let clock = TestClock()

  init() throws {
    root = NSTemporaryDirectory() + "latchkey-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: root + "/store", withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(atPath: root) }

  var store: String { "folder:\(root)/store" }

  func home(_ name: String) -> Home {
    var stores = StoreRegistry()
    stores.registerFolders()
    let clock = clock
    return Home(
      directory: "\(root)/\(name)", stores: stores, base: root,
      world: World(now: { clock.now }, random: { SystemWorld.random() }))
  }

  func path(_ name: String) -> String { "\(root)/\(name)" }

  func run(_ database: String, _ sql: String) throws {
    let connection = try Connection(
      path(database), mode: FileManager.default.fileExists(atPath: path(database)) ? .readWrite : .create)
    try connection.execute(sql)
  }

  func rows(_ database: String, _ sql: String) throws -> [String] {
    let connection = try Connection(path(database), mode: .readOnly)
    return try connection.rows(sql).map { row in row.map(\.shown).joined(separator: "|") }
  }

  /// Names of the store's objects.
  func objects() -> Set<String> {
    let files = FileManager.default.enumerator(atPath: root + "/store")?.compactMap { $0 as? String } ?? []
    return Set(files.filter { !($0.hasSuffix("/")) && !isDirectory(root + "/store/" + $0) })
  }

  /// Takes objects out of the store, as a store that withholds them does.
  func withhold(_ names: Set<String>) throws {
    for name in names {
      try FileManager.default.moveItem(atPath: "\(root)/store/\(name)", toPath: "\(root)/\(name.hash)")
    }
  }

  func showAgain(_ names: Set<String>) throws {
    for name in names {
      try FileManager.default.moveItem(atPath: "\(root)/\(name.hash)", toPath: "\(root)/store/\(name)")
    }
  }

  private func isDirectory(_ path: String) -> Bool {
    var isDirectory: ObjCBool = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
  }
}

enum SystemWorld {
  static func random() -> any RandomSource & Sendable { World.system.random() }
}

extension SQLiteValue {
  var shown: String {
    switch self {
    case .null: "NULL"
    case .integer(let x): "\(x)"
    case .real(let x): "\(x)"
    case .text(let x): String(decoding: x, as: UTF8.self)
    case .blob(let x): "x'\(x.map { String($0, radix: 16) }.joined())'"
    }
  }
}

let budgetSchema = """
  CREATE TABLE accounts(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
  CREATE TABLE entries(id INTEGER PRIMARY KEY AUTOINCREMENT, account INTEGER NOT NULL REFERENCES accounts(id), cents INTEGER, note TEXT);
  INSERT INTO accounts VALUES (1, 'Joint'), (2, 'Cash');
  INSERT INTO entries(account, cents, note) VALUES (1, -100, 'a'), (2, -200, 'b'), (1, 300, NULL);
  """

let budgetDump = "SELECT a.name, e.cents, e.note FROM entries e JOIN accounts a ON a.id = e.account ORDER BY 1, 2, 3"

/// Ana shares, Ben joins and is admitted.
func household(_ place: Place, _ fault: Fault? = nil) async throws -> (ana: Home, ben: Home) {
  let ana = fault.map { place.home("ana", $0) } ?? place.home("ana")
  let ben = place.home("ben")
  try place.run("a.db", budgetSchema)
  try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
  try await ana.attach(place.path("a.db"), zone: "Budget")
  _ = try await ana.sync(place.path("a.db"))
  let shared = try await ana.share(place.path("a.db"), household: "Smith")
  #expect(shared.isVerified && shared.rows == 5)
  let invite = try await ana.invite(household: "Smith")
  let joined = try await ben.join(
    link: invite.link, options: JoinOptions(database: place.path("b.db"), name: "Ben", device: "phone")
  ) { question in question == .useStore(url: place.store) }
  #expect(joined.household == "Smith" && joined.zone == "Budget" && joined.rows == 5 && joined.isProvisional)
  #expect(try await ana.sync(place.path("a.db")).warnings.map(\.code) == ["admitted"])
  _ = try await ben.sync(place.path("b.db"))
  return (ana, ben)
}

func settle(_ place: Place, _ ana: Home, _ ben: Home) async throws {
  for _ in 0..<3 {
    _ = try await ana.sync(place.path("a.db"))
    _ = try await ben.sync(place.path("b.db"))
  }
}
