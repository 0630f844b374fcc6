internal import LatchkeyEncoding
internal import LatchkeyStorage

extension Folder {
  func list(prefix: String, after: ObjectName?, limit: Int) throws(StorageError) -> ListPage {
    try StorageError.checkListing(prefix: prefix, limit: limit)
    let failure = FolderFailure(operation: .list, name: nil, prefix: prefix)
    try checkRoot(failure)
    var path = root
    for part in prefix.split(separator: "/") {
      path += "/" + part
      guard try kind(path, failure) == .directory else { return ListPage(entries: [], isLast: true) }
    }
    var walk = Walk(folder: self, after: after, limit: limit, failure: failure)
    try walk.visit(path, prefix)
    return ListPage(entries: walk.entries, isLast: !walk.isFull)
  }
}

/// Walks the tree in byte order of the objects' names, and stops at the first one over the limit.
private struct Walk {
  let folder: Folder
  let after: ObjectName?
  let limit: Int
  let failure: FolderFailure
  var entries: [ListPage.Entry] = []
  var isFull = false

  /// An object, or a directory that may hold some.
  private struct Child {
    let path: String
    /// The object's name, or what the names in the directory begin with, slash included. Sorting by it is sorting by
    /// the names of the objects: `a-b/c` comes before `a/c`.
    let key: String
    let isDirectory: Bool
  }

  /// - Parameter prefix: what the names in this directory begin with: empty, or ending with a slash.
  mutating func visit(_ path: String, _ prefix: String) throws(StorageError) {
    for child in try children(path, prefix) {
      if isFull { return }
      if child.isDirectory {
        if mayHoldMore(child.key) { try visit(child.path, child.key) }
      } else if let name = ObjectName(child.key), after.map({ $0 < name }) ?? true {
        try add(name, child.path)
      }
    }
  }

  /// Whether a directory can hold names after `after`.
  private func mayHoldMore(_ prefix: String) -> Bool {
    guard let after else { return true }
    return after.text.hasPrefix(prefix) || after.text.utf8.lexicographicallyPrecedes(prefix.utf8)
  }

  private mutating func add(_ name: ObjectName, _ path: String) throws(StorageError) {
    let status: FileStatus
    do { status = try folder.files.status(path, following: false) } catch {
      // Deleted since the directory was read.
      if error.saysAbsent { return try folder.checkRoot(failure) }
      throw failure.translate(error, "lstat")
    }
    guard status.kind == .regular else { return }
    if entries.count == limit {
      isFull = true
    } else {
      entries.append(ListPage.Entry(name: name, size: status.size))
    }
  }

  /// What is in a directory and follows the grammar; all else is somebody else's and is passed over.
  private func children(_ path: String, _ prefix: String) throws(StorageError) -> [Child] {
    let found: [DirectoryEntry]
    do { found = try folder.files.entries(path) } catch {
      if error.saysAbsent {
        // The directory was removed meanwhile; unless it is the whole folder, that is a listing like any other.
        try folder.checkRoot(failure)
        return []
      }
      throw failure.translate(error, "readdir")
    }
    var children: [Child] = []
    for entry in found {
      let key = prefix + entry.name
      let mayBeDirectory = ObjectName.isListablePrefix(key + "/")
      guard mayBeDirectory || ObjectName(key) != nil else { continue }
      let path = path + "/" + entry.name
      var kind = entry.kind
      if kind == nil { kind = try folder.kind(path, failure) }
      switch kind {
      case .directory where mayBeDirectory: children.append(Child(path: path, key: key + "/", isDirectory: true))
      case .regular: children.append(Child(path: path, key: key, isDirectory: false))
      case .directory, .other, nil: continue
      }
    }
    return children.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }
}
