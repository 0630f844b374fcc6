import LatchkeyEncoding
import LatchkeyFolder
import LatchkeyStorage
import Testing

/// The folder on a disk that loses its power between any two system calls, read back in every state that the disk may
/// be in.
@Suite struct CrashTests {
  private let earlier: [UInt8] = Array("an earlier object".utf8)
  private let bytes: [UInt8] = Array("the object that is being written".utf8)

  /// A disk with one confirmed object in the folder `/s`.
  private func disk() async throws -> CrashDisk {
    let disk = CrashDisk()
    let store = try await open(disk, .create)
    try await store.put(try name("p/h/earlier"), earlier)
    return disk
  }

  private func open(_ disk: CrashDisk, _ mode: OpenMode = .existing, token: UInt64 = 1) async throws -> FolderStore {
    try await FolderStore.open(at: "/s", mode, files: disk, token: { token })
  }

  /// - Parameter mustHave: whether the object was confirmed.
  private func check(_ disk: CrashDisk, _ object: ObjectName, mustHave: Bool, _ moment: String) async throws {
    // Another device, which draws other staging names.
    let store = try await open(disk, token: 2)
    #expect(try await store.get(try name("p/h/earlier")) == earlier, "\(moment): a confirmed object was lost")
    let found: [UInt8]?
    do { found = try await store.get(object) } catch {
      #expect(error.cause == .notFound, "\(moment): \(error)")
      found = nil
    }
    #expect(found == nil || found == bytes, "\(moment): a part of the object can be read")
    let isThere = found != nil
    #expect(isThere || !mustHave, "\(moment): it was confirmed and is lost")
    let names = try await store.listAll().map(\.name)
    let expected = isThere ? [try name("p/h/earlier"), object].sorted() : [try name("p/h/earlier")]
    #expect(names == expected, "\(moment): listed \(names)")
    try await store.put(object, bytes)
    #expect(try await store.get(object) == bytes, "\(moment): the retry did not write it")
  }

  @Test(
    "after a power cut between any two calls, an object is wholly there or not at all, and a retry completes it",
    arguments: ["p/h/new", "p/l/ab/new", "new"])
  func powerCuts(_ text: String) async throws {
    let object = try name(text)
    var states = 0
    for call in 0..<1000 {
      let disk = try await disk()
      let store = try await open(disk)
      disk.crash(at: call)
      var confirmed = false
      do {
        try await store.put(object, bytes)
        confirmed = true
      } catch {
        #expect(error.isRetryable, "\(error)")
      }
      for state in disk.afterPowerCut() {
        states += 1
        try await check(state, object, mustHave: confirmed, "power cut before call \(call)")
      }
      // Confirmed before the power failed: every call was made.
      if confirmed, disk.calls < call { break }
    }
    #expect(states > 50)
  }

  @Test("a sync that fails is reported, whichever it is, and the retry's success means that it is on the medium")
  func failingSyncs() async throws {
    let object = try name("q/l/ab/new")
    for sync in 0..<100 {
      let disk = try await disk()
      let store = try await open(disk)
      disk.failSync(at: sync)
      var wasReported = false
      do { try await store.put(object, bytes) } catch {
        wasReported = true
        #expect(error.cause == .unavailable)
        try await store.put(object, bytes)
      }
      if disk.syncs <= sync {
        #expect(!wasReported)
        #expect(sync == 5, "three directories, the file and its entry are synced")
        break
      }
      #expect(wasReported, "sync \(sync) failed and nobody said so")
      for state in disk.afterPowerCut() {
        try await check(state, object, mustHave: true, "sync \(sync) failed, then retried")
      }
    }
  }

  @Test("what another device had written but not synced is on the medium once we confirm it")
  func confirmsForOthers() async throws {
    let object = try name("q/l/new")
    for call in 0..<1000 {
      let disk = try await disk()
      let writer = try await open(disk)
      disk.crash(at: call)
      var confirmed = false
      do {
        try await writer.put(object, bytes)
        confirmed = true
      } catch {}
      let calls = disk.calls
      // Only the program died: the disk goes on as it is.
      disk.crash(at: nil)
      let second = try await open(disk, token: 3)
      try await second.put(object, bytes)
      for state in disk.afterPowerCut() {
        try await check(state, object, mustHave: true, "killed before call \(call), then confirmed by another")
      }
      if confirmed, calls < call { break }
    }
  }

  @Test("a confirmed delete stays one")
  func deletes() async throws {
    let disk = try await disk()
    let store = try await open(disk)
    try await store.delete(try name("p/h/earlier"))
    for state in disk.afterPowerCut() {
      #expect(try await open(state).listAll().isEmpty)
    }
  }

  @Test("a folder that was made is on the medium, and so is the first object in it")
  func createdFolder() async throws {
    let disk = CrashDisk()
    _ = try await open(disk, .create)
    for state in disk.afterPowerCut() { _ = try await open(state) }
  }
}

func name(_ text: String) throws -> ObjectName { try #require(ObjectName(text)) }
