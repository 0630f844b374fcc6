internal import LatchkeyEncoding
public import LatchkeyStorage

extension FolderStore: DirectoryStore {
  public func removeEmptyDirectories(under prefix: String) async throws(StorageError) {
    try await lanes.run(.delete, nil) { () throws(StorageError) in try folder.removeEmptyDirectories(under: prefix) }
  }
}

extension Folder {
  func removeEmptyDirectories(under prefix: String) throws(StorageError) {
    try StorageError.checkListing(prefix: prefix, limit: 1)
    guard !prefix.isEmpty else { return }
    let failure = FolderFailure(operation: .delete, name: nil, prefix: prefix)
    try checkRoot(failure)
    try remove(root + "/" + prefix.dropLast(), depth: 4, failure)
    memory.withLock { memory in
      let gone = "\(root)/\(prefix.dropLast())"
      memory.durable = memory.durable.filter { $0 != gone && !$0.hasPrefix(gone + "/") }
      memory.swept = memory.swept.filter { $0 != gone && !$0.hasPrefix(gone + "/") }
    }
  }

  /// The system refuses to remove a directory with anything in it, which is left to it.
  private func remove(_ path: String, depth: Int, _ failure: FolderFailure) throws(StorageError) {
    guard try kind(path, failure) == .directory else { return }
    let entries: [DirectoryEntry]
    do { entries = try files.entries(path) } catch { return }
    for entry in entries where depth > 0 && ObjectName.isListablePrefix(entry.name + "/") {
      try remove("\(path)/\(entry.name)", depth: depth - 1, failure)
    }
    do { try files.removeDirectory(path) } catch {}
  }
}
