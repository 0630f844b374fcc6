internal import LatchkeyEncoding
internal import LatchkeyStorage

/// Every case, in the order in which they run.
let conformanceCases: [ConformanceCase] = objectCases + creationCases + listingCases + neighbourCases

private let objectCases: [ConformanceCase] = [
  ConformanceCase("absent", "what is not there is notFound to get and head, and deleting it succeeds") { bench in
    let name = try bench.name("h/nothing")
    for store in [bench.one, bench.other] {
      try await bench.expect(.notFound, "get") { _ = try await store.get(name) }
      try await bench.expect(.notFound, "get of a range") { _ = try await store.get(name, range: 0..<1) }
      try await bench.expect(.notFound, "head") { _ = try await store.head(name) }
      try await store.delete(name)
    }
  },
  ConformanceCase("sizes", "from none to millions of bytes come back as they were") { bench in
    for (index, count) in [0, 1, 4095, 4096, 4097, bench.count(5 << 20, 300_000)].enumerated() {
      let (name, bytes) = (try bench.name("size/\(index)"), bench.bytes(count, seed: UInt64(count)))
      try await bench.one.put(name, bytes)
      try await bench.expectContent(name, bytes, bench.other, "\(count) bytes")
    }
  },
  ConformanceCase("byte-values", "all 256 byte values survive, also where a text would be changed") { bench in
    let name = try bench.name("values")
    let bytes = (0...255).map { UInt8($0) } + Array("\r\n\u{feff}\u{0}%2f\u{1a}".utf8)
    try await bench.one.put(name, bytes)
    try await bench.expectContent(name, bytes, bench.other, "all byte values")
  },
  ConformanceCase("names", "the longest name, the shortest, digits, and one to three slashes work") { bench in
    let room = ObjectName.maximumLength - bench.prefix.utf8.count
    for rest in ["a", "0", "a/b", "a-1/b/c9", String(repeating: "n", count: room)] where rest.count <= room {
      // A name is never a folder of others: each below one of its own.
      let name = try bench.name(rest.contains("/") ? "x" + rest : rest)
      try await bench.one.put(name, Array(rest.utf8))
      try await bench.expectContent(name, Array(rest.utf8), bench.other, name.text)
    }
  },
  ConformanceCase("ranges", "a range gives exactly its bytes, and none that is empty or goes past the end") { bench in
    let (name, bytes) = (try bench.name("range"), bench.bytes(10_000))
    try await bench.one.put(name, bytes)
    for range in [0..<1, 0..<10_000, 1..<4097, 4096..<8192, 9_999..<10_000] {
      let part = try await bench.other.get(name, range: range)
      try bench.expect(part == Array(bytes[range]), "range \(range) gave other bytes")
    }
    for range in [0..<0, 5..<5, 0..<10_001, 9_999..<10_001, 10_000..<10_001, 20_000..<20_001] {
      try await bench.expect(.invalidRange, "range \(range)") { _ = try await bench.other.get(name, range: range) }
    }
    let empty = try bench.name("empty")
    try await bench.one.put(empty, [])
    try await bench.expect(.invalidRange, "a range of an empty object") {
      _ = try await bench.other.get(empty, range: 0..<1)
    }
  },
  ConformanceCase("delete", "deleting is idempotent, seen by the other connection, and the name is free again") {
    bench in
    let name = try bench.name("d/once")
    try await bench.one.put(name, [1])
    try await bench.other.delete(name)
    try await bench.expect(.notFound, "get after delete") { _ = try await bench.one.get(name) }
    try await bench.one.delete(name)
    try await bench.other.delete(name)
    try await bench.one.put(name, [2])
    try await bench.expectContent(name, [2], bench.other, "written again")
    async let first: Void = bench.one.delete(name)
    async let second: Void = bench.other.delete(name)
    _ = try await (first, second)
    try await bench.expect(.notFound, "get after two deletes") { _ = try await bench.one.get(name) }
  },
]

