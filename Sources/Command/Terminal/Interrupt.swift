import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Ctrl-C and its relatives end the command with exit code 130, cleanly.
///
/// The first signal cancels the work, which stops at its next safe place; what does not stop within two seconds (a store
/// that hangs) is left where it is: every write of Latchkey survives being killed at any point. A second signal does not
/// wait, nor does one that comes while a person is asked something, when nothing is under way.
struct Interrupt {
  private let sources: [any DispatchSourceSignal]
  /// Left once for each source that listens.
  private let registrations = DispatchGroup()

  /// Whether a person is being asked something.
  static let isAsking = Atomic(false)

  /// The process that has its turn instead of this one; 0 if there is none. A terminal sends Ctrl-C to both: whether to end is
  /// then that process's affair, and this one goes on when it ends. Other signals are handed on to it.
  static let foreground = Atomic<pid_t>(0)

  /// The signals that a process started from here should get as if this one had not taken them.
  static func defaults() -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGPIPE)
    for number in taken.withLock({ $0 }) { sigaddset(&set, number) }
    return set
  }

  private static let taken = Mutex<[Int32]>([])

  /// - Parameters:
  ///   - cancel: asks the work to stop.
  ///   - end: answers, and ends the process.
  init(cancel: @escaping @Sendable () -> Void, end: @escaping @Sendable () -> Never) {
    // A reader that went away is noticed where it is written to.
    signal(SIGPIPE, SIG_IGN)
    let queue = DispatchQueue(label: "interrupt")
    let registrations = registrations
    sources = [SIGINT, SIGTERM, SIGHUP].compactMap { number in
      // Who started us with the signal ignored (nohup, a shell's background job) wants it so.
      if Interrupt.ignore(number) { return nil }
      Interrupt.taken.withLock { $0.append(number) }
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      nonisolated(unsafe) var isSecond = false  // Only touched on the serial queue.
      source.setEventHandler {
        let app = Interrupt.foreground.load(ordering: .relaxed)
        if app > 0 {
          if number != SIGINT { kill(app, number) }
          return
        }
        if isSecond || Interrupt.isAsking.load(ordering: .relaxed) { end() }
        isSecond = true
        cancel()
        queue.asyncAfter(deadline: .now() + 2) { end() }
      }
      registrations.enter()
      source.setRegistrationHandler { registrations.leave() }
      source.resume()
      return source
    }
  }

  /// Calls back once every signal is listened for: one that comes between is lost.
  func whenReady(_ body: @escaping @Sendable () -> Void) { registrations.notify(queue: .global(), execute: body) }

  /// Takes the signal from the system's default.
  ///
  /// - Returns: whether it was ignored before.
  private static func ignore(_ number: Int32) -> Bool {
    unsafeBitCast(signal(number, SIG_IGN), to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
