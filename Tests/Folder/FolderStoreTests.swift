import Foundation
import LatchkeyConformance
import LatchkeyEncoding
import LatchkeyFolder
import LatchkeyStorage
import Testing

@Suite struct FolderStoreTests {
  /// What other programs leave in a folder.
  private static let debris = [
    "h/own (Ana's conflicted copy 2026-01-02)", "h/own.sync-conflict-20260102-030405-ABCDEFG", "h/.syncthing.own.tmp",
    "h/~syncthing~own.tmp", ".stfolder/x", ".DS_Store", "Thumbs.db", "h/own.tmp", "h/own~", ".lk-tmp-0123456789abcdef",
    "h/.lk-tmp-0123456789abcdef", ".nfs000000000000000100000001", "h/Own", "h/own-", "h/own.nextcloud", "h/ü", "h/a b",
    ".hidden/own", "desktop.ini", "h/own.part",
  ]

  @Test("a folder follows the whole contract")
  func conformance() async throws {
    let folder = try TemporaryFolder()
    let report = await runConformance(
      ConformanceFactory(run: "folder") {
        try await folder.open()
      } plantDebris: { prefix in
        for name in Self.debris { try folder.write(prefix + name) }
        try FileManager.default.createSymbolicLink(
          atPath: folder.path + "/" + prefix + "h/link", withDestinationPath: "/etc/hostname")
        try FileManager.default.createSymbolicLink(
          atPath: folder.path + "/" + prefix + "away", withDestinationPath: "/etc")
        mkfifo(folder.path + "/" + prefix + "h/pipe", 0o600)
        try FileManager.default.createDirectory(
          atPath: folder.path + "/" + prefix + "a/b/c/d/e", withIntermediateDirectories: true)
      } checkDebris: { prefix in
        for name in Self.debris where !folder.exists(prefix + name) { throw Lost(name: name) }
      })
    for result in report.results { #expect(result.outcome == .passed, "\(result.name): \(result.claim)") }
    #expect(report.results.count == 24)
    #expect(folder.files().filter { $0.contains(".lk-tmp-") && !$0.contains("0123456789abcdef") } == [])
  }

  private struct Lost: Error { let name: String }

  @Test("a folder without hard links follows the contract too, but for the single winner of a race")
  func conformanceWithoutLinks() async throws {
    let folder = try TemporaryFolder()
    let report = await runConformance(
      ConformanceFactory(run: "nolinks") {
        let files = FaultyFiles()
        files.fail(every: .link, EPERM)
        return try await folder.open(files)
      })
    for result in report.results where result.name != "debris" {
      #expect(result.outcome == .passed, "\(result.name): \(result.claim)")
    }
  }

  @Test("what is written is a file of that name, for whom the file mode mask says, and nothing else")
  func layout() async throws {
    let folder = try TemporaryFolder()
    let store = try await folder.open()
    try await store.put(.marker, [1])
    try await store.put(try name("p/l/ab/x"), [2, 3])
    #expect(folder.files() == ["latchkey-store", "p/l/ab/x"])
    let file = try FileManager.default.attributesOfItem(atPath: folder.path + "/p/l/ab/x")
    let directory = try FileManager.default.attributesOfItem(atPath: folder.path + "/p/l")
    // Asking for the mask sets it.
    let mask = umask(0o022)
    _ = umask(mask)
    #expect(file[.posixPermissions] as? Int == 0o666 & ~Int(mask))
    #expect(directory[.posixPermissions] as? Int == 0o777 & ~Int(mask))
    try await store.delete(try name("p/l/ab/x"))
    #expect(folder.files() == ["latchkey-store"])
  }

  @Test("a folder that is not there is a missing store, and only create makes it, one level deep")
  func missing() async throws {
    let folder = try TemporaryFolder()
    await #expect { _ = try await FolderStore.open(at: folder.path + "/no") } throws: { cause($0) == .storeMissing }
    #expect(!folder.exists("no"))
    await #expect { _ = try await FolderStore.open(at: folder.path + "/no/deeper", .create) } throws: {
      cause($0) == .storeMissing
    }
    #expect(!folder.exists("no"))
    let store = try await FolderStore.open(at: folder.path + "/no/", .create)
    try await store.put(try name("a"), [1])
    #expect(folder.files() == ["no/a"])
    _ = try await FolderStore.open(at: folder.path + "/no", .create)
  }

  @Test("paths that cannot be a folder are refused")
  func badPaths() async throws {
    let folder = try TemporaryFolder()
    try folder.write("file")
    for path in ["", "relative", "/", "//", folder.path + "/file", folder.path + "/a\0b"] {
      await #expect { _ = try await FolderStore.open(at: path, .create) } throws: { cause($0) == .config }
    }
  }

