import LatchkeyStorage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The file: a mark, then records of `kind, length of the name, length of the content, name, content, mark`.
///
/// A record counts once the mark at its end is there: one that a crash cut off is passed over, and cut off by the next
/// who writes. Each operation opens the file and holds its lock, so that connections and processes do not meet.
struct Pack: Sendable {
  let path: String

  /// Where an object's content is.
  struct Place: Sendable {
    let offset: Int
    let count: Int
  }

  private static let mark = Array("PACKSTO1".utf8)
  private static let headerSize = 8

  private enum Kind: UInt8 {
    case object = 1
    case deletion = 2
  }

  // MARK: What the store does

  func open(creating: Bool) throws(PackFailure) {
    try withFile(creating: creating, writing: creating) { file throws(PackFailure) in
      if creating, try size(file) == 0 {
        try write(file, Self.mark, at: 0)
        try sync(file)
      }
      guard try read(file, at: 0, count: Self.mark.count) == Self.mark else { throw .notAPack }
    }
  }

  func index() throws(PackFailure) -> [String: Place] {
    try withFile { file throws(PackFailure) in try scan(file).places }
  }

  func read(_ name: String, _ range: Range<Int>?) throws(PackFailure) -> [UInt8] {
    try withFile { file throws(PackFailure) in
      guard let place = try scan(file).places[name] else { throw .absent }
      let range = range ?? 0..<place.count
      guard
        place.count == 0 && range == 0..<0 || !range.isEmpty && range.lowerBound >= 0 && range.upperBound <= place.count
      else { throw .outside }
      return try read(file, at: place.offset + range.lowerBound, count: range.count)
    }
  }

  func append(_ name: String, _ bytes: [UInt8]) throws(PackFailure) {
    try withFile(writing: true) { file throws(PackFailure) in
      let (places, end) = try scan(file)
      if let place = places[name] {
        // The same bytes are a success: this may be the second try of a write whose answer was lost.
        guard place.count == bytes.count, try read(file, at: place.offset, count: place.count) == bytes else {
          throw .taken
        }
        // They may have been written and not forced onto the medium.
        return try sync(file)
      }
      try write(file, record(.object, name, bytes), at: end)
      try sync(file)
    }
  }

  func remove(_ name: String) throws(PackFailure) {
    try withFile(writing: true) { file throws(PackFailure) in
      let (places, end) = try scan(file)
      guard places[name] != nil else { return }
      try write(file, record(.deletion, name, []), at: end)
      try sync(file)
    }
  }

  // MARK: Records

  private func record(_ kind: Kind, _ name: String, _ bytes: [UInt8]) -> [UInt8] {
    let count = UInt32(bytes.count)
    let header =
      [kind.rawValue, UInt8(name.utf8.count), 0, 0] + (0..<4).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
    return header + Array(name.utf8) + bytes + Self.mark
  }

  /// Every object that is there, and where the next record begins.
  private func scan(_ file: Int32) throws(PackFailure) -> (places: [String: Place], end: Int) {
    let total = try size(file)
    guard total >= Self.mark.count else { throw .notAPack }
    var places: [String: Place] = [:]
    var position = Self.mark.count
    while position + Self.headerSize <= total {
      let header = try read(file, at: position, count: Self.headerSize)
      let count = header[4...].reversed().reduce(0) { $0 << 8 | Int($1) }
      let content = position + Self.headerSize + Int(header[1])
      let end = content + count + Self.mark.count
      guard let kind = Kind(rawValue: header[0]), end <= total,
        try read(file, at: end - Self.mark.count, count: Self.mark.count) == Self.mark
      else { break }
      let name = String(decoding: try read(file, at: position + Self.headerSize, count: Int(header[1])), as: UTF8.self)
      places[name] = kind == .object ? Place(offset: content, count: count) : nil
      position = end
    }
    return (places, position)
  }

  // MARK: System calls

  private func withFile<T>(
    creating: Bool = false, writing: Bool = false, _ body: (Int32) throws(PackFailure) -> T
  ) throws(PackFailure) -> T {
    let flags = (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC | (creating ? O_CREAT : 0)
    #if canImport(Darwin)
      let file = Darwin.open(path, flags, 0o600)
    #elseif canImport(Musl)
      let file = Musl.open(path, flags, 0o600)
    #else
      let file = Glibc.open(path, flags, 0o600)
    #endif
    guard file >= 0 else { throw errno == ENOENT ? .missing(path) : .system(errno, "open") }
    defer { close(file) }
    guard flock(file, writing ? LOCK_EX : LOCK_SH) == 0 else { throw .system(errno, "flock") }
    return try body(file)
  }

  private func size(_ file: Int32) throws(PackFailure) -> Int {
    let end = lseek(file, 0, SEEK_END)
    guard end >= 0 else { throw .system(errno, "lseek") }
    return Int(end)
  }

  private func read(_ file: Int32, at offset: Int, count: Int) throws(PackFailure) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let some = bytes.withUnsafeMutableBytes {
        pread(file, $0.baseAddress.map { $0 + done }, count - done, off_t(offset + done))
      }
      guard some >= 0 else { throw .system(errno, "read") }
      guard some > 0 else { throw .short }
      done += some
    }
    return bytes
  }

  /// Cuts off what a crash left, then writes.
  private func write(_ file: Int32, _ bytes: [UInt8], at offset: Int) throws(PackFailure) {
    guard ftruncate(file, off_t(offset)) == 0 else { throw .system(errno, "truncate") }
    var done = 0
    while done < bytes.count {
      let some = bytes.withUnsafeBytes {
        pwrite(file, $0.baseAddress.map { $0 + done }, bytes.count - done, off_t(offset + done))
      }
      guard some > 0 else { throw .system(errno, "write") }
      done += some
    }
  }

  private func sync(_ file: Int32) throws(PackFailure) {
    // Whether the record is there after this failed, nobody knows: what is not known is said.
    guard fsync(file) == 0 else { throw .unsynced(errno) }
  }
}

/// What can go wrong with the file.
enum PackFailure: Error {
  case absent, taken, outside, short, notAPack
  case missing(String)
  case system(Int32, String)
  case unsynced(Int32)

  var cause: StorageError.Cause {
    switch self {
    case .absent: .notFound
    case .taken: .alreadyExists
    case .outside: .invalidRange
    case .short: .truncated
    case .notAPack: .config
    case .missing: .storeMissing
    case .system(let code, _), .unsynced(let code):
      switch code {
      case ENOSPC, EDQUOT: .quotaExceeded
      case EROFS: .readOnly
      case EACCES, EPERM: .forbidden
      // EIO and whatever else may pass: tried again, by those who use the store.
      default: .unavailable
      }
    }
  }

  /// Whether something may have changed all the same.
  var effect: StorageError.Effect { if case .unsynced = self { .unknown } else { .notApplied } }

  /// For people; never a secret.
  var detail: String {
    switch self {
    case .absent, .taken, .outside, .short: ""
    case .notAPack: "the file is not a pack"
    case .missing(let path): path
    case .system(let code, let call): "\(call): \(String(cString: strerror(code)))"
    case .unsynced(let code): "fsync: \(String(cString: strerror(code)))"
    }
  }
}
