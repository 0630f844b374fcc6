import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// What a person at a terminal is asked, and what their answers lead to.
@Suite struct PromptTests {
  private static let join = "join --home ben --db ben.db --name Ben --device phone"

  @Test("a link that is typed is not shown, and the store is used after a yes")
  func joins() throws {
    let world = try World(.invited)
    let link = try world.shell("cat ben.invite")
    let session = try Dialogue("latchkey \(PromptTests.join)", in: world.folder)
    try session.expect("Paste the invite link (it is not shown): ")
    try session.type(link)
    try session.expect("folder:\(world.folder.url.path)/store")
    try session.expect("Use that store? [y/N] ")
    try session.type("y\n")
    try session.expect("Joined the household Smith")
    #expect(try session.end() == 0)
    #expect(!session.shown.contains(link.dropFirst("latchkey://join#".count).prefix(20)))
  }

  @Test("everything but yes is no: exit code 4, and nothing is made", arguments: ["n", "", "yep"])
  func declines(answer: String) throws {
    let world = try World(.invited)
    let before = try world.files()
    let session = try Dialogue("latchkey \(PromptTests.join)", in: world.folder)
    try session.expect("not shown): ")
    try session.type(try world.shell("cat ben.invite"))
    try session.expect("[y/N] ")
    try session.type(answer + "\n")
    try session.expect("Not confirmed. Nothing was changed.")
    #expect(try session.end() == 4)
    #expect(try world.files() == before)
  }

  @Test("--yes agrees to the store, and --store names it, without a question", arguments: ["--yes", "--store store"])
  func agrees(option: String) throws {
    let world = try World(.invited)
    let session = try Dialogue("latchkey \(PromptTests.join) --invite-file ben.invite \(option)", in: world.folder)
    try session.expect("Joined the household Smith")
    #expect(try session.end() == 0)
    #expect(!session.shown.contains("[y/N]"))
  }

  @Test("an interrupt at a question ends with 130, and nothing is made")
  func interrupted() throws {
    let world = try World(.invited)
    let before = try world.files()
    let session = try Dialogue("exec latchkey \(PromptTests.join) --invite-file ben.invite", in: world.folder)
    try session.expect("[y/N] ")
    session.interrupt()
    try session.expect("Interrupted.")
    #expect(try session.end() == 130)
    #expect(try world.files() == before)
  }

  @Test("--no-input never asks, at a terminal either")
  func noInput() throws {
    let world = try World(.invited)
    let before = try world.files()
    let missing = try Dialogue("latchkey \(PromptTests.join) --no-input", in: world.folder)
    try missing.expect("The invite link is missing, and --no-input forbids asking for it.")
    #expect(try missing.end() == 14)
    let store = try Dialogue("latchkey \(PromptTests.join) --no-input --invite-file ben.invite", in: world.folder)
    try store.expect("nobody on this device has agreed to use it")
    #expect(try store.end() == 15)
    #expect(try world.files() == before)
  }
}

/// A process at a pseudo-terminal.
final class Dialogue {
  private let process = Process()
  private let master: Int32
  /// Everything the terminal has shown.
  private(set) var shown = ""
  private var read = ""

  struct Silent: Error {
    let waitedFor: String
    let shown: String
  }

  init(_ line: String, in folder: Folder) throws {
    let (master, slave) = try Dialogue.pair()
    self.master = master
    let terminal = FileHandle(fileDescriptor: slave, closeOnDealloc: true)
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", line]
    process.currentDirectoryURL = folder.url
    process.environment = folder.environment
    process.standardInput = terminal
    process.standardOutput = terminal
    process.standardError = terminal
    try Program.start(process)
  }

  /// The two ends of a new pseudo-terminal.
  private static func pair() throws -> (master: Int32, slave: Int32) {
    #if os(Linux)
      // posix_openpt(3) is not imported; this is what it does.
      let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
      var (lock, number): (Int32, UInt32) = (0, 0)
      let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
      guard master >= 0, ioctl(master, setLock, &lock) == 0, ioctl(master, getNumber, &number) == 0 else {
        throw CocoaError(.fileReadUnknown)
      }
      let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
    #else
      let master = posix_openpt(O_RDWR | O_NOCTTY)
      guard master >= 0, grantpt(master) == 0, unlockpt(master) == 0, let name = ptsname(master) else {
        throw CocoaError(.fileReadUnknown)
      }
      let slave = open(name, O_RDWR | O_NOCTTY)
    #endif
    guard slave >= 0 else { throw CocoaError(.fileReadUnknown) }
    return (master, slave)
  }

  deinit {
    if process.isRunning { process.terminate() }
    close(master)
  }

  /// Waits until the terminal shows the text, after what was waited for before.
  func expect(_ text: String) throws {
    while true {
      if let range = read.range(of: text) {
        read = String(read[range.upperBound...])
        return
      }
      guard let more = next() else { throw Silent(waitedFor: text, shown: shown) }
      read += more
      shown += more
    }
  }

  func type(_ text: String) throws {
    // Echo is turned off right after the prompt is written.
    usleep(200_000)
    let bytes = Array(text.utf8)
    guard write(master, bytes, bytes.count) == bytes.count else { throw CocoaError(.fileWriteUnknown) }
  }

  func interrupt() { process.interrupt() }

  /// The exit code, once the process has ended.
  func end() throws -> Int32 {
    while process.isRunning, let more = next() { shown += more }
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// What is shown next; nil if nothing is for 20 seconds, or the process has ended.
  private func next() -> String? {
    for _ in 0..<200 {
      var ready = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
      if poll(&ready, 1, 100) > 0, ready.revents & Int16(POLLIN) != 0 {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = readBytes(master, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
      }
      if !process.isRunning { return nil }
    }
    return nil
  }
}

/// `read(2)`, whose name a property above hides.
private func readBytes(_ file: Int32, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
  read(file, buffer, count)
}