private let creationCases: [ConformanceCase] = [
  ConformanceCase("create-same", "the same bytes again are a success, from any connection") { bench in
    let (name, bytes) = (try bench.name("c/same"), bench.bytes(5000))
    for store in [bench.one, bench.one, bench.other] { try await store.put(name, bytes) }
    try await bench.expectContent(name, bytes, bench.other, "written three times")
  },
  ConformanceCase("create-different", "other bytes are refused, and what was there stays") { bench in
    let (name, bytes) = (try bench.name("c/different"), bench.bytes(5000))
    try await bench.one.put(name, bytes)
    // Of the same length, one byte changed at either end; shorter; longer; none.
    var (first, last) = (bytes, bytes)
    first[0] ^= 1
    last[4999] ^= 1
    for wrong in [first, last, Array(bytes.dropLast()), bytes + [0], []] {
      try await bench.expect(.alreadyExists, "other bytes") { try await bench.other.put(name, wrong) }
    }
    try await bench.expectContent(name, bytes, bench.one, "after five refusals")
  },
  ConformanceCase("create-race", "of eight that create one name at once, one wins, and all see its bytes") { bench in
    let atomic = try await bench.one.probe().conditionalCreate == .atomic
    for round in 0..<bench.count(8, 2) {
      let name = try bench.name("race/\(round)")
      let winners = try await withThrowingTaskGroup(of: Int?.self) { group in
        for racer in 0..<8 {
          group.addTask {
            let bytes = bench.bytes(2000, seed: UInt64(racer + 1))
            do {
              try await (racer % 2 == 0 ? bench.one : bench.other).put(name, bytes)
              return racer
            } catch let error as StorageError where error.cause == .alreadyExists { return nil }
          }
        }
        return try await group.reduce(into: [Int]()) { if let racer = $1 { $0.append(racer) } }
      }
      try bench.expect(!winners.isEmpty, "round \(round): nobody won")
      try bench.expect(!atomic || winners.count == 1, "round \(round): \(winners.count) winners")
      let content = try await bench.one.get(name)
      try bench.expect(
        winners.contains { bench.bytes(2000, seed: UInt64($0 + 1)) == content },
        "round \(round): what is there is not what a winner wrote")
      try await bench.expectContent(name, content, bench.other, "round \(round)")
    }
  },
  ConformanceCase("create-race-same", "eight that create one name with the same bytes all succeed") { bench in
    let (name, bytes) = (try bench.name("race/same"), bench.bytes(20_000))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for racer in 0..<8 {
        group.addTask { try await (racer % 2 == 0 ? bench.one : bench.other).put(name, bytes) }
      }
      try await group.waitForAll()
    }
    try await bench.expectContent(name, bytes, bench.other, "after the race")
  },
  ConformanceCase("read-after-write", "the other connection reads and lists at once what was written") { bench in
    for round in 0..<bench.count(20, 4) {
      let (name, bytes) = (try bench.name("raw/\(round)"), bench.bytes(300, seed: UInt64(round + 1)))
      let (writer, reader) = round % 2 == 0 ? (bench.one, bench.other) : (bench.other, bench.one)
      try await writer.put(name, bytes)
      try await bench.expectContent(name, bytes, reader, "round \(round)")
      let listed = try await reader.listAll(prefix: bench.prefix + "raw/")
      try bench.expect(
        listed.contains(ListPage.Entry(name: name, size: 300)), "round \(round): what was written is not listed")
    }
  },
  ConformanceCase("whole-or-nothing", "a reader sees a large object wholly or not at all while it is written") {
    bench in
    for round in 0..<bench.count(4, 1) {
      let size = bench.count(5 << 20, 1 << 20)
      let (name, bytes) = (try bench.name("slow/\(round)"), bench.bytes(size, seed: UInt64(round + 1)))
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await bench.one.put(name, bytes) }
        group.addTask {
          // Until it is seen, at most; the number only ends a store that never shows it.
          for _ in 0..<100_000 {
            let listed = try await bench.other.listAll(prefix: bench.prefix + "slow/").filter { $0.name == name }
            do {
              let size = try await bench.other.head(name)
              try bench.expect(size == bytes.count, "\(size) of \(bytes.count) bytes are visible")
              let read = try await bench.other.get(name)
              try bench.expect(read == bytes, "\(read.count) bytes were read, not those of the writer")
              return
            } catch let error as StorageError where error.cause == .notFound {
              try bench.expect(listed.isEmpty, "it is listed before it can be read")
            }
            await Task.yield()
          }
          throw Violation("it never became visible")
        }
        try await group.waitForAll()
      }
    }
  },
]

