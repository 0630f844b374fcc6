internal import LatchkeyEncoding
internal import LatchkeyHTTP
internal import LatchkeyStorage

/// One page of a listing as the service wrote it.
struct S3Listing {
  struct Item {
    let key: String
    let size: Int
  }

  let items: [Item]
  let isTruncated: Bool
  /// For the next page of version 2.
  let token: String?
  /// The service took a request of version 2 for one of version 1: it knows nothing of `start-after` and tokens.
  let isVersion1: Bool

  init(_ response: HTTPResponse, prefix: String) throws(StorageError) {
    let root: XMLReader.Element
    do { root = try XMLReader.read(response.body) } catch {
      throw StorageError(
        error == .truncated ? .truncated : .protocolViolation, .list, prefix: prefix, detail: error.description)
    }
    guard root.name == "ListBucketResult" else {
      throw StorageError(
        .protocolViolation, .list, prefix: prefix,
        detail: "the answer is not the listing of a bucket: check endpoint= and whether it is an S3 service")
    }
    var items: [Item] = []
    for entry in root.all("Contents") {
      guard let key = entry.text("Key"), let text = entry.text("Size"), let size = Int(text), size >= 0 else {
        throw StorageError(.protocolViolation, .list, prefix: prefix, detail: "an entry has no key or no size")
      }
      items.append(Item(key: key, size: size))
    }
    self.items = items
    isTruncated = root.text("IsTruncated") == "true"
    token = root.text("NextContinuationToken").flatMap { $0.isEmpty ? nil : $0 }
    isVersion1 = root.first("Marker") != nil && root.first("KeyCount") == nil
  }
}

/// Lists a bucket: in the service's order where that is byte order, as a whole where it is not.
struct S3Lister: Sendable {
  let connection: S3Connection
  let prefix: String
  let after: ObjectName?
  let limit: Int

  /// What a session has learned about listings.
  struct Habits: Sendable {
    /// Only version 1 works: version 2 is refused, taken for version 1, or cut off without a token (Ceph before 14.2.5).
    var needsVersion1 = false
    /// Keys are not in byte order.
    var isUnordered = false
  }

  /// Why a way of listing does not work here.
  enum Obstacle: Error {
    case storage(StorageError)
    case needsVersion1
    case isUnordered
  }

  /// A guard against a service that never comes to an end: ten million objects.
  private static let maximumPages = 10_000
  private static let pageSize = 1000

  /// A page of the contract: `limit` entries at most, in byte order.
  func page(_ habits: Habits) async throws(Obstacle) -> ListPage {
    habits.isUnordered ? try await fromWhole(habits) : try await fromOrder(habits)
  }

  /// The service continues after a key, wherever that is.
  private func fromOrder(_ habits: Habits) async throws(Obstacle) -> ListPage {
    var last = start
    for _ in 0..<Self.maximumPages {
      let listing = try await fetch(habits, after: last, token: nil, count: min(limit, Self.pageSize))
      for item in listing.items {
        if let last, !last.utf8.lexicographicallyPrecedes(item.key.utf8) { throw .isUnordered }
        last = item.key
      }
      let entries = listing.items.compactMap(entry)
      if entries.count > limit { return ListPage(entries: Array(entries[..<limit]), isLast: false) }
      if !listing.isTruncated { return ListPage(entries: entries, isLast: true) }
      if !entries.isEmpty { return ListPage(entries: entries, isLast: false) }
      guard !listing.items.isEmpty else { throw stuck }
    }
    throw stuck
  }

  /// Everything below the prefix is read, sorted here, and cut.
  private func fromWhole(_ habits: Habits) async throws(Obstacle) -> ListPage {
    var entries: [ObjectName: Int] = [:]
    var (last, token): (String?, String?) = (nil, nil)
    var keys: Set<String> = []
    for _ in 0..<Self.maximumPages {
      let listing = try await fetch(habits, after: last, token: token, count: Self.pageSize)
      let before = keys.count
      for item in listing.items {
        keys.insert(item.key)
        if let entry = entry(item) { entries[entry.name] = entry.size }
      }
      if !listing.isTruncated {
        let sorted = entries.map { ListPage.Entry(name: $0.key, size: $0.value) }.sorted { $0.name < $1.name }
        return ListPage(entries: Array(sorted.prefix(limit)), isLast: sorted.count <= limit)
      }
      guard keys.count > before, token == nil || listing.token != token else { throw stuck }
      (last, token) = (listing.items.last?.key, listing.token)
    }
    throw stuck
  }

  private func fetch(
    _ habits: Habits, after last: String?, token: String?, count: Int
  ) async throws(Obstacle) -> S3Listing {
    var call = S3Connection.Call(method: "GET")
    call.query = [("prefix", connection.configuration.key(prefix)), ("max-keys", "\(count)")]
    // No encoding-type: services encode differently (a space as `+`), and our names need none.
    if habits.needsVersion1 {
      if let last { call.query.append(("marker", last)) }
    } else {
      call.query.append(("list-type", "2"))
      if let token {
        call.query.append(("continuation-token", token))
      } else if let last {
        call.query.append(("start-after", last))
      }
    }
    call.maximumBody = 8 << 20
    let reply: S3Connection.Reply
    do { reply = try await connection.send(call) } catch {
      throw .storage(error.storageError(.list, nil, prefix: prefix))
    }
    switch reply {
    case .no(let failure):
      let refusesVersion2 = failure.cause == .unsupported || failure.code == "InvalidArgument"
      if refusesVersion2, !habits.needsVersion1 { throw .needsVersion1 }
      throw .storage(failure.error(.list, nil, prefix: prefix))
    case .yes(let response):
      let listing: S3Listing
      do { listing = try S3Listing(response, prefix: prefix) } catch { throw .storage(error) }
      if !habits.needsVersion1, listing.isVersion1 || (listing.isTruncated && listing.token == nil) {
        throw .needsVersion1
      }
      return listing
    }
  }

  /// The key after which to begin; nil for the first below the prefix.
  private var start: String? { after.map { connection.configuration.key($0.text) } }

  /// An entry of the contract; nil for what is no name of ours, or comes before.
  private func entry(_ item: S3Listing.Item) -> ListPage.Entry? {
    let root = connection.configuration.key("")
    guard item.key.hasPrefix(root), let name = ObjectName(String(item.key.dropFirst(root.count))),
      name.text.hasPrefix(prefix), after.map({ $0 < name }) ?? true
    else { return nil }
    return ListPage.Entry(name: name, size: item.size)
  }

  private var stuck: Obstacle {
    .storage(StorageError(.protocolViolation, .list, prefix: prefix, detail: "the listing does not advance"))
  }
}
