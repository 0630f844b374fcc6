import LatchkeyEncoding
import LatchkeyStorage

/// A request that the store or the way to it failed. Whoever made it knows no more than that.
struct RequestFailed: Error {}

/// What may go wrong with requests in one run, in percent. All zero: an honest store.
struct StoreFaults {
  /// The request never arrives.
  var dropped = 0
  /// It has its effect, and the answer is lost.
  var lostReply = 0
  /// It has its effect some time after it was given up.
  var late = 0
  /// A listing shows an earlier state.
  var stale = 0
  /// A listing leaves some names out.
  var partial = 0
  /// An object that is there is said not to be.
  var absent = 0

  static let none = StoreFaults()
}

/// One store for all devices, synchronous, with faults as decided by the caller's stream.
struct SimulatedStore {
  private(set) var objects = StoredObjects()
  private var delayed: [(due: Int, name: ObjectName, bytes: [UInt8])] = []
  /// Earlier states, so that an old listing can be shown.
  private var past: [StoredObjects] = []
  /// An earlier state that the store's keeper may go back to.
  private var backup: StoredObjects?
  private var now = 0
  /// Requests since the counters were reset.
  private(set) var puts = 0
  private(set) var deletes = 0

  /// Makes the place a store.
  mutating func found(marker id: [UInt8]) throws {
    guard let id = StoreID(id) else { throw Violation(.defect, "a marker needs 16 bytes") }
    try objects.put(.marker, StoreMarker(id: id).encoded)
  }

  /// Time passes: what was on its way arrives.
  mutating func tick(_ faults: StoreFaults) {
    now += 1
    if faults.stale > 0, now % 3 == 0 {
      past.append(objects)
      if past.count > 6 { past.removeFirst() }
    }
    let due = delayed.filter { $0.due <= now }
    delayed.removeAll { $0.due <= now }
    // A name that has got other contents meanwhile is a violation that the ledger has seen at the request.
    for item in due { try? objects.put(item.name, item.bytes) }
  }

  /// The store's keeper makes a backup, or goes back to the one that there is: what came since is lost, and what was under way.
  ///
  /// - Returns: whether anything was lost.
  mutating func backUpOrRestore() -> Bool {
    guard let old = backup else {
      backup = objects
      return false
    }
    backup = nil
    let isLoss = old.count != objects.count || old.all.contains { (try? objects.get($0.name)) != $0.bytes }
    objects = old
    delayed = []
    past = []
    return isLoss
  }

  func has(_ name: ObjectName) -> Bool { (try? objects.head(name)) != nil }

  /// Everything under way arrives: the end of the faults.
  mutating func settle() {
    for item in delayed { try? objects.put(item.name, item.bytes) }
    delayed = []
  }

  mutating func resetCounts() { (puts, deletes) = (0, 0) }

  mutating func put(
    _ name: ObjectName, _ bytes: [UInt8], _ faults: StoreFaults, _ random: inout Stream, _ marks: inout Marks
  ) throws {
    puts += 1
    try maybeDrop(faults, &random, &marks)
    if random.chance(faults.late) {
      marks[.latePuts] += 1
      delayed.append((now + 1 + random.below(20), name, bytes))
      throw RequestFailed()
    }
    if (try? objects.head(name)) != nil { marks[.resends] += 1 }
    try objects.put(name, bytes)
    try maybeLose(faults, &random, &marks)
  }

  mutating func delete(
    _ names: [ObjectName], _ faults: StoreFaults, _ random: inout Stream, _ marks: inout Marks
  ) throws {
    deletes += names.count
    for name in names {
      try maybeDrop(faults, &random, &marks)
      objects.delete(name)
    }
    try maybeLose(faults, &random, &marks)
  }

  func get(
    _ names: [ObjectName], _ faults: StoreFaults, _ random: inout Stream, _ marks: inout Marks
  ) throws -> [ObjectName: [UInt8]] {
    try maybeDrop(faults, &random, &marks)
    var out: [ObjectName: [UInt8]] = [:]
    for name in names {
      guard let bytes = try? objects.get(name) else { continue }
      if random.chance(faults.absent) {
        marks[.absentObjects] += 1
        continue
      }
      out[name] = bytes
    }
    return out
  }

  func list(
    _ prefix: String, _ faults: StoreFaults, _ random: inout Stream, _ marks: inout Marks
  ) throws -> [ObjectName] {
    try maybeDrop(faults, &random, &marks)
    var shown = objects
    if random.chance(faults.stale), let old = random.pick(past) {
      shown = old
      marks[.staleListings] += 1
    }
    var names = try shown.list(prefix: prefix).entries.map(\.name)
    if random.chance(faults.partial) {
      marks[.staleListings] += 1
      names.removeAll { _ in random.chance(30) }
    }
    return names
  }

  private func maybeDrop(_ faults: StoreFaults, _ random: inout Stream, _ marks: inout Marks) throws {
    guard random.chance(faults.dropped) else { return }
    marks[.droppedRequests] += 1
    throw RequestFailed()
  }

  private func maybeLose(_ faults: StoreFaults, _ random: inout Stream, _ marks: inout Marks) throws {
    guard random.chance(faults.lostReply) else { return }
    marks[.lostReplies] += 1
    throw RequestFailed()
  }
}
