public import LatchkeyEncoding

/// A place that keeps objects: the contract between Latchkey and whatever a household stores its data on.
///
/// Most people need no more than a ``StoreRegistry``, which opens a store from its URL. This protocol is for those who
/// write an adapter; `LatchkeyConformance` checks one against everything that is said here.
///
/// ## What an adapter promises
/// - **`put` creates, and only creates.** An object is written once and never changes. If the same bytes are there
///   already, that is success; if other bytes are there, they stay and ``StorageError/Cause/alreadyExists`` is thrown.
/// - **A reader sees a whole object or none**, under its name or in a listing, also while it is being written and after
///   a crash. Adapters stage under names outside ``ObjectName``'s grammar.
/// - **Success is durable.** When `put` returns, the object survives a power cut as far as the store itself can
///   promise.
/// - **A lost reply is resolved inside `put`**: whenever it is not known whether the bytes arrived, the adapter
///   compares what is there with what was to be there. What still cannot be told is thrown with
///   ``StorageError/Effect/unknown``.
/// - **`get` returns exactly what was asked for, or throws.** Never fewer bytes, never more.
/// - **A listing is complete or it throws**: in byte order, no name twice, strictly after `after`. What is not a name
///   of the grammar (conflicted copies, dot files, other people's files) is neither listed nor ever deleted.
/// - **A missing store is ``StorageError/Cause/storeMissing``**, never an empty one: absence is not deletion.
///
/// ## Who retries
/// Adapters never retry: ``RetryingStore`` does, for every adapter alike. So every failure says what it is:
/// ``StorageError/isRetryable`` tells the temporary from the permanent, ``StorageError/effect`` whether something may
/// have changed. All five operations are idempotent, so a retry with the same arguments is always safe; a retry of
/// `put` must send the same bytes (they are kept until they are acknowledged).
///
/// ## What adapters never do
/// Give a meaning to names; delete anything to clean up after a failed `put` (the object may have arrived and be in
/// use); put a secret in an error or a log; follow a redirect to another origin.
///
/// ## What the store owes
/// That a read after a write sees it, on every connection; that a name holds what was last written to it; that two
/// creations of one name do not both succeed. Real stores owe less: ``Capabilities`` says how much, found by probing
/// and never by brand. Correctness does not rest on any of it, since no two writers ever use one name, and every byte
/// is authenticated by who reads it. A name is never also a folder of other names.
///
/// Source: docs/format.md §3 (names); the shape follows restic's `backend.Backend` and Rust's `object_store`.
public protocol ObjectStore: Sendable {
  /// Creates an object.
  ///
  /// - Parameters:
  ///   - name: nobody else writes under it.
  ///   - bytes: 0 to ``StorageLimits/maximumObjectSize`` bytes.
  /// - Throws: ``StorageError``; `.alreadyExists` if other bytes are there.
  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError)

  /// Reads an object, or a part of it.
  ///
  /// - Parameter range: byte offsets, not empty and wholly inside the object; nil reads it all.
  /// - Throws: ``StorageError``; `.notFound`, `.invalidRange`, `.truncated` where fewer bytes came than there are.
  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8]

  /// The size of an object, in bytes.
  func head(_ name: ObjectName) async throws(StorageError) -> Int

  /// Lists the objects below a prefix, at any depth.
  ///
  /// - Parameters:
  ///   - prefix: empty for everything, or whole segments each followed by `/` (``ObjectName/isListablePrefix(_:)``).
  ///   - after: names up to and including this one are left out; it need not exist, nor be under the prefix.
  ///   - limit: at least 1; a page may hold fewer and still not be the last.
  /// - Throws: ``StorageError``; `.invalidArgument` before anything is sent, for another prefix or limit.
  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage

  /// Deletes an object. One that is not there counts as deleted.
  func delete(_ name: ObjectName) async throws(StorageError)

  /// Finds out what the store really does, by trying it out on names outside the grammar or with a prefix of its own.
  /// Leaves nothing behind.
  func probe() async throws(StorageError) -> Capabilities

  /// Hints that something may have changed, where the store can tell. Hints get lost and come for nothing; whoever uses
  /// them lists as often as without them, only sooner.
  func changes() -> AsyncStream<Void>?
}

/// What holds on every store.
public enum StorageLimits {
  /// Largest object, in bytes: 64 MiB, several times the largest that the format makes (a 4 MiB segment, padded). A
  /// reader refuses to allocate more on a stranger's word.
  public static let maximumObjectSize = 64 << 20
}

extension ObjectStore {
  public func changes() -> AsyncStream<Void>? { nil }

  /// The whole object.
  public func get(_ name: ObjectName) async throws(StorageError) -> [UInt8] { try await get(name, range: nil) }

  /// Every object below a prefix, page after page.
  ///
  /// - Throws: ``StorageError``; `.protocolViolation` if the pages do not advance, which would otherwise never end.
  public func listAll(prefix: String = "", pageSize: Int = 1000) async throws(StorageError) -> [ListPage.Entry] {
    var all: [ListPage.Entry] = []
    while true {
      let page = try await list(prefix: prefix, after: all.last?.name, limit: pageSize)
      for entry in page.entries {
        if let last = all.last, entry.name <= last.name {
          throw StorageError(.protocolViolation, .list, prefix: prefix, detail: "the listing does not advance")
        }
        all.append(entry)
      }
      if page.isLast { return all }
      if page.entries.isEmpty {
        throw StorageError(.protocolViolation, .list, prefix: prefix, detail: "an empty page that is not the last")
      }
    }
  }
}
