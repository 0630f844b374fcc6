import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyKeys
import LatchkeySQLite
import LatchkeyStorage
import Synchronization
import Testing

/// Devices with homes and files of their own around one ``Shelf``.
final class Village: Sendable {
  let root: String
  let shelf = Shelf()
  private let offset = Mutex<Int64>(0)

  init() throws {
    root = NSTemporaryDirectory() + "latchkey-hostile-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(atPath: root) }

  static let store = "shelf:street"
  static let minute: Int64 = 60_000
  static let day: Int64 = 86_400_000

  var now: Int64 { World.system.now() + offset.withLock { $0 } }
  func wait(_ milliseconds: Int64) { offset.withLock { $0 += milliseconds } }
  func path(_ name: String) -> String { "\(root)/\(name)" }

  /// A home in a directory of that name.
  ///
  /// - Parameter ahead: how far its clock is wrong, in milliseconds.
  func home(_ name: String, ahead: Int64 = 0) -> Home {
    var stores = StoreRegistry()
    let shelf = shelf
    stores.register(scheme: "shelf", form: "shelf:PLACE") { (locator, _) async throws(StorageError) in
      guard locator.text == Village.store else {
        shelf.open(strangePlace: locator.text)
        throw StorageError(.storeMissing, .open)
      }
      return HostileStore(shelf: shelf, device: name)
    }
    return Home(
      directory: path(name), stores: stores, base: root,
      world: World(now: { [self] in now + ahead }, random: { World.system.random() }))
  }

  // MARK: People

  /// Ana, who shares Budget with the household Smith, alone so far.
  func found() async throws -> Resident {
    let ana = Resident("ana", self)
    try run(
      ana.file,
      """
      CREATE TABLE accounts(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
      CREATE TABLE entries(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES accounts(id), note TEXT);
      INSERT INTO accounts VALUES (1, 'Joint'), (2, 'Cash');
      INSERT INTO entries(account, note) VALUES (1, 'first'), (2, 'second');
      """)
    try await ana.home.initialize(name: "Ana", device: "laptop", store: Village.store)
    try await ana.home.attach(ana.file, zone: "Budget")
    let shared = try await ana.home.share(ana.file, household: "Smith")
    #expect(shared.isVerified)
    return ana
  }

  /// Ana with a member, everything settled.
  func couple() async throws -> (ana: Resident, ben: Resident) {
    let ana = try await found()
    return (ana, try await join("ben", as: .member, invitedBy: ana))
  }

  /// Somebody invited and let in, everything settled.
  func join(_ name: String, as role: InviteRole, invitedBy inviter: Resident) async throws -> Resident {
    let invite = try await inviter.home.invite(household: "Smith", role: role)
    let newcomer = try await claim(invite.link, name)
    try await settle(inviter, newcomer)
    return newcomer
  }

  /// Somebody who has used a link and whom nobody has let in yet.
  func claim(_ link: String, _ name: String) async throws -> Resident {
    let newcomer = Resident(name, self)
    _ = try await newcomer.home.join(
      link: link, options: JoinOptions(database: newcomer.file, name: name.capitalized, device: "phone")
    ) { _ in true }
    return newcomer
  }

  func settle(_ residents: Resident..., rounds: Int = 2) async throws {
    for _ in 0..<rounds {
      for resident in residents { _ = try await resident.sync() }
    }
  }

  // MARK: Files

  func run(_ file: String, _ sql: String) throws {
    let connection = try Connection(file, mode: FileManager.default.fileExists(atPath: file) ? .readWrite : .create)
    try connection.execute(sql)
  }

  func rows(_ file: String, _ sql: String) throws -> [String] {
    try Connection(file, mode: .readOnly).rows(sql).map { row in row.map(\.shown).joined(separator: "|") }
  }

  /// Copies homes or files: what a backup, a thief or a cloned phone has.
  func copy(_ from: String, to: String) throws {
    try? FileManager.default.removeItem(atPath: path(to))
    try FileManager.default.copyItem(atPath: path(from), toPath: path(to))
  }
}

/// A device: a home, and a file attached to Budget.
struct Resident: Sendable {
  let name: String
  let home: Home
  let file: String
  let village: Village

  init(_ name: String, _ village: Village, ahead: Int64 = 0) {
    self.name = name
    self.village = village
    home = village.home(name, ahead: ahead)
    file = village.path(name + ".db")
  }

  var directory: String { village.path(name) }

  func sync() async throws(LatchkeyError) -> SyncReport { try await home.sync(file) }

  /// The codes of one sync's warnings.
  @discardableResult
  func warned() async throws(LatchkeyError) -> Set<String> { Set(try await sync().warnings.map(\.code)) }

  func write(_ note: String) throws {
    try village.run(file, "INSERT INTO entries(account, note) VALUES (1, '\(note)')")
  }

  var notes: [String] { get throws { try village.rows(file, "SELECT note FROM entries ORDER BY note") } }
  var accounts: [String] { get throws { try village.rows(file, "SELECT name FROM accounts ORDER BY name") } }

  func people() async throws -> [String] { try await home.members(household: "Smith").members.map(\.name).sorted() }

  func role(of name: String) async throws -> String? {
    try await home.members(household: "Smith").members.first { $0.name == name }?.role
  }

  /// The beginning of the id of the epoch that it writes into.
  func epoch() async throws -> String? { try await home.keys().households.first { $0.name == "Smith" }?.epoch }
}

/// The code of what `body` throws; nil if it throws nothing.
func refusal(_ body: () async throws(LatchkeyError) -> Void) async -> String? {
  do throws(LatchkeyError) { try await body() } catch { return error.code }
  return nil
}

extension SQLiteValue {
  var shown: String {
    switch self {
    case .null: "NULL"
    case .integer(let x): "\(x)"
    case .real(let x): "\(x)"
    case .text(let x): String(decoding: x, as: UTF8.self)
    case .blob(let x): "blob of \(x.count)"
    }
  }
}
