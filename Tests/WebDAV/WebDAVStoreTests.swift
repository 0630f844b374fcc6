import LatchkeyConformance
import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyStorage
import Testing

@testable import LatchkeyWebDAV

@Suite("WebDAV: the contract")
struct WebDAVStoreTests {
  @Test(
    "the adapter keeps the contract on servers of every manner",
    arguments: ["well-behaved", "like nginx", "like Apache behind a proxy", "like an odd one", "overwriting", "deep"])
  func conformance(manner name: String) async throws {
    var manner = ScriptedWebDAV.Manner()
    switch name {
    case "like nginx":
      (manner.hidesAbsence, manner.needsSlash, manner.lacksDirectory) = (true, true, 500)
      (manner.namespace, manner.answersInParts) = (.standard, true)
    case "like Apache behind a proxy":
      (manner.references, manner.namespace, manner.destination) = (.foreign, .repeated, .addressOnly)
      (manner.madeAlready, manner.exists) = (301, 412)
    case "like an odd one":
      (manner.references, manner.namespace, manner.destination) = (.escaped, .undeclared, .pathOnly)
      (manner.madeAlready, manner.lacksDirectory, manner.exists) = (409, 404, 409)
      (manner.hidesSize, manner.ignoresRange, manner.redirectsDirectories) = (true, true, false)
    case "overwriting": (manner.exists, manner.madeAlready, manner.authentication) = (nil, 201, .digest)
    case "deep": (manner.answersDeeply, manner.namesAbsentProperties, manner.exists) = (true, true, 500)
    default: break
    }
    let service = try ScriptedWebDAV(manner)
    // What differs is answers, not numbers.
    let report = await runConformance(
      ConformanceFactory(run: "dav", extent: .short) {
        try await service.open()
      } plantDebris: { prefix in
        for name in ["UPPER", ".hidden", "sp ace", "a&b", "lk_tmp_0123456789abcdef", "x.part"] {
          service.place(prefix + name, [1, 2, 3])
        }
        service.place("\(prefix)Folder/inside", [9])
      } checkDebris: { prefix in
        #expect(service.files["\(prefix)UPPER"] == [1, 2, 3])
        #expect(service.files["\(prefix)lk_tmp_0123456789abcdef"] == [1, 2, 3])
        #expect(service.files["\(prefix)Folder/inside"] == [9])
      })
    #expect(report.passed, "\(report)")
    // Directories are gone too, but for those with other programs' files.
    let left = Set(
      service.nodes.keys.filter { $0.contains("lkc-dav-") }.compactMap { $0.split(separator: "/").dropFirst(3).first })
    #expect(left == ["lkc-dav-19"])
    #expect(!service.files.keys.contains { !$0.contains("/") && $0.hasPrefix(WebDAVStore.stagingMark) })
  }

