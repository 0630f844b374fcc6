import Foundation
import LatchkeyEncoding
import LatchkeyStorage
import Testing

@testable import LatchkeyFolder

/// Every system call of the adapter fails once, in every way.
@Suite struct FaultTests {
  private let bytes = [UInt8]((0..<2000).map { UInt8($0 % 251) })

  @Test(
    "whichever call of a put fails, the object is wholly there or not there, the failure is told, and a retry succeeds",
    arguments: [EIO, ENOSPC, EDQUOT, EROFS, EACCES, ESTALE, ENOENT, EINTR], [false, true])
  func everyStep(_ code: Int32, _ afterwards: Bool) async throws {
    let object = try name("p/l/x")
    for index in 0..<100 {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      let store = try await folder.open(files)
      files.fail(at: index, .init(code: code, afterwards: afterwards))
      var failure: StorageError?
      do throws(StorageError) { try await store.put(object, bytes) } catch { failure = error }
      let calls = files.calls
      if calls.count <= index {
        #expect(failure == nil)
        #expect(index > 12)
        break
      }
      let step = "call \(index), \(calls[index]), errno \(code)"
      let other = try await folder.open()
      let listed = try await other.listAll()
      if listed.isEmpty {
        #expect(failure != nil, "\(step): success was reported and nothing is there")
        await #expect { _ = try await other.get(object) } throws: { cause($0) == .notFound }
      } else {
        #expect(listed == [.init(name: object, size: bytes.count)], "\(step)")
        #expect(try await other.get(object) == bytes, "\(step): a part is visible")
        if let failure { #expect(failure.effect == .unknown, "\(step): it is there, but not applied was said") }
      }
      if [.write, .sync, .close, .create, .syncDirectory].contains(calls[index]) {
        #expect(failure != nil, "\(step): was not reported")
      }
      files.fail(at: nil)
      try await store.put(object, bytes)
      #expect(try await other.get(object) == bytes, "\(step): after the retry")
    }
  }

  @Test("a failed fsync of the file is never repeated: what follows is a new file")
  func syncIsNotRepeated() async throws {
    let (folder, files) = (try TemporaryFolder(), FaultyFiles())
    let store = try await folder.open(files)
    files.fail(every: .sync, EIO)
    files.fail(at: nil)
    await #expect { try await store.put(try name("a"), bytes) } throws: { cause($0) == .unavailable }
    #expect(files.calls.filter { $0 == .sync }.count == 1)
    #expect(folder.files() == [])
    files.fail(every: .sync, nil)
    files.fail(at: nil)
    try await store.put(try name("a"), bytes)
    #expect(files.calls.contains(.create) && files.calls.contains(.write))
  }

  @Test("a full disk is a full store, at whichever call it shows", arguments: [ENOSPC, EDQUOT])
  func quota(_ code: Int32) async throws {
    for call in [FaultyFiles.Call.create, .write, .sync, .close, .makeDirectory, .link] {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      let store = try await folder.open(files)
      files.fail(every: call, code)
      await #expect("\(call)") { try await store.put(try name("p/a"), bytes) } throws: { cause($0) == .quotaExceeded }
      #expect(folder.files() == [], "\(call)")
      files.fail(every: call, nil)
      try await store.put(try name("p/a"), bytes)
      #expect(folder.files() == ["p/a"])
    }
  }

  @Test("errors of the system become causes that a caller can act on")
  func translation() async throws {
    let expected: [(Int32, StorageError.Cause)] = [
      (EROFS, .readOnly), (EACCES, .forbidden), (EPERM, .forbidden), (ENOSPC, .quotaExceeded), (EDQUOT, .quotaExceeded),
      (ESTALE, .storeMissing), (ENOTCONN, .storeMissing), (ENODEV, .storeMissing), (EIO, .unavailable),
      (EMFILE, .unavailable), (ETIMEDOUT, .timeout), (EFBIG, .tooLarge), (ENAMETOOLONG, .config),
    ]
    for (code, cause) in expected {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      let store = try await folder.open(files)
      try await store.put(try name("p/a"), bytes)
      for (call, run) in [
        (FaultyFiles.Call.create, { @Sendable in try await store.put(try name("p/b"), [1]) }),
        (.open, { @Sendable in _ = try await store.get(try name("p/a")) }),
        (.read, { @Sendable in _ = try await store.get(try name("p/a")) }),
        (.entries, { @Sendable in _ = try await store.list(prefix: "", after: nil, limit: 1) }),
        (.unlink, { @Sendable in try await store.delete(try name("p/a")) }),
      ] {
        files.fail(every: call, code)
        await #expect("\(call) \(code)") { try await run() } throws: {
          ($0 as? StorageError)?.cause == cause && ($0 as? StorageError)?.detail.isEmpty == false
        }
        files.fail(every: call, nil)
      }
      #expect(folder.files() == ["p/a"])
    }
  }