private let listingCases: [ConformanceCase] = [
  ConformanceCase("list-empty", "a prefix without objects lists as one empty page") { bench in
    let page = try await bench.one.list(prefix: bench.prefix + "none/", after: nil, limit: 10)
    try bench.expect(page == ListPage(entries: [], isLast: true), "\(page)")
  },
  ConformanceCase("list-prefix", "a prefix lists what is below it at any depth, and nothing beside it") { bench in
    let inside = ["p/a", "p/b/c", "p/b/d"]
    for rest in inside + ["p-a/x", "pa/x", "q/x", "o/x"] { try await bench.one.put(try bench.name(rest), [7]) }
    let found = try await bench.other.listAll(prefix: bench.prefix + "p/").map(\.name)
    try bench.expect(found == (try inside.map(bench.name)), "listed \(found)")
    let deeper = try await bench.other.listAll(prefix: bench.prefix + "p/b/").map(\.name)
    try bench.expect(deeper == (try ["p/b/c", "p/b/d"].map(bench.name)), "listed \(deeper)")
    // A store that is in use may hold very much.
    guard bench.factory.extent == .full else { return }
    let everything = try await bench.other.listAll().filter { $0.name.text.hasPrefix(bench.prefix) }
    try bench.expect(everything.count == 7, "the empty prefix lists \(everything.count) of 7")
  },
  ConformanceCase("list-order", "a listing is in byte order of whole names, whatever the depth, with sizes") { bench in
    let rests = ["a-b/c", "a/b", "a/c-0", "a/c/d", "a0/b", "b", "b-a", "b0", "0/z", "z"]
    for (index, rest) in rests.enumerated() {
      try await bench.one.put(try bench.name(rest), bench.bytes(index))
    }
    let found = try await bench.other.listAll(prefix: bench.prefix)
    let expected = try rests.enumerated().map { ListPage.Entry(name: try bench.name($1), size: $0) }
    try bench.expect(found == expected.sorted { $0.name < $1.name }, "listed \(found)")
    let piecemeal = try await bench.other.listAll(prefix: bench.prefix, pageSize: 1)
    try bench.expect(piecemeal == found, "one at a time it lists \(piecemeal)")
  },
  ConformanceCase("list-after", "`after` is exclusive: first, middle, last, and names that are not there") { bench in
    let rests = ["a/1", "a/3", "b/5", "b/7", "c/9"]
    for rest in rests { try await bench.one.put(try bench.name(rest), []) }
    for after in rests + ["0", "a/0", "a/2", "a/4", "a-", "b", "b/6", "b/8", "c/8", "c/a", "d"] {
      guard let bound = ObjectName(bench.prefix + after) else { continue }
      let page = try await bench.other.list(prefix: bench.prefix, after: bound, limit: 100)
      let expected = try rests.map(bench.name).filter { $0 > bound }
      try bench.expect(page.entries.map(\.name) == expected, "after \(after): \(page.entries.map(\.name))")
      try bench.expect(page.isLast, "after \(after): not the last page")
    }
    let outside = [ObjectName("0"), ObjectName("zzzzzz")]
    for (bound, count) in zip(outside, [rests.count, 0]) {
      let page = try await bench.other.list(prefix: bench.prefix, after: bound, limit: 100)
      try bench.expect(page.entries.count == count, "after a name outside the prefix: \(page.entries.count)")
    }
  },
  ConformanceCase("list-many", "many objects are listed whole, without one twice, in pages of any size") { bench in
    let total = bench.count(1001, 61)
    let names = try (0..<total).map { try bench.name("many/\($0 % 7)/\($0)") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for start in 0..<8 {
        group.addTask {
          for index in stride(from: start, to: names.count, by: 8) {
            try await (index % 2 == 0 ? bench.one : bench.other).put(names[index], [UInt8(index % 251)])
          }
        }
      }
      try await group.waitForAll()
    }
    for pageSize in [total - 1, total / 3, total * 2] {
      let found = try await bench.other.listAll(prefix: bench.prefix + "many/", pageSize: pageSize).map(\.name)
      try bench.expect(
        found == names.sorted(), "pages of \(pageSize) list \(found.count) of \(total), or in another order")
    }
    let page = try await bench.other.list(prefix: bench.prefix + "many/", after: nil, limit: total)
    try bench.expect(page.entries.count <= total, "more than the limit")
    let exact = try await bench.other.list(prefix: bench.prefix + "many/", after: names.sorted()[total - 1], limit: 1)
    try bench.expect(exact == ListPage(entries: [], isLast: true), "after the last: \(exact)")
  },
  ConformanceCase("list-insert", "what is written while pages are read neither repeats nor hides anything") { bench in
    let before = try (0..<bench.count(20, 8)).map { try bench.name("ins/\(10 + $0)-old") }
    for name in before { try await bench.one.put(name, []) }
    var (seen, after): ([ObjectName], ObjectName?) = ([], nil)
    for round in 0..<100 {
      let page = try await bench.other.list(prefix: bench.prefix + "ins/", after: after, limit: 3)
      seen += page.entries.map(\.name)
      if page.isLast { break }
      after = page.next
      try await bench.one.put(try bench.name("ins/\(10 + round)-new"), [])
    }
    try bench.expect(Set(seen).count == seen.count, "a name was listed twice")
    try bench.expect(seen == seen.sorted(), "the pages are not in order")
    try bench.expect(Set(before).isSubset(of: Set(seen)), "something that was there all the time was not listed")
  },
  ConformanceCase("list-bad", "prefixes and limits outside the contract are refused") { bench in
    for prefix in ["a", "/", "/a/", "a//", "A/", "../", "a/../", ".a/", "a b/", "-a/", "a/b/c/d/", "é/"] {
      try await bench.expect(.invalidArgument, "prefix \(prefix)") {
        _ = try await bench.one.list(prefix: prefix, after: nil, limit: 1)
      }
    }
    for limit in [0, -1, .min] {
      try await bench.expect(.invalidArgument, "limit \(limit)") {
        _ = try await bench.one.list(prefix: bench.prefix, after: nil, limit: limit)
      }
    }
  },
]

