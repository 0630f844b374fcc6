import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A program of somebody else's that has the terminal until it ends.
struct ForeignProcess {
  /// The program as the shell would find it, and its arguments.
  let words: [String]
  /// A file that stays open in it.
  let inheriting: Descriptor
  /// Whether what it writes to standard output goes to standard error: where standard output is for one JSON object.
  let keepsOutputFree: Bool

  /// Runs it to its end, without blocking other work.
  ///
  /// - Returns: its exit status, or 128 and the number of the signal that ended it, as shells have it.
  /// - Throws: exit code 1, `app-not-started`.
  func run() async throws(CommandError) -> Int32 {
    let process = try start()
    Interrupt.foreground.store(process, ordering: .relaxed)
    return await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        // Its number is its own until it is waited for: until then a signal reaches nobody else.
        var information = siginfo_t()
        while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        Interrupt.foreground.store(0, ordering: .relaxed)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        continuation.resume(returning: signal == 0 ? (status >> 8) & 0xff : 128 + signal)
      }
    }
  }

  private func start() throws(CommandError) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    // Duplicated onto itself: it would be closed otherwise.
    posix_spawn_file_actions_adddup2(&actions, inheriting.number, inheriting.number)
    if keepsOutputFree {
      posix_spawn_file_actions_adddup2(&actions, Descriptor.error.number, Descriptor.output.number)
    }
    var defaults = Interrupt.defaults()
    var unblocked = sigset_t()
    sigemptyset(&unblocked)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setsigmask(&attributes, &unblocked)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
    defer { for argument in arguments { free(argument) } }
    arguments.append(nil)
    var process: pid_t = 0
    let code = posix_spawnp(&process, words[0], &actions, &attributes, arguments, environ)
    guard code == 0 else {
      throw CommandError(
        .other, "app-not-started", "\(words[0].printable) could not be started: \(String(cString: strerror(code))).",
        next: ["latchkey run --help"])
    }
    return process
  }
}
