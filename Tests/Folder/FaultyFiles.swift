import Glibc
import LatchkeyFolder
import Synchronization

/// The real files, with one step that fails: the N-th call, or every call of a kind.
final class FaultyFiles: FileOperations {
  enum Call: String, CaseIterable, Sendable {
    case status, entries, create, open, fstat, write, read, sync, close, syncDirectory, link, rename, unlink,
      makeDirectory
    case removeDirectory
  }

  /// What happens to a call.
  struct Fault: Sendable {
    var code: Int32
    /// The step is performed, and its reply is lost.
    var afterwards = false
  }

  private struct State {
    var calls: [Call] = []
    var failAt: Int?
    var fault: Fault?
    var kinds: [Call: Fault] = [:]
    var changes: [String: FileStatus] = [:]
    var shortWrites = false
    var time: Int?
    var afterwards: (call: Call, action: @Sendable () -> Void)?
  }

  private let files = PosixFiles()
  private let state = Mutex(State())

  var calls: [Call] { state.withLock { $0.calls } }

  /// Lets only the call of this number fail, counted from now; nil lets none.
  func fail(at index: Int?, _ fault: Fault? = nil) {
    state.withLock {
      $0.calls = []
      $0.failAt = index
      $0.fault = fault
    }
  }

  /// Lets every call of a kind fail from now on.
  func fail(every call: Call, _ code: Int32?, afterwards: Bool = false) {
    state.withLock { $0.kinds[call] = code.map { Fault(code: $0, afterwards: afterwards) } }
  }

  /// Writes a byte or a few at a time, as a busy or interrupted file system may.
  func writeInPieces() { state.withLock { $0.shortWrites = true } }
  /// Does something once, right after the next call of a kind: what another program does meanwhile.
  func after(_ call: Call, _ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.afterwards = (call, action) }
  }
  func setTime(_ seconds: Int) { state.withLock { $0.time = seconds } }
  /// Shows another status for a path.
  func pretend(_ path: String, _ status: FileStatus?) { state.withLock { $0.changes[path] = status } }

  private func perform<T>(_ call: Call, _ body: () throws(SystemCallError) -> T) throws(SystemCallError) -> T {
    let fault = state.withLock { state in
      state.calls.append(call)
      return state.failAt == state.calls.count - 1 ? state.fault : state.kinds[call]
    }
    defer {
      let action = state.withLock { state -> (@Sendable () -> Void)? in
        guard let (awaited, action) = state.afterwards, awaited == call else { return nil }
        state.afterwards = nil
        return action
      }
      action?()
    }
    guard let fault else { return try body() }
    if fault.afterwards { _ = try body() }
    throw SystemCallError(fault.code)
  }

  func status(_ path: String, following: Bool) throws(SystemCallError) -> FileStatus {
    try perform(.status) { () throws(SystemCallError) in
      if let pretended = state.withLock({ $0.changes[path] }) { return pretended }
      return try files.status(path, following: following)
    }
  }
  func entries(_ path: String) throws(SystemCallError) -> [DirectoryEntry] {
    try perform(.entries) { () throws(SystemCallError) in try files.entries(path) }
  }
  func create(_ path: String) throws(SystemCallError) -> Descriptor {
    try perform(.create) { () throws(SystemCallError) in try files.create(path) }
  }
  func open(_ path: String) throws(SystemCallError) -> Descriptor {
    try perform(.open) { () throws(SystemCallError) in try files.open(path) }
  }
  func status(_ file: Descriptor) throws(SystemCallError) -> FileStatus {
    try perform(.fstat) { () throws(SystemCallError) in try files.status(file) }
  }
  func write(_ file: Descriptor, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    let piece = state.withLock { $0.shortWrites } ? bytes.prefix(7) : bytes
    return try perform(.write) { () throws(SystemCallError) in try files.write(file, piece) }
  }
  func read(_ file: Descriptor, at offset: Int, count: Int) throws(SystemCallError) -> [UInt8] {
    try perform(.read) { () throws(SystemCallError) in try files.read(file, at: offset, count: count) }
  }
  func sync(_ file: Descriptor) throws(SystemCallError) {
    try perform(.sync) { () throws(SystemCallError) in try files.sync(file) }
  }
  func close(_ file: Descriptor) throws(SystemCallError) {
    // Whatever it reports, the descriptor is gone.
    let code: Int32 = {
      do throws(SystemCallError) { try files.close(file) } catch { return error.code }
      return 0
    }()
    try perform(.close) { () throws(SystemCallError) in if code != 0 { throw SystemCallError(code) } }
  }
  func syncDirectory(_ path: String) throws(SystemCallError) {
    try perform(.syncDirectory) { () throws(SystemCallError) in try files.syncDirectory(path) }
  }
  func link(_ path: String, _ new: String) throws(SystemCallError) {
    try perform(.link) { () throws(SystemCallError) in try files.link(path, new) }
  }
  func rename(_ path: String, _ new: String) throws(SystemCallError) {
    try perform(.rename) { () throws(SystemCallError) in try files.rename(path, new) }
  }
  func unlink(_ path: String) throws(SystemCallError) {
    try perform(.unlink) { () throws(SystemCallError) in try files.unlink(path) }
  }
  func makeDirectory(_ path: String) throws(SystemCallError) {
    try perform(.makeDirectory) { () throws(SystemCallError) in try files.makeDirectory(path) }
  }
  func removeDirectory(_ path: String) throws(SystemCallError) {
    try perform(.removeDirectory) { () throws(SystemCallError) in try files.removeDirectory(path) }
  }
  func now() -> Int { state.withLock { $0.time } ?? files.now() }
}
