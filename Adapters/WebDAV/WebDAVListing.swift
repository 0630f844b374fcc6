public import LatchkeyEncoding
internal import LatchkeyHTTP
public import LatchkeyStorage

extension WebDAVStore {
  /// One directory at a time (an infinite depth is refused by most servers), in the order of names, several at once where
  /// a long page is asked for.
  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try StorageError.checkListing(prefix: prefix, limit: limit)
    var found: [ListPage.Entry] = []
    // What is still to be looked at, in order: a directory stands for everything in it.
    var ahead: [Item] = [.directory(prefix)]
    while let next = ahead.first, found.count < limit {
      if case .object(let entry) = next {
        found.append(entry)
        ahead.removeFirst()
        continue
      }
      let width = limit - found.count < Self.longPage ? 1 : WebDAVConfiguration.concurrency
      let directories = ahead.prefix(width * 2).compactMap { item -> String? in
        if case .directory(let directory) = item { directory } else { nil }
      }.prefix(width)
      let contents = try await contents(of: Array(directories), prefix: prefix, after: after)
      ahead = ahead.flatMap { item -> [Item] in
        guard case .directory(let directory) = item, let inside = contents[directory] else { return [item] }
        return inside
      }
    }
    return ListPage(entries: found, isLast: ahead.isEmpty)
  }

  private enum Item {
    /// A prefix; ends with a slash unless it is empty.
    case directory(String)
    case object(ListPage.Entry)

    /// What it is sorted by: the slash of a directory counts, as it does in the names below.
    var key: String {
      switch self {
      case .directory(let prefix): prefix
      case .object(let entry): entry.name.text
      }
    }
  }

  /// From how many entries on directories are read several at once.
  private static let longPage = 100

  private func contents(
    of directories: [String], prefix: String, after: ObjectName?
  ) async throws(StorageError) -> [String: [Item]] {
    typealias Outcome = (directory: String, items: Result<[Item], StorageError>)
    let outcomes = await withTaskGroup(of: Outcome.self) { group in
      for directory in directories {
        group.addTask {
          do throws(StorageError) {
            return (directory, .success(try await items(in: directory, prefix: prefix)))
          } catch { return (directory, .failure(error)) }
        }
      }
      return await group.reduce(into: [Outcome]()) { $0.append($1) }
    }
    var contents: [String: [Item]] = [:]
    for (directory, items) in outcomes {
      contents[directory] = try items.get().filter { Self.mayHold($0, namesAfter: after) }
        .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }
    return contents
  }

  private static func mayHold(_ item: Item, namesAfter after: ObjectName?) -> Bool {
    guard let after else { return true }
    return switch item {
    case .object(let entry): entry.name > after
    case .directory(let prefix):
      after.text.hasPrefix(prefix) || after.text.utf8.lexicographicallyPrecedes(prefix.utf8)
    }
  }

  /// What is directly in a directory, in no order: names of the grammar, and directories that can hold some.
  private func items(in directory: String, prefix: String) async throws(StorageError) -> [Item] {
    guard let (answer, reply) = try await properties(path(directory), depth: 1, .list, nil, prefix: prefix) else {
      try await checkRoot(.list)
      // One that was listed a moment ago does not vanish: whoever says so has not shown everything.
      guard directory == prefix else {
        throw StorageError(.conflict, .list, prefix: prefix, detail: "\(directory) is listed and not there")
      }
      return []
    }
    let parent = Multistatus.path(path(directory))
    try check(answer, parent, reply, prefix)
    var members = Set<String>()
    var items: [Item] = []
    for resource in answer.resources where resource.path.count == parent.count + 1 && resource.path.starts(with: parent)
    {
      guard let last = resource.path.last, members.insert(last).inserted else { continue }
      let text = directory + last
      guard resource.isThere else {
        if resource.status == 404 || resource.status == 410 { continue }
        throw WebDAVFailure(reply, status: resource.status).error(.list, nil, prefix: prefix)
      }
      if resource.isCollection {
        if ObjectName.isListablePrefix(text + "/") { items.append(.directory(text + "/")) }
      } else if let name = ObjectName(text) {
        let size: Int
        if let known = resource.size {
          size = known
        } else {
          size = try await sizeByHead(path(text), .list, nil, prefix: prefix)
        }
        items.append(.object(ListPage.Entry(name: name, size: size)))
      }
    }
    if Self.suspiciousCounts.contains(members.count) { try await checkCap(directory, members.count, prefix) }
    return items
  }

  /// Throws unless the answer is about the directory that was asked about.
  private func check(
    _ answer: Multistatus, _ parent: [String], _ reply: WebDAVConnection.Reply, _ prefix: String
  ) throws(StorageError) {
    let isAboutIt = answer.resources.contains { $0.path.starts(with: parent) }
    guard !isAboutIt else {
      if let itself = answer.resources.first(where: { $0.path == parent }), !itself.isThere {
        throw WebDAVFailure(reply, status: itself.status).error(.list, nil, prefix: prefix)
      }
      return
    }
    guard let other = answer.resources.first else {
      throw WebDAVFailure(reply, isForeign: true).error(.list, nil, prefix: prefix)
    }
    throw StorageError(
      .config, .list, prefix: prefix,
      detail:
        "the server calls /\(parent.joined(separator: "/")) by another name (/\(other.path.joined(separator: "/"))): "
        + "use that path, or let the proxy in between keep it")
  }

  /// How many entries of a directory some servers show at most (Jianguoyun), without saying that there are more.
  private static let suspiciousCounts: Set<Int> = [750]

  /// Throws if a directory that holds one more shows no more.
  private func checkCap(_ directory: String, _ count: Int, _ prefix: String) async throws(StorageError) {
    let trial = path(directory) + (stagingPath().split(separator: "/").last.map(String.init) ?? "")
    let put = WebDAVConnection.Call(method: "PUT", path: trial, body: [])
    if let failure = failure(try await send(put, .list, nil, prefix: prefix)) {
      throw failure.error(.list, nil, prefix: prefix)
    }
    let second: (answer: Multistatus, reply: WebDAVConnection.Reply)?
    do { second = try await properties(path(directory), depth: 1, .list, nil, prefix: prefix) } catch {
      await removeQuietly(trial)
      throw error
    }
    await removeQuietly(trial)
    let parent = Multistatus.path(path(directory))
    let members = Set((second?.answer.resources ?? []).filter { $0.path.count == parent.count + 1 }.map(\.path))
    guard members.count > count else {
      throw StorageError(
        .unsupported, .list, prefix: prefix,
        detail: "the server shows no more than \(count) entries of a directory, and does not say so")
    }
  }
}
