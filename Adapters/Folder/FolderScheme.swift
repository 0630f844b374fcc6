public import LatchkeyStorage

extension StoreRegistry {
  /// Makes `folder:PATH`, and so bare paths, known.
  public mutating func registerFolders() {
    register(scheme: Locator.folderScheme, form: "folder:PATH") { locator, mode throws(StorageError) in
      guard let path = locator.folderPath else {
        throw StorageError(.config, .open, detail: "a folder is written folder:PATH")
      }
      return try await FolderStore.open(at: path, mode)
    }
  }
}
