import Latchkey

extension CommandError {
  /// A failure of the library as the command tells it.
  init(_ error: LatchkeyError, data: JSON = [:]) {
    if error.kind == .cancelled {
      self = .interrupted
    } else {
      self.init(ExitCode(error.kind), error.code, error.message, next: error.next, data: data)
    }
  }
}

extension ExitCode {
  /// The one place where a kind of cause becomes the number that scripts branch on.
  init(_ kind: LatchkeyError.Kind) {
    switch kind {
    case .database: self = .unusableDatabase
    case .notAttached: self = .notAttached
    case .store: self = .storeUnavailable
    case .busy: self = .databaseBusy
    case .membership: self = .notAMember
    case .key: self = .keyRefused
    case .decision: self = .decisionNeeded
    case .damage: self = .damageFound
    case .newer: self = .newerFormat
    case .usage: self = .usage
    case .cancelled: self = .interrupted
    case .other: self = .other
    }
  }
}

extension Context {
  /// Runs what the library does; its failures end the verb.
  func performing<Result: Sendable>(
    _ body: () async throws(LatchkeyError) -> Result
  ) async throws(CommandError) -> Result {
    do { return try await body() } catch { throw CommandError(error) }
  }
}