  @Test("a file system that cannot sync directories is used all the same, and no other failure is passed over")
  func directorySync() async throws {
    for code in [EINVAL, ENOTSUP, EOPNOTSUPP, ENOTTY] {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      files.fail(every: .syncDirectory, code)
      try await folder.open(files).put(try name("p/a"), bytes)
      #expect(folder.files() == ["p/a"])
    }
    for code in [EIO, ENOENT, EACCES, EINTR, ENOSPC] {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      files.fail(every: .syncDirectory, code)
      let store = try await folder.open(files)
      await #expect(throws: StorageError.self) { try await store.put(try name("a"), bytes) }
    }
  }

  @Test("SMB's word for a directory that it cannot force onto the medium is not taken for one that is gone")
  func directorySyncOnSMB() throws {
    #expect(PosixFiles.syncFailure(ENOENT) == EINVAL && PosixFiles.syncFailure(EIO) == EIO)
    let error = #expect(throws: SystemCallError.self) { try PosixFiles().syncDirectory("/nonexistent/place") }
    #expect(error?.code == ENOENT)
  }

  @Test("a name that is away for a moment, as on NFS while it is moved there, is looked for once more")
  func awayForAMoment() async throws {
    for code in [ENOENT, ESTALE] {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      let store = try await folder.open(files)
      try await store.put(try name("p/a"), bytes)
      files.fail(at: nil)
      #expect(try await store.get(try name("p/a")) == bytes)
      let last = try #require(files.calls.firstIndex(of: .open))
      files.fail(at: last, .init(code: code))
      if code == ENOENT {
        #expect(try await store.get(try name("p/a")) == bytes)
      } else {
        await #expect { _ = try await store.get(try name("p/a")) } throws: { cause($0) == .storeMissing }
      }
      files.fail(at: nil)
      #expect(try await store.head(try name("p/a")) == bytes.count)
      let look = try #require(files.calls.lastIndex(of: .status))
      files.fail(at: look, .init(code: ENOENT))
      #expect(try await store.head(try name("p/a")) == bytes.count)
    }
  }

