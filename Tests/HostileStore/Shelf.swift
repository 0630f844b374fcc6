import LatchkeyEncoding
import LatchkeyStorage
import Synchronization

/// The store in the adversary's hands: every object that anybody put, and what each device is shown of it.
///
/// Devices live in *worlds*: one unless a test forks it. A view says what else a device is lied to about.
final class Shelf: Sendable {
  struct View: Sendable {
    var world = Shelf.truth
    /// Neither found by name nor listed.
    var hides: @Sendable (ObjectName) -> Bool = { _ in false }
    /// Found by name, and left out of listings.
    var unlisted: @Sendable (ObjectName) -> Bool = { _ in false }
    /// At most so many names in a listing, which then claims to be whole.
    var listingLimit = Int.max
  }

  struct Put: Sendable {
    let by: String
    let name: ObjectName
    let bytes: [UInt8]
  }

  /// When a device's process "dies".
  struct Death: Sendable {
    var requestsLeft: Int
    /// Whether the last request still takes effect.
    var isAfterwards: Bool
  }

  private struct State {
    var worlds = [Shelf.truth: StoredObjects()]
    var views: [String: View] = [:]
    var puts: [Put] = []
    var deletes: [ObjectName] = []
    var asked: [ObjectName] = []
    var deaths: [String: Death] = [:]
    /// Places other than the household's own that anybody tried to open.
    var strangePlaces: [String] = []
  }

  static let truth = "true"
  private let state = Mutex(State())

  // MARK: What the adversary does

  /// All that lies in a world.
  func objects(_ world: String = Shelf.truth) -> StoredObjects {
    state.withLock { $0.worlds[world] ?? StoredObjects() }
  }

  /// Shows a world another past.
  func replace(_ world: String = Shelf.truth, with objects: StoredObjects) {
    state.withLock { $0.worlds[world] = objects }
  }

  /// What a device is shown from now on.
  func show(_ device: String, _ change: @Sendable (inout View) -> Void) {
    state.withLock { change(&$0.views[device, default: View()]) }
  }

  /// No lies any more, and one world for all.
  func beHonest() { state.withLock { $0.views = [:] } }

  subscript(name: ObjectName) -> [UInt8]? { try? objects().get(name) }

  /// Puts whatever it likes, wherever it likes.
  func plant(_ name: ObjectName, _ bytes: [UInt8], world: String = Shelf.truth) {
    state.withLock { $0.worlds[world, default: StoredObjects()].tamper(name, bytes) }
  }

  func remove(_ name: ObjectName) { state.withLock { $0.worlds[Shelf.truth]?.delete(name) } }

  func exchange(_ a: ObjectName, _ b: ObjectName) {
    guard let one = self[a], let other = self[b] else { return }
    plant(a, other)
    plant(b, one)
  }

  func kill(_ device: String, after requests: Int?, isAfterwards: Bool = false) {
    state.withLock {
      $0.deaths[device] = requests.map { Death(requestsLeft: $0, isAfterwards: isAfterwards) }
    }
  }

  // MARK: What it sees

  var names: [ObjectName] { objects().all.map(\.name) }
  /// Everything that was ever sent, in that order.
  var puts: [Put] { state.withLock { $0.puts } }
  var deletes: [ObjectName] { state.withLock { $0.deletes } }
  /// Names that were looked up.
  var asked: [ObjectName] { state.withLock { $0.asked } }
  var strangePlaces: [String] { state.withLock { $0.strangePlaces } }

  func open(strangePlace: String) { state.withLock { $0.strangePlaces.append(strangePlace) } }

  // MARK: Requests

  fileprivate func request<T: Sendable>(
    _ device: String, _ operation: StorageError.Operation, _ body: (inout StoredObjects, View) throws(StorageError) -> T
  ) throws(StorageError) -> T {
    try state.withLock { state throws(StorageError) in
      var dies = false
      if var death = state.deaths[device] {
        dies = death.requestsLeft == 0
        death.requestsLeft -= 1
        state.deaths[device] = dies ? nil : death
        if dies, !death.isAfterwards { throw StorageError(.cancelled, operation) }
      }
      let view = state.views[device] ?? View()
      var objects = state.worlds[view.world] ?? StoredObjects()
      let answer = try body(&objects, view)
      state.worlds[view.world] = objects
      if dies { throw StorageError(.cancelled, operation, nil, effect: .unknown) }
      return answer
    }
  }

  fileprivate func note(put: Put) { state.withLock { $0.puts.append(put) } }
  fileprivate func note(asked name: ObjectName) { state.withLock { $0.asked.append(name) } }
  fileprivate func note(deleted name: ObjectName) { state.withLock { $0.deletes.append(name) } }
}

/// What a device takes for its store.
struct HostileStore: ObjectStore {
  let shelf: Shelf
  let device: String

  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    shelf.note(put: Shelf.Put(by: device, name: name, bytes: bytes))
    try shelf.request(device, .put) { (objects, _) throws(StorageError) in try objects.put(name, bytes) }
  }

  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    shelf.note(asked: name)
    return try shelf.request(device, .get) { (objects, view) throws(StorageError) in
      if view.hides(name) { throw StorageError(.notFound, .get, name) }
      return try objects.get(name, range: range)
    }
  }

  func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try shelf.request(device, .head) { (objects, view) throws(StorageError) in
      if view.hides(name) { throw StorageError(.notFound, .head, name) }
      return try objects.head(name)
    }
  }

  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try shelf.request(device, .list) { (objects, view) throws(StorageError) in
      let all = try objects.list(prefix: prefix).entries.filter { !view.hides($0.name) && !view.unlisted($0.name) }
        .prefix(view.listingLimit)
      let rest = all.filter { entry in after.map { entry.name > $0 } ?? true }
      return ListPage(entries: Array(rest.prefix(limit)), isLast: rest.count <= limit)
    }
  }

  func delete(_ name: ObjectName) async throws(StorageError) {
    shelf.note(deleted: name)
    try shelf.request(device, .delete) { (objects, _) throws(StorageError) in objects.delete(name) }
  }

  func probe() async throws(StorageError) -> Capabilities {
    Capabilities(conditionalCreate: .atomic, publish: .atomic, listing: .strong, maximumConcurrency: 4)
  }
}
