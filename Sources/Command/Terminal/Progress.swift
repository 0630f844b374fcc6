import Dispatch
import Synchronization

/// One line on standard error that says how far a long piece of work is.
///
/// On a terminal it appears after one second and is redrawn in place; elsewhere a line is written every ten seconds;
/// with `-q` there is none. Short work is silent.
final class Progress: Sendable {
  /// How far the work is.
  struct Step: Sendable, Equatable {
    /// What is being done, such as "sending".
    var phase: String
    /// Pieces done, of `total` if that is known.
    var done: Int
    var total: Int?
    /// Bytes moved in this phase.
    var bytes: Int64
  }

  private struct State: Sendable {
    var step: Step?
    /// When the phase began, in seconds of a clock that never goes back.
    var phaseStart = 0.0
    var isShown = false
  }

  private enum Manner: Sendable {
    case silent
    case redrawn
    case lines
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "progress")
  private let manner: Manner
  private let style: Style

  init(isQuiet: Bool, ascii: Bool) {
    style = Style(for: .error, ascii: ascii)
    let canRedraw = Descriptor.error.isTerminal && Environment.value("TERM") != "dumb"
    manner = isQuiet ? .silent : canRedraw ? .redrawn : .lines
  }

  /// Says how far the work is; the first call starts the clock.
  func report(_ step: Step) {
    guard manner != .silent else { return }
    let isFirst = state.withLock { state in
      let isFirst = state.step == nil
      if state.step?.phase != step.phase { state.phaseStart = Progress.now }
      state.step = step
      return isFirst
    }
    if isFirst { schedule(after: manner == .redrawn ? 1 : 10) }
  }

  /// The work is over: the line goes.
  func finish() {
    state.withLock { state in
      erase(&state)
      state.step = nil
    }
  }

  /// Writes something else to standard error with the line out of the way.
  func pause(_ body: () -> Void) {
    state.withLock { state in
      erase(&state)
      body()
    }
  }

  private static var now: Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }

  private func schedule(after seconds: Double) {
    queue.asyncAfter(deadline: .now() + seconds) { [self] in draw() }
  }

  private func draw() {
    let isGoingOn = state.withLock { state in
      guard let step = state.step else { return false }
      let text = Progress.line(step, seconds: Progress.now - state.phaseStart, separator: style.separator)
      switch manner {
      case .silent: break
      case .redrawn:
        // Carriage return and "erase to the end of the line" (ECMA-48 EL).
        _ = Descriptor.error.write("\r\(text)\u{1B}[K")
        state.isShown = true
      case .lines: _ = Descriptor.error.write(text + "\n")
      }
      return true
    }
    if isGoingOn { schedule(after: manner == .redrawn ? 0.2 : 10) }
  }

  private func erase(_ state: inout State) {
    guard state.isShown else { return }
    _ = Descriptor.error.write("\r\u{1B}[K")
    state.isShown = false
  }

  /// The line's text: phase, n of m, bytes, rate, time left.
  private static func line(_ step: Step, seconds: Double, separator: String) -> String {
    var parts = [step.phase + (step.total.map { " \(step.done) of \($0)" } ?? (step.done > 0 ? " \(step.done)" : ""))]
    if step.bytes > 0 {
      parts.append(ByteCount(step.bytes).description)
      if seconds >= 1 { parts.append("\(ByteCount(Int64(Double(step.bytes) / seconds)))/s") }
    }
    if let total = step.total, step.done > 0, step.done < total, seconds >= 1 {
      parts.append("\(Int((seconds / Double(step.done) * Double(total - step.done)).rounded(.up))) s left")
    }
    return parts.joined(separator: separator)
  }
}