  @Test("a lost reply to a link is found out by comparing")
  func lostLink() async throws {
    for code in [EEXIST, EIO, ETIMEDOUT] {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      files.fail(every: .link, code, afterwards: true)
      let store = try await folder.open(files)
      try await store.put(try name("p/a"), bytes)
      #expect(folder.files() == ["p/a"])
    }
    // Not performed: then it is the failure, and whether it was is not known.
    let (folder, files) = (try TemporaryFolder(), FaultyFiles())
    files.fail(every: .link, ETIMEDOUT)
    await #expect { try await folder.open(files).put(try name("p/a"), bytes) } throws: {
      cause($0) == .timeout && effect($0) == .unknown
    }
    #expect(folder.files() == [])
  }

  @Test("without hard links it renames after looking, and still refuses other bytes")
  func noLinks() async throws {
    for code in [ENOTSUP, EPERM, ENOSYS, EMLINK] {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      files.fail(every: .link, code)
      let store = try await folder.open(files)
      try await store.put(try name("p/a"), bytes)
      try await store.put(try name("p/a"), bytes)
      try await store.put(try name("p/b"), bytes)
      await #expect { try await store.put(try name("p/a"), [1]) } throws: { cause($0) == .alreadyExists }
      #expect(try await store.get(try name("p/a")) == bytes)
      #expect(files.calls.filter { $0 == .link }.count == 1, "once is enough to know")
      #expect(folder.files() == ["p/a", "p/b"])
    }
  }

  @Test("without hard links, who is overtaken between looking and renaming is told so, not that it succeeded")
  func overtaken() async throws {
    let (folder, files) = (try TemporaryFolder(), FaultyFiles())
    files.fail(every: .link, EPERM)
    let store = try await folder.open(files)
    files.after(.rename) { try? folder.write("p/a", [7]) }
    await #expect { try await store.put(try name("p/a"), bytes) } throws: {
      cause($0) == .alreadyExists && effect($0) == .unknown
    }
    #expect(try await store.get(try name("p/a")) == [7])
  }

  @Test("who finds the name taken between looking and linking compares: the same bytes are a success, others are not")
  func takenMeanwhile() async throws {
    let (folder, files) = (try TemporaryFolder(), FaultyFiles())
    let store = try await folder.open(files)
    let same = bytes
    files.after(.sync) { try? folder.write("p/a", same) }
    try await store.put(try name("p/a"), bytes)
    files.after(.sync) { try? folder.write("p/b", [7]) }
    await #expect { try await store.put(try name("p/b"), bytes) } throws: { cause($0) == .alreadyExists }
    #expect(try await store.get(try name("p/b")) == [7])
    #expect(folder.files() == ["p/a", "p/b"])
  }

  @Test("writes that take only a few bytes at a time add up")
  func shortWrites() async throws {
    let (folder, files) = (try TemporaryFolder(), FaultyFiles())
    files.writeInPieces()
    let store = try await folder.open(files)
    try await store.put(try name("p/a"), bytes)
    #expect(try await store.get(try name("p/a")) == bytes)
    #expect(files.calls.filter { $0 == .write }.count > 200)
  }

  @Test("a file that is shorter than it says is truncated, never short bytes")
  func shortRead() async throws {
    let folder = try TemporaryFolder()
    let store = try await folder.open(ShrinkingFiles())
    try await store.put(try name("a"), bytes)
    for range in [nil, 10..<20, 1990..<2000] as [Range<Int>?] {
      await #expect { _ = try await store.get(try name("a"), range: range) } throws: { cause($0) == .truncated }
    }
  }

  @Test("a listing during which a directory cannot be read throws; one during which it is removed does not")
  func listing() async throws {
    let (folder, files) = (try TemporaryFolder(), FaultyFiles())
    let store = try await folder.open(files)
    for text in ["a/1", "b/1", "c/1"] { try await store.put(try name(text), [1]) }
    var calls = 0
    while true {
      files.fail(at: calls, .init(code: EIO))
      do {
        let page = try await store.list(prefix: "", after: nil, limit: 10)
        #expect(page.entries.count == 3)
        break
      } catch { #expect(error.cause == .unavailable) }
      calls += 1
    }
    #expect(calls > 6, "every call counts")
    // Entries of the root, then those of `a`.
    files.fail(at: 2, .init(code: ENOENT))
    #expect(try await store.list(prefix: "", after: nil, limit: 10).entries.map(\.name.text) == ["b/1", "c/1"])
  }

  @Test("a folder that goes away in the middle of a listing is a missing store, not the end of the listing")
  func vanishesWhileListing() async throws {
    for call in [FaultyFiles.Call.entries, .status] {
      let (folder, files) = (try TemporaryFolder(), FaultyFiles())
      let store = try await folder.open(files)
      for text in ["a/1", "b/1"] { try await store.put(try name(text), [1]) }
      files.after(call) { try? FileManager.default.removeItem(atPath: folder.path) }
      await #expect("\(call)") { _ = try await store.list(prefix: "", after: nil, limit: 10) } throws: {
        cause($0) == .storeMissing
      }
    }
  }

  @Test("no descriptor stays open, whatever fails")
  func descriptors() async throws {
    let (folder, files) = (try TemporaryFolder(), FaultyFiles())
    let store = try await folder.open(files)
    try await store.put(try name("p/a"), bytes)
    let operations = try everyOperation(store, try name("p/a"))
    func count() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        .filter {
          (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))?.contains(folder.path)
            ?? false
        }
        .count
    }
    for (_, operation) in operations {
      for index in 0..<30 {
        files.fail(at: index, .init(code: EIO))
        do { try await operation() } catch is StorageError {}
      }
    }
    files.fail(at: nil)
    #expect(try count() == 0)
  }
}

/// Says that files are longer than they are.
private struct ShrinkingFiles: FileOperations {
  let files = PosixFiles()
  func status(_ file: Descriptor) throws(SystemCallError) -> FileStatus { try files.status(file) }
  func read(_ file: Descriptor, at offset: Int, count: Int) throws(SystemCallError) -> [UInt8] {
    offset >= 15 ? [] : Array(try files.read(file, at: offset, count: min(count, 15 - offset)))
  }
  func status(_ path: String, following: Bool) throws(SystemCallError) -> FileStatus {
    try files.status(path, following: following)
  }
  func entries(_ path: String) throws(SystemCallError) -> [DirectoryEntry] { try files.entries(path) }
  func create(_ path: String) throws(SystemCallError) -> Descriptor { try files.create(path) }
  func open(_ path: String) throws(SystemCallError) -> Descriptor { try files.open(path) }
  func write(_ file: Descriptor, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    try files.write(file, bytes)
  }
  func sync(_ file: Descriptor) throws(SystemCallError) { try files.sync(file) }
  func close(_ file: Descriptor) throws(SystemCallError) { try files.close(file) }
  func syncDirectory(_ path: String) throws(SystemCallError) { try files.syncDirectory(path) }
  func link(_ path: String, _ new: String) throws(SystemCallError) { try files.link(path, new) }
  func rename(_ path: String, _ new: String) throws(SystemCallError) { try files.rename(path, new) }
  func unlink(_ path: String) throws(SystemCallError) { try files.unlink(path) }
  func makeDirectory(_ path: String) throws(SystemCallError) { try files.makeDirectory(path) }
  func removeDirectory(_ path: String) throws(SystemCallError) { try files.removeDirectory(path) }
  func now() -> Int { files.now() }
}
