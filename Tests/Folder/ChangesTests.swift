#if os(Linux)
  import Foundation
  import LatchkeyEncoding
  import LatchkeyFolder
  import LatchkeyStorage
  import Testing

  @Suite("hints of changes in a folder")
  struct ChangesTests {
    @Test(
      "an object that somebody writes, also in a directory that is new, or deletes is hinted at",
      .timeLimit(.minutes(2)))
    func hints() async throws {
      let folder = try TemporaryFolder()
      let store = try await folder.open()
      let other = try await folder.open()
      let names = try ["aa/h/1", "aa/h/2", "aa/l/xy/3"].map { try #require(ObjectName($0)) }
      // Each time a stream of its own: what it hints at is nothing that came before.
      for name in names {
        var hints = try #require(store.changes()).makeAsyncIterator()
        try await other.put(name, [1, 2, 3])
        #expect(await hints.next() != nil)
      }
      var hints = try #require(store.changes()).makeAsyncIterator()
      try await other.delete(names[2])
      #expect(await hints.next() != nil)
      #expect(try await store.probe().hints)
    }

    @Test("a folder that is gone gives no hints")
    func gone() async throws {
      let folder = try TemporaryFolder()
      let store = try await FolderStore.open(at: folder.path)
      try FileManager.default.removeItem(atPath: folder.path)
      #expect(store.changes() == nil)
    }
  }
#endif
