internal import Glibc
internal import LatchkeyEncoding
internal import LatchkeyTables

/// An app's turn on a database: as long as it lasts, rows of other devices are not shown in the file. What the app writes is
/// captured as always.
///
/// The turn is a lock of the system's on a file in latchkey's home. It ends when every process that has inherited ``descriptor`` is
/// gone, however they ended: hand it to the app that is started, and the turn outlives whoever started it.
public final class AppTurn: Sendable {
  /// To be inherited by the app's process.
  public let descriptor: Int32

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }
}

/// Knows a turn without making it last.
struct TurnReference {
  weak var turn: AppTurn?
}

extension Home {
  /// Waits until nobody else is showing rows in the file, and keeps them from it until the turn ends.
  ///
  /// - Throws: ``LatchkeyError``: `notAttached`, `database`, `busy` if another app has its turn.
  public func takeTurn(_ path: String) async throws(LatchkeyError) -> AppTurn {
    let path = absolute(path)
    do {
      _ = try Replica(path: path, mode: .readOnly)
      let file = try openTurn(path)
      // A round takes a moment; another app's turn does not end.
      for _ in 0..<100 {
        if flock(file, LOCK_EX | LOCK_NB) == 0 {
          let turn = AppTurn(file)
          turns[path] = TurnReference(turn: turn)
          return turn
        }
        try await Task.sleep(for: .milliseconds(50))
      }
      close(file)
      throw LatchkeyError(
        .busy, "app-running", "Another \"latchkey run\" has \(path).", next: ["close that app, then run it again"])
    } catch { throw LatchkeyError(error, database: path) }
  }

  /// What keeps rows from being shown in a file now; nil while nothing does. The turn is to be kept while rows are shown.
  func turnForRows(_ path: String, _ replica: Replica) throws -> (turn: AppTurn?, obstacle: Warning?) {
    if let own = turns[path]?.turn { return (own, nil) }
    let file = try openTurn(path)
    let turn = AppTurn(file)
    guard flock(file, LOCK_SH | LOCK_NB) == 0 else {
      return (
        nil,
        Warning(
          code: "app-running",
          message:
            "\(path): an app has it (latchkey run). What is changed there is captured; rows are sent and received when it ends."
        )
      )
    }
    if replica.rules.appliesWhenClosed, let process = processWithOpen(path) {
      return (
        nil,
        Warning(
          code: "app-open",
          message:
            "\(path): process \(process) has it open, and its rules say that rows are shown only while no app has. Close the app, or start "
            + "it with latchkey run."
        )
      )
    }
    return (turn, nil)
  }

  /// Removes what the turns were taken on.
  func forgetTurns() {
    let folder = directory + "/turns"
    for name in names(in: folder) { unlink("\(folder)/\(name)") }
    rmdir(folder)
  }

  private func openTurn(_ path: String) throws -> Int32 {
    let folder = directory + "/turns"
    mkdir(folder, 0o700)
    var hash = Blake2b(length: 16)
    hash.update(Array(path.utf8))
    let file = Glibc.open("\(folder)/\(Base32.encode(hash.finish()))", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      throw LatchkeyError(.other, "cannot-write", "\(folder) cannot be written (error \(errno)).")
    }
    return file
  }
}

/// The number of a process of another program that has a file open; nil if there is none that the system shows (it shows those of
/// one's own, and only where there is /proc).
private func processWithOpen(_ path: String) -> Int32? {
  var wanted = stat()
  guard stat(path, &wanted) == 0 else { return nil }
  let ownProgram = link("/proc/self/exe")
  for entry in names(in: "/proc") {
    guard let process = Int32(entry), process != getpid() else { continue }
    for descriptor in names(in: "/proc/\(process)/fd") {
      var found = stat()
      guard stat("/proc/\(process)/fd/\(descriptor)", &found) == 0, found.st_ino == wanted.st_ino,
        found.st_dev == wanted.st_dev
      else { continue }
      // Latchkey itself keeps out of its own way by other means.
      if let ownProgram, link("/proc/\(process)/exe") == ownProgram { break }
      return process
    }
  }
  return nil
}

private func names(in folder: String) -> [String] {
  guard let stream = opendir(folder) else { return [] }
  defer { closedir(stream) }
  var out: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if !name.hasPrefix(".") { out.append(name) }
  }
  return out
}

private func link(_ path: String) -> String? {
  var buffer = [CChar](repeating: 0, count: 4_096)
  let count = readlink(path, &buffer, buffer.count)
  return count > 0 ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
}
