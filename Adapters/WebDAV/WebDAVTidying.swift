internal import LatchkeyEncoding
public import LatchkeyStorage

extension WebDAVStore: DirectoryStore {
  public func removeEmptyDirectories(under prefix: String) async throws(StorageError) {
    try StorageError.checkListing(prefix: prefix, limit: 1)
    guard !prefix.isEmpty else { return }
    _ = try await removeIfEmpty(path(prefix), depth: 4, prefix)
    memory.habits.withLock { habits in habits.directories = habits.directories.filter { !$0.hasPrefix(prefix) } }
  }

  /// - Parameters:
  ///   - path: ends with a slash.
  ///   - depth: how many directories deep it may go.
  /// - Returns: whether it is gone.
  private func removeIfEmpty(_ path: String, depth: Int, _ prefix: String) async throws(StorageError) -> Bool {
    guard let (answer, _) = try await properties(path, depth: 1, .list, nil, prefix: prefix) else { return true }
    let own = Multistatus.path(path)
    let members = answer.resources.filter { $0.path.count == own.count + 1 && $0.path.starts(with: own) }
    // Deleting a directory takes everything in it along: it must not even hold what cannot be read.
    guard answer.resources.contains(where: { $0.path == own && $0.isCollection }) else { return false }
    var isEmpty = true
    for member in members {
      guard let last = member.path.last, member.isCollection, depth > 0,
        ObjectName.isListablePrefix(last + "/"), try await removeIfEmpty(path + last + "/", depth: depth - 1, prefix)
      else {
        isEmpty = false
        continue
      }
    }
    if isEmpty { try await remove(path, .delete, nil) }
    return isEmpty
  }
}
