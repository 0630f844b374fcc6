#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Keeps processes apart with `flock(2)` on a file of its own: the system lets go of it when a process dies, so nothing
/// ever needs to be unlocked by hand.
struct FileLock: Sendable {
  let path: String
  /// How long to wait for somebody else, in milliseconds.
  let patience: Int

  /// Waits for the lock and returns what ``release(_:)`` takes.
  func acquire() throws(KeyringError) -> Int32 {
    let file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw SafeFile.error(errno, path, "lock") }
    var waited = 0
    while flock(file, LOCK_EX | LOCK_NB) != 0 {
      let code = errno
      guard code == EWOULDBLOCK || code == EINTR, waited < patience else {
        close(file)
        throw code == EWOULDBLOCK || code == EINTR ? .busy(path: path) : SafeFile.error(code, path, "lock")
      }
      usleep(10_000)
      waited += 10
    }
    return file
  }

  func release(_ file: Int32) { close(file) }
}