  @Test("a folder that goes away or is unmounted while it is open is a missing store to every operation")
  func vanishes() async throws {
    let folder = try TemporaryFolder()
    let files = FaultyFiles()
    let store = try await folder.open(files)
    try await store.put(try name("p/a"), [1])
    var elsewhere = try files.status(folder.path, following: true)
    elsewhere.device += 1
    for step in ["unmounted", "gone", "a file"] {
      switch step {
      case "unmounted": files.pretend(folder.path, elsewhere)
      case "gone":
        files.pretend(folder.path, nil)
        try FileManager.default.removeItem(atPath: folder.path)
      default: try Data().write(to: URL(fileURLWithPath: folder.path))
      }
      for (what, operation) in try everyOperation(store, try name("p/a")) {
        await #expect("\(what), \(step)") { try await operation() } throws: {
          cause($0) == .storeMissing && effect($0) == .notApplied
        }
      }
    }
  }

  @Test("symbolic links below the folder lead nowhere: not for reading, writing, deleting or listing")
  func symbolicLinks() async throws {
    let (folder, outside) = (try TemporaryFolder(), try TemporaryFolder())
    try outside.write("secret")
    try FileManager.default.createSymbolicLink(atPath: folder.path + "/p", withDestinationPath: outside.path)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path + "/direct", withDestinationPath: outside.path + "/secret")
    let store = try await folder.open()
    for object in [try name("p/secret"), try name("direct")] {
      await #expect { _ = try await store.get(object) } throws: { cause($0) == .notFound }
      await #expect { _ = try await store.head(object) } throws: { cause($0) == .notFound }
      await #expect { try await store.put(object, [1, 2, 3]) } throws: { cause($0) == .config }
      try await store.delete(object)
    }
    await #expect { try await store.put(try name("p/new"), [1]) } throws: { cause($0) == .config }
    #expect(try await store.listAll() == [])
    #expect(try await store.listAll(prefix: "p/") == [])
    #expect(outside.files() == ["secret"])
    #expect(folder.exists("p") && folder.exists("direct"))
  }

  @Test("a folder that is itself reached by a symbolic link works")
  func linkedRoot() async throws {
    let (folder, other) = (try TemporaryFolder(), try TemporaryFolder())
    try FileManager.default.createSymbolicLink(atPath: other.path + "/here", withDestinationPath: folder.path)
    let store = try await FolderStore.open(at: other.path + "/here")
    try await store.put(try name("p/a"), [1])
    #expect(folder.files() == ["p/a"])
    #expect(try await store.listAll().map(\.name.text) == ["p/a"])
  }

  @Test("a directory in place of an object, and a file in place of a directory, are named and left alone")
  func wrongKinds() async throws {
    let folder = try TemporaryFolder()
    try folder.write("file")
    try folder.write("dir/x")
    let store = try await folder.open()
    await #expect { try await store.put(try name("dir"), [1]) } throws: { cause($0) == .config }
    await #expect { try await store.put(try name("file/a"), [1]) } throws: { cause($0) == .config }
    await #expect { _ = try await store.get(try name("dir")) } throws: { cause($0) == .notFound }
    await #expect { _ = try await store.get(try name("file/a")) } throws: { cause($0) == .notFound }
    await #expect { _ = try await store.head(try name("dir")) } throws: { cause($0) == .notFound }
    try await store.delete(try name("dir"))
    try await store.delete(try name("file/a"))
    #expect(folder.files() == ["dir/x", "file"])
  }

  @Test("staging files that a crash left are never listed; those of a day ago are removed, by their exact name only")
  func leftovers() async throws {
    let folder = try TemporaryFolder()
    let others = [
      "p/.lk-tmp-0123456789abcde", "p/.lk-tmp-0123456789ABCDEF", "p/.lk-tmp-0123456789abcdef.bak", "p/lk_tmp",
      "p/.lk-tmp-",
    ]
    for name in others + ["p/.lk-tmp-0123456789abcdef"] { try folder.write(name) }
    let files = FaultyFiles()
    files.setTime(Int(Date().timeIntervalSince1970) + 86_000)
    let young = try await folder.open(files)
    try await young.put(try name("p/a"), [1])
    #expect(try await young.listAll().map(\.name.text) == ["p/a"])
    #expect(folder.exists("p/.lk-tmp-0123456789abcdef"))
    files.setTime(Int(Date().timeIntervalSince1970) + 87_000)
    let old = try await folder.open(files)
    try await old.put(try name("p/b"), [1])
    #expect(!folder.exists("p/.lk-tmp-0123456789abcdef"))
    #expect(folder.files() == (others + ["p/a", "p/b"]).sorted())
  }

  @Test("an object whose content was taken off this device is unavailable, neither absent nor damaged")
  func placeholders() async throws {
    let folder = try TemporaryFolder()
    let files = FaultyFiles()
    let store = try await folder.open(files)
    // A file that is all hole reads as what it is.
    try await store.put(try name("p/zeros"), [UInt8](repeating: 0, count: 10))
    let hole = open(folder.path + "/p/hole", O_CREAT | O_WRONLY, 0o600)
    ftruncate(hole, 100_000)
    close(hole)
    #expect(try await store.get(try name("p/hole")) == [UInt8](repeating: 0, count: 100_000))
    files.fail(every: .read, EIO)
    await #expect { _ = try await store.get(try name("p/hole")) } throws: {
      cause($0) == .unavailable && ($0 as? StorageError)?.detail.contains("not on this device") == true
    }
    files.fail(every: .read, nil)
    try folder.write("p/.away.icloud")
    try folder.write("p/cloudy.nextcloud")
    for object in [try name("p/away"), try name("p/cloudy")] {
      await #expect { _ = try await store.get(object) } throws: { cause($0) == .unavailable }
      await #expect { _ = try await store.head(object) } throws: { cause($0) == .unavailable }
    }
  }

  @Test("a size that a stranger's folder makes up is refused before anything is allocated")
  func hugeFile() async throws {
    let folder = try TemporaryFolder()
    let store = try await folder.open()
    let huge = open(folder.path + "/huge", O_CREAT | O_WRONLY, 0o600)
    ftruncate(huge, 1 << 40)
    close(huge)
    await #expect { _ = try await store.get(try name("huge")) } throws: { cause($0) == .tooLarge }
    #expect(try await store.get(try name("huge"), range: 5..<7) == [0, 0])
    await #expect { try await store.put(try name("huge"), [1]) } throws: { cause($0) == .alreadyExists }
  }

  @Test("the probe finds out about hard links, and leaves nothing behind")
  func probe() async throws {
    let folder = try TemporaryFolder()
    let files = FaultyFiles()
    let store = try await folder.open(files)
    #expect(try await store.probe().conditionalCreate == .atomic)
    files.fail(every: .link, EOPNOTSUPP)
    #expect(try await store.probe().conditionalCreate == .bestEffort)
    files.fail(every: .link, nil)
    files.fail(every: .create, EROFS)
    await #expect { _ = try await store.probe() } throws: { cause($0) == .readOnly }
    #expect(folder.files() == [])
  }

  @Test("a folder opens by its URL through the registry")
  func registry() async throws {
    let folder = try TemporaryFolder()
    var stores = StoreRegistry()
    stores.registerFolders()
    let locator = try stores.locator("new", relativeTo: folder.path)
    #expect(locator.text == "folder:\(folder.path)/new")
    await #expect { _ = try await stores.open(locator) } throws: { cause($0) == .storeMissing }
    let store = try await stores.open(locator, .create)
    _ = try await StoreMarker.create(in: store, id: .zero)
    #expect(folder.files() == ["new/latchkey-store"])
    #expect(throws: LocatorError.unknownScheme("s3", registered: ["folder"])) {
      try stores.locator("s3://bucket/prefix", relativeTo: folder.path)
    }
  }

  @Test("a task cancelled while it waits for its turn does nothing")
  func cancelled() async throws {
    let folder = try TemporaryFolder()
    let store = try await folder.open()
    let object = try name("p/a")
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await store.put(object, [1])
    }
    await #expect(throws: StorageError(.cancelled, .put, object)) { try await task.value }
    #expect(folder.files() == [])
  }
}

func cause(_ error: any Error) -> StorageError.Cause? { (error as? StorageError)?.cause }
func effect(_ error: any Error) -> StorageError.Effect? { (error as? StorageError)?.effect }

func everyOperation(
  _ store: FolderStore, _ object: ObjectName
) throws -> [(String, @Sendable () async throws -> Void)] {
  [
    ("put", { try await store.put(object, [1]) }), ("get", { _ = try await store.get(object) }),
    ("head", { _ = try await store.head(object) }),
    ("list", { _ = try await store.list(prefix: "", after: nil, limit: 9) }),
    ("list below", { _ = try await store.list(prefix: "p/", after: nil, limit: 9) }),
    ("delete", { try await store.delete(object) }), ("probe", { _ = try await store.probe() }),
  ]
}
