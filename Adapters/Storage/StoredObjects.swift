public import LatchkeyEncoding

/// Objects in memory, as a value: what ``MemoryStore`` keeps, and a store that a simulation can copy, roll back or
/// fork.
///
/// It follows the contract of ``ObjectStore`` to the letter, synchronously. Iteration is always in byte order.
public struct StoredObjects: Equatable, Sendable {
  private var bytes: [ObjectName: [UInt8]] = [:]
  /// The keys of `bytes`, in order.
  private var names: [ObjectName] = []

  public init() {}

  /// All objects in byte order of their names.
  public var all: [(name: ObjectName, bytes: [UInt8])] { names.map { ($0, bytes[$0] ?? []) } }
  public var count: Int { names.count }

  public mutating func put(_ name: ObjectName, _ new: [UInt8]) throws(StorageError) {
    guard new.count <= StorageLimits.maximumObjectSize else { throw StorageError(.tooLarge, .put, name) }
    if let old = bytes[name] {
      if old == new { return }
      throw StorageError(.alreadyExists, .put, name)
    }
    names.insert(name, at: position(after: name))
    bytes[name] = new
  }

  public func get(_ name: ObjectName, range: Range<Int>? = nil) throws(StorageError) -> [UInt8] {
    guard let all = bytes[name] else { throw StorageError(.notFound, .get, name) }
    guard let range else { return all }
    guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= all.count else {
      throw StorageError(.invalidRange, .get, name)
    }
    return Array(all[range])
  }

  public func head(_ name: ObjectName) throws(StorageError) -> Int {
    guard let all = bytes[name] else { throw StorageError(.notFound, .head, name) }
    return all.count
  }

  public func list(prefix: String = "", after: ObjectName? = nil, limit: Int = .max) throws(StorageError) -> ListPage {
    try StorageError.checkListing(prefix: prefix, limit: limit)
    let utf8 = Array(prefix.utf8)
    var index = firstIndex { !$0.text.utf8.lexicographicallyPrecedes(utf8) }
    if let after { index = max(index, position(after: after)) }
    var entries: [ListPage.Entry] = []
    while index < names.count, names[index].text.utf8.starts(with: utf8) {
      if entries.count == limit { return ListPage(entries: entries, isLast: false) }
      entries.append(ListPage.Entry(name: names[index], size: bytes[names[index]]?.count ?? 0))
      index += 1
    }
    return ListPage(entries: entries, isLast: true)
  }

  public mutating func delete(_ name: ObjectName) {
    guard bytes.removeValue(forKey: name) != nil else { return }
    names.remove(at: position(after: name) - 1)
  }

  /// Replaces what an object holds, or adds it, without asking: what a hostile or broken store does, for tests.
  public mutating func tamper(_ name: ObjectName, _ new: [UInt8]) {
    if bytes.updateValue(new, forKey: name) == nil { names.insert(name, at: position(after: name)) }
  }

  /// Index of the first name greater than `name`.
  private func position(after name: ObjectName) -> Int { firstIndex { $0 > name } }

  /// Binary search: `isFarEnough` is false for a beginning of `names` and true for the rest.
  private func firstIndex(_ isFarEnough: (ObjectName) -> Bool) -> Int {
    var (low, high) = (0, names.count)
    while low < high {
      let middle = (low + high) / 2
      if isFarEnough(names[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension StorageError {
  /// Throws `.invalidArgument` unless a listing can be asked for; adapters call it before they do anything.
  public static func checkListing(prefix: String, limit: Int) throws(StorageError) {
    guard ObjectName.isListablePrefix(prefix) else {
      throw StorageError(
        .invalidArgument, .list, prefix: prefix, detail: "a prefix is empty, or whole segments each followed by a slash"
      )
    }
    guard limit >= 1 else {
      throw StorageError(.invalidArgument, .list, prefix: prefix, detail: "the limit is less than one")
    }
  }
}
