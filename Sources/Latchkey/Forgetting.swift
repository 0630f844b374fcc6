internal import LatchkeyKeyring
internal import LatchkeyTables

/// What `forget` did with the files that were attached.
public struct ForgetReport: Equatable, Sendable {
  /// Files that hold nothing of Latchkey's any more.
  public let detached: [String]
  /// Files that could not be detached, and why: `detach` works on them later, too.
  public let left: [Left]

  public struct Left: Equatable, Sendable {
    public let path: String
    public let why: LatchkeyError
  }
}

extension Home {
  /// What forgetting would cost: rows in attached files that the store has not confirmed, by file.
  public func unsent() throws(LatchkeyError) -> [(path: String, rows: Int)] {
    try databases().compactMap { path in
      guard let replica = try? Replica(path: path, mode: .readOnly), let counts = try? replica.counts() else {
        return nil
      }
      let waiting = counts.reduce(0) { $0 + $1.waiting }
      return waiting > 0 ? (path, waiting) : nil
    }
  }

  /// Wipes this device's keys and everything that it believes of its households, after detaching its files: rows stay where they are, the store
  /// is not touched, and other devices do not hear of it (``revokeDevice(_:keeping:isRehearsal:)`` on one of them tells them).
  ///
  /// Works without the passphrase. Nothing brings the keys back: the person comes in again with another of its devices, a recovery kit or an
  /// invite. Copies of the folder, and blocks that a disk keeps of files that were replaced, are not reached.
  public func forget() throws(LatchkeyError) -> ForgetReport {
    do {
      var detached: [String] = []
      var left: [ForgetReport.Left] = []
      for path in try databases() {
        guard fileExists(path) else { continue }
        do {
          try Replica.detach(path: path)
          detached.append(path)
        } catch { left.append(.init(path: path, why: LatchkeyError(error, database: path))) }
      }
      judged = [:]
      try keyring.destroy()
      removeFile(directory + "/databases")
      forgetTurns()
      return ForgetReport(detached: detached, left: left)
    } catch { throw LatchkeyError(error) }
  }
}
