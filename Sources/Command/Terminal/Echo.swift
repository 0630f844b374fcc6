import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Keeps what is typed from being shown.
enum Echo {
  /// The terminal and how it was before, while it is changed.
  private static let changed = Mutex<(terminal: Descriptor, before: termios)?>(nil)

  /// Runs `body` while the terminal does not show what is typed. If it cannot be told so, `body` runs all the same:
  /// the person is the one who sees it.
  static func off<Result>(on terminal: Descriptor, _ body: () -> Result) -> Result {
    var settings = termios()
    if tcgetattr(terminal.number, &settings) == 0 {
      changed.withLock { $0 = (terminal, settings) }
      settings.c_lflag &= ~tcflag_t(ECHO)
      tcsetattr(terminal.number, TCSADRAIN, &settings)
    }
    defer { restore() }
    return body()
  }

  /// Makes the terminal as it was: also called when the command is interrupted at a question.
  static func restore() {
    changed.withLock { state in
      guard let (terminal, before) = state else { return }
      withUnsafePointer(to: before) { _ = tcsetattr(terminal.number, TCSADRAIN, $0) }
      state = nil
    }
  }
}
