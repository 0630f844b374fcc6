import Foundation

/// The built command, run as the process that people run.
enum Program {
  struct Result {
    let output: String
    let error: String
    let exit: Int32
  }

  /// Where the products of the build are: beside the test bundle.
  static var directory: URL {
    let bundle = Bundle(for: Anchor.self).bundleURL
    return bundle.pathExtension == "xctest" ? bundle.deletingLastPathComponent() : bundle
  }

  /// Runs a line of shell in a directory, with nothing of this process's environment.
  ///
  /// - Parameter line: finds `latchkey` on its path; standard input is empty unless the line says otherwise.
  static func run(_ line: String, in directory: Folder, environment: [String: String] = [:]) throws -> Result {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", line]
    process.currentDirectoryURL = directory.url
    process.environment = directory.environment.merging(environment) { $1 }
    // Files, not pipes: nobody has to read while the process writes.
    let output = directory.scratch.appendingPathComponent("output")
    let error = directory.scratch.appendingPathComponent("error")
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try handle(output)
    process.standardError = try handle(error)
    try start(process)
    process.waitUntilExit()
    return Result(
      output: String(decoding: try Data(contentsOf: output), as: UTF8.self),
      error: String(decoding: try Data(contentsOf: error), as: UTF8.self),
      exit: process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus)
  }

  /// Starts a process that receives signals: the threads of a test block them, and a child inherits that.
  static func start(_ process: Process) throws {
    var (all, before) = (sigset_t(), sigset_t())
    sigfillset(&all)
    pthread_sigmask(SIG_UNBLOCK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try process.run()
  }

  private static func handle(_ url: URL) throws -> FileHandle {
    try Data().write(to: url)
    return try FileHandle(forWritingTo: url)
  }

  private final class Anchor {}
}

/// A fresh directory for one test, with a home of its own; gone afterwards.
final class Folder {
  let url: URL
  /// For what the runner itself needs.
  let scratch: URL

  init() throws {
    let root = FileManager.default.temporaryDirectory.appendingPathComponent("latchkey-\(UUID().uuidString)")
    url = root.appendingPathComponent("here")
    scratch = root.appendingPathComponent("scratch")
    for directory in [url, scratch] {
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }
  }

  deinit { try? FileManager.default.removeItem(at: url.deletingLastPathComponent()) }

  var environment: [String: String] {
    [
      "PATH": "\(Program.directory.path):/usr/local/bin:/usr/bin:/bin", "HOME": url.path,
      "LATCHKEY_HOME": url.appendingPathComponent("home").path, "LC_ALL": "C.UTF-8", "TERM": "xterm",
    ]
  }
}
