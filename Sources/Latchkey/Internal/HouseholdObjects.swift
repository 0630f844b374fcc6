internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyStorage

/// Which objects of a store are a household's.
///
/// Names say nothing to whoever lacks the keys, and a store may hold several households: those of this one lie below the
/// prefixes that its epochs' keys make for the roster and for each zone.
struct HouseholdObjects {
  /// Each with a slash at its end, in byte order.
  let prefixes: [String]

  init(_ state: HouseholdState) {
    let zones = [ZoneID.roster] + state.roster.state.zones.map(\.id)
    var prefixes = Set<String>()
    for keys in state.epochs + [state.keys(of: state.epoch)].compactMap({ $0 }) {
      for zone in zones { prefixes.insert(keys.prefix(zone) + "/") }
    }
    self.prefixes = prefixes.sorted()
  }

  /// Kinds whose prefix is derived from a link's or a kit's secret, which nobody keeps: whose they are cannot be told, and a
  /// copy of another household's does no harm.
  static func isUnattributed(_ name: ObjectName) -> Bool {
    let parts = name.text.split(separator: "/")
    return parts.count == 4 && parts[0].utf8.count == 32 && (parts[1] == "i" || parts[1] == "k")
  }

  func contains(_ name: ObjectName) -> Bool {
    let prefix = name.text.prefix { $0 != "/" } + "/"
    return prefixes.contains { $0 == prefix }
  }

  /// What a store has of the household, listed prefix by prefix.
  func list(_ store: any ObjectStore) async throws -> [ListPage.Entry] {
    var entries: [ListPage.Entry] = []
    for prefix in prefixes { entries += try await store.listAll(prefix: prefix) }
    return entries
  }
}

/// What was copied from one store to another.
struct StoreCopy: Sendable {
  var objects = 0
  var bytes = 0

  /// Objects copied at the same time.
  private static let atOnce = 4

  enum Failure: Error { case different(ObjectName) }

  /// Copies objects, and reads each back from where it was copied to.
  ///
  /// Safe to end anywhere and to begin again: an object is written once, under a name of its own, and what is there already
  /// with the same bytes counts as copied.
  ///
  /// - Parameters:
  ///   - entries: what `from` lists. What has gone from there since was deleted by whoever wrote it, and is left out.
  ///   - there: what `to` lists already, with sizes.
  ///   - comparesAll: reads and compares also what is there already; otherwise its size tells.
  /// - Throws: ``Failure`` for a name that holds other bytes there; `StorageError`.
  static func copy(
    _ entries: [ListPage.Entry], from: any ObjectStore, to: any ObjectStore, there: [ObjectName: Int],
    comparesAll: Bool, progress: (@Sendable (_ done: Int, _ total: Int, _ bytes: Int) -> Void)? = nil
  ) async throws -> StoreCopy {
    for entry in entries { if let size = there[entry.name], size != entry.size { throw Failure.different(entry.name) } }
    let work = comparesAll ? entries : entries.filter { there[$0.name] == nil }
    var copy = StoreCopy()
    var done = 0
    try await withThrowingTaskGroup(of: Int?.self) { group in
      var waiting = work[...]
      func start() {
        guard let entry = waiting.popFirst() else { return }
        group.addTask { try await carry(entry.name, from: from, to: to, isThere: there[entry.name] != nil) }
      }
      for _ in 0..<atOnce { start() }
      while let carried = try await group.next() {
        try Task.checkCancellation()
        done += 1
        if let carried {
          copy.objects += 1
          copy.bytes += carried
        }
        progress?(done, work.count, copy.bytes)
        start()
      }
    }
    return copy
  }

  /// - Returns: how many bytes were copied; nil where nothing had to be.
  private static func carry(
    _ name: ObjectName, from: any ObjectStore, to: any ObjectStore, isThere: Bool
  ) async throws -> Int? {
    let bytes: [UInt8]
    do throws(StorageError) { bytes = try await from.get(name) } catch {
      if error.cause == .notFound { return nil }
      throw error
    }
    if !isThere {
      do throws(StorageError) { try await to.put(name, bytes) } catch {
        if error.cause == .alreadyExists { throw Failure.different(name) }
        throw error
      }
    }
    guard try await to.get(name) == bytes else { throw Failure.different(name) }
    return isThere ? nil : bytes.count
  }
}
