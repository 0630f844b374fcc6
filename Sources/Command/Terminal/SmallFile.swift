#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Files that are read or written whole: reports, recipes, invites.
enum SmallFile {
  /// Larger files are not what they are said to be.
  static let limit = 16 << 20

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// - Parameter isSecret: refuses a file that others can read.
  /// - Throws: exit code 1, or 14 for a file that others can read.
  static func read(_ path: String, isSecret: Bool = false) throws(CommandError) -> [UInt8] {
    let shown = path.quotedUnlessSecret
    let number = open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { throw CommandError(.other, "file-unreadable", "Cannot read \(shown): \(reason()).") }
    let file = Descriptor(number: number)
    defer { file.closeFile() }
    var status = stat()
    guard fstat(number, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
      throw CommandError(.other, "file-unreadable", "Cannot read \(shown): it is a directory.")
    }
    // A pipe has no other readers than the two ends; only what lies in a directory can be opened by others.
    if isSecret, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 {
      throw CommandError(
        .keyRefused, "file-not-private",
        "\(shown) holds a secret, but other users of this computer can read it. It was not used.",
        next: ["chmod 600 \(path.quotedForShell)"])
    }
    guard let content = file.readAll(limit: limit) else {
      throw CommandError(
        .other, "file-unreadable", "Cannot read \(shown): it is larger than 16 MiB, or reading failed.")
    }
    return content
  }

  /// A new file for a secret, which only its owner can read, made before the secret is: a secret that cannot be written
  /// anywhere would be lost.
  struct Reserved {
    private let path: String
    private let file: Descriptor

    /// - Throws: exit code 1; nothing is overwritten.
    init(_ path: String) throws(CommandError) {
      let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard number >= 0 else {
        let why = errno == EEXIST ? "it is there already, and is not overwritten" : reason()
        throw CommandError(.other, "file-not-written", "Cannot write \(path.quotedUnlessSecret): \(why).")
      }
      self.path = path
      file = Descriptor(number: number)
    }

    /// - Throws: exit code 1; the file is gone then.
    func fill(_ text: String) throws(CommandError) {
      let isWritten = file.write(text)
      let isSynced = fsync(file.number) == 0 || errno == EINVAL || errno == EROFS
      let isClosed = close(file.number) == 0
      guard isWritten, isSynced, isClosed else {
        let why = reason()
        _ = unlink(path)
        throw CommandError(.other, "file-not-written", "Cannot write \(path.quotedUnlessSecret): \(why).")
      }
    }

    /// There is no secret after all.
    func discard() {
      file.closeFile()
      _ = unlink(path)
    }
  }

  private static func reason() -> String { String(cString: strerror(errno)).lowercasedFirst }
}

extension String {
  /// The word as a shell reads it back, for commands that are shown.
  var quotedForShell: String {
    let isPlain =
      !isEmpty
      && unicodeScalars.allSatisfy {
        $0.isASCII
          && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_./:=@%+,".unicodeScalars.contains($0))
      }
    if isPlain { return self }
    return inSingleQuotes
  }

  fileprivate var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}