  @Test("an upload is three requests once its directory is there and moves are known to be safe; a listing one")
  func requestCounts() async throws {
    let service = try ScriptedWebDAV()
    let store = try await service.open()
    _ = try await store.probe()
    let names = try (0..<2).map { try #require(ObjectName("n/\($0)")) }
    try await store.put(names[0], [1])
    var before = service.server.requests.count
    func spent() -> Int {
      defer { before = service.server.requests.count }
      return service.server.requests.count - before
    }
    try await store.put(names[1], [2])
    #expect(spent() == 3)
    _ = try await store.get(names[1])
    #expect(spent() == 1)
    _ = try await store.head(names[1])
    #expect(spent() == 1)
    _ = try await store.list(prefix: "n/", after: nil, limit: 10)
    #expect(spent() == 1)
    try await store.delete(names[1])
    #expect(spent() == 2)
  }

  @Test("a session that writes little looks before it moves, and one that writes more finds out whether it must")
  func looking() async throws {
    let service = try ScriptedWebDAV()
    let store = try await service.open()
    for index in 0..<10 { try await store.put(try #require(ObjectName("n/\(index)")), [UInt8(index)]) }
    #expect(service.files.count == 10)
    // Four looks, each beside that at the upload; then a trial of two uploads.
    #expect(service.count("PUT") == 12)
    #expect(service.count("PROPFIND") == 1 + 10 + 4)
  }

  @Test("what is sent is what every server takes: a depth, an exact length, no redirects, no lock, no secret in a path")
  func fields() async throws {
    let service = try ScriptedWebDAV()
    let store = try await service.open()
    try await store.put(try #require(ObjectName("a/b")), [1, 2, 3])
    _ = try await store.get(try #require(ObjectName("a/b")))
    for request in service.server.requests {
      #expect(request.header("Accept-Encoding") == "identity")
      #expect(request.header("Transfer-Encoding") == nil && request.header("Expect") == nil)
      #expect(!request.target.contains("hunter2"))
      switch request.method {
      case "PROPFIND": #expect(["0", "1"].contains(request.header("Depth") ?? ""))
      case "PUT": #expect(request.header("Content-Length") == "3")
      case "MOVE":
        #expect(request.header("Overwrite") == "F" && request.header("Depth") == nil)
        #expect(request.header("Destination")?.hasSuffix("/dav/pre%20fix/household/a/b") == true)
      case "MKCOL": #expect(request.path.hasSuffix("/"))
      case "GET": #expect(request.header("Translate") == "f")
      default: break
      }
    }
  }

  @Test("a folder that is not there is made with those above it where that was asked for, and missing where not")
  func makingFolders() async throws {
    let service = try ScriptedWebDAV(hasFolder: false)
    let missing = await #expect(throws: StorageError.self) { _ = try await service.open() }
    #expect(missing?.cause == .storeMissing)
    #expect(missing?.description.contains("/dav/pre%20fix/household/") == true)
    let store = try await service.open(nil, .create)
    #expect(service.nodes["dav/pre fix/household"] == .directory)
    #expect(try await StoreMarker.read(store) == .absent(empty: true))
  }

  @Test("a folder that goes away is a missing store to every operation, and never an empty one or made again")
  func vanishing() async throws {
    let service = try ScriptedWebDAV()
    let store = try await service.open()
    let name = try #require(ObjectName("n/1"))
    try await store.put(name, [1])
    service.remove("dav/pre fix")
    for operation in [
      { _ = try await store.get(name) }, { try await store.put(name, [1]) }, { _ = try await store.head(name) },
      { try await store.delete(name) }, { _ = try await store.listAll() },
      { _ = try await store.listAll(prefix: "n/") },
      { _ = try await store.probe() },
    ] as [() async throws -> Void] {
      let error = await #expect(throws: StorageError.self) { try await operation() }
      #expect(error?.cause == .storeMissing)
    }
    #expect(service.nodes.keys.sorted() == ["", "dav"])
  }

  @Test("the probe says what was found, never promises a single winner, and deletes old leftovers of uploads only")
  func probing() async throws {
    for (exists, expected) in [(412, .bestEffort), (409, .bestEffort), (nil, .none)]
      as [(Int?, Capabilities.ConditionalCreate)]
    {
      var manner = ScriptedWebDAV.Manner()
      manner.exists = exists
      let service = try ScriptedWebDAV(manner)
      let day = 86_400
      service.place("lk_tmp_0000000000000001", [1], modified: ScriptedWebDAV.time - day - 1)
      service.place("lk_tmp_0000000000000002", [1], modified: ScriptedWebDAV.time - day + 1)
      service.place("lk_tmp_mine", [1], modified: 0)
      service.place("d/lk_tmp_0000000000000003", [1], modified: 0)
      let store = try await service.open()
      #expect(try await store.probe().conditionalCreate == expected)
      #expect(
        service.files.keys.sorted() == [
          "d/lk_tmp_0000000000000003", "lk_tmp_0000000000000002", "lk_tmp_mine",
        ])
    }
  }

  @Test("the name of a directory is no object: it is not read, and deleting it deletes nothing")
  func directories() async throws {
    let service = try ScriptedWebDAV()
    service.place("n/1", [1])
    let store = try await service.open()
    let directory = try #require(ObjectName("n"))
    #expect(await failure { _ = try await store.get(directory) }?.cause == .notFound)
    #expect(await failure { _ = try await store.head(directory) }?.cause == .notFound)
    #expect(await failure { try await store.put(directory, [1]) }?.cause == .alreadyExists)
    try await store.delete(directory)
    #expect(service.files == ["n/1": [1]])
  }

  @Test("empty directories of one's own are removed, and none that holds anything at all")
  func tidying() async throws {
    let service = try ScriptedWebDAV()
    let store = try await service.open()
    for name in ["mine/a/b", "mine/c", "other/a"] { service.place(name, nil) }
    service.place("mine/d/.hidden", [1])
    service.place("mine/Upper", nil)
    try await store.removeEmptyDirectories(under: "mine/")
    try await store.removeEmptyDirectories(under: "absent/")
    let below = service.nodes.keys.filter { $0.hasPrefix(ScriptedWebDAV.folder + "/") }
      .map { $0.dropFirst(ScriptedWebDAV.folder.count + 1) }.sorted()
    #expect(below == ["mine", "mine/Upper", "mine/d", "mine/d/.hidden", "other", "other/a"])
  }

  private func failure(_ body: () async throws -> Void) async -> StorageError? {
    await #expect(throws: StorageError.self) { try await body() }
  }
}
