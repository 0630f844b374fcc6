/// A store whose names are paths in a tree of directories, which stay when the objects in them are gone.
///
/// Nothing needs them removed but tidiness: an empty directory is no object.
public protocol DirectoryStore: ObjectStore {
  /// Removes the directory of a prefix and those below it, as far as there is nothing at all in them, neither objects nor
  /// other people's files. Only for prefixes of the caller's own, below which nobody else writes.
  ///
  /// - Parameter prefix: whole segments each followed by `/`, at least one.
  func removeEmptyDirectories(under prefix: String) async throws(StorageError)
}