private let neighbourCases: [ConformanceCase] = [
  ConformanceCase("debris", "what other programs left there is neither listed, nor in the way, nor deleted") { bench in
    guard let plant = bench.factory.plantDebris else {
      throw Skip(why: "nothing but objects can be put there from here")
    }
    let name = try bench.name("h/own")
    try await bench.one.put(name, [1])
    try await plant(bench.prefix)
    let found = try await bench.other.listAll(prefix: bench.prefix)
    try bench.expect(found == [ListPage.Entry(name: name, size: 1)], "listed \(found)")
    try await bench.other.put(try bench.name("h/second"), [2])
    try await bench.one.delete(name)
    let left = try await bench.one.listAll(prefix: bench.prefix).map(\.name.text)
    try bench.expect(left == [bench.prefix + "h/second"], "listed \(left)")
    try await bench.factory.checkDebris?(bench.prefix)
  },
  ConformanceCase("too-large", "an object over the limit is refused before it is sent") { bench in
    let name = try bench.name("large")
    try await bench.expect(.tooLarge, "one byte over") {
      try await bench.one.put(name, [UInt8](repeating: 0, count: StorageLimits.maximumObjectSize + 1))
    }
    try await bench.expect(.notFound, "after the refusal") { _ = try await bench.other.head(name) }
  },
  ConformanceCase("cancelled", "a task that is cancelled before it begins changes nothing") { bench in
    let name = try bench.name("cancelled")
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await bench.one.put(name, [1])
    }
    do {
      try await task.value
      // A store in memory has nothing to wait for, and may be done before it looks.
      try await bench.expectContent(name, [1], bench.other, "a put that was not cancelled")
    } catch let error as StorageError {
      try bench.expect(error.cause == .cancelled, "\(error)")
      if error.effect == .notApplied {
        try await bench.expect(.notFound, "after it was cancelled") { _ = try await bench.other.head(name) }
      }
    }
  },
  ConformanceCase("marker", "the store's marker fits in, and a second one is refused") { bench in
    // Under a name of its own: the place may be a store already.
    let name = try bench.name("marker")
    let ids = [StoreID(raw: Bytes16(high: 1, low: 2)), StoreID(raw: Bytes16(high: 1, low: 3))]
    try await bench.one.put(name, StoreMarker(id: ids[0]).encoded)
    try await bench.expect(.alreadyExists, "another marker") {
      try await bench.other.put(name, StoreMarker(id: ids[1]).encoded)
    }
    let found = StoreMarker.judge(try await bench.other.get(name))
    try bench.expect(found == .store(StoreMarker(id: ids[0])), "\(found)")
  },
  ConformanceCase("reopen", "many connections, opened and dropped, leave the store usable") { bench in
    let name = try bench.name("reopen")
    try await bench.one.put(name, [9])
    for round in 0..<bench.count(100, 8) {
      try await bench.expectContent(name, [9], try await bench.factory.connect(), "connection \(round)")
    }
  },
]
