/// How often and how long to try again: exponential backoff with full jitter.
///
/// Source: Brooker, "Exponential Backoff and Jitter" (AWS Architecture Blog, 2015). There is no retry budget shared by
/// requests: one that refills on success only makes a client give up in the middle of an outage.
public struct RetryPolicy: Equatable, Sendable {
  /// Attempts altogether, the first included; at least 1.
  public var maximumAttempts: Int
  /// No new attempt is begun that would start later than this after the first.
  public var maximumElapsed: Duration
  /// Upper bound of the first wait; it doubles with every further one.
  public var base: Duration
  /// Upper bound of any wait, also of one that the store asks for.
  public var cap: Duration

  public init(
    maximumAttempts: Int = 10, maximumElapsed: Duration = .seconds(180), base: Duration = .milliseconds(500),
    cap: Duration = .seconds(30)
  ) {
    self.maximumAttempts = max(1, maximumAttempts)
    self.maximumElapsed = maximumElapsed
    self.base = base
    self.cap = cap
  }

  /// How long to wait after a failed attempt.
  ///
  /// - Parameters:
  ///   - attempt: 1 after the first.
  ///   - asked: what the store asked for; honoured up to ``cap``, negative taken as nothing.
  ///   - jitter: random, in `0..<1`.
  public func delay(after attempt: Int, asked: Duration?, jitter: Double) -> Duration {
    // 2^20 times any sensible base is over any sensible cap, and does not overflow.
    let bound = min(cap, base * (1 << min(max(0, attempt - 1), 20)))
    return max(bound * jitter, min(cap, asked ?? .zero))
  }
}
