import Glibc
import LatchkeyEncoding
import LatchkeySQLite

/// The program: runs seeds, each twice, and reports.
struct SimulationCommand {
  private struct Usage: Error { let message: String }

  private var seeds = 1
  private var first: UInt64 = 1
  private var bug: String?
  private var isVerbose = false
  private var shrinks = false
  /// Whether to go on after a failure.
  private var runsAll = false
  /// Whether to run the seeds that once found something.
  private var runsSaved = false
  private var problem: String?

  /// From how many seeds on every situation must have been reached.
  static let seedsForMarks = 1_000

  init(_ arguments: [String]) {
    do { try parse(Array(arguments.dropFirst())) } catch let usage as Usage { problem = usage.message } catch {}
  }

  private mutating func parse(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--seeds":
        guard let value = rest.popFirst().flatMap(Int.init), value > 0 else {
          throw Usage(message: "--seeds needs a number")
        }
        seeds = value
      case "--seed":
        guard let value = rest.popFirst().flatMap(UInt64.init) else { throw Usage(message: "--seed needs a number") }
        first = value
      case "--bug":
        guard let name = rest.popFirst() else { throw Usage(message: "--bug needs a name") }
        bug = name
      case "--verbose": isVerbose = true
      case "--shrink": shrinks = true
      case "--all": runsAll = true
      case "--saved": runsSaved = true
      default: throw Usage(message: "unknown argument \(argument)")
      }
    }
    if let bug { try plant(bug) }
  }

  private func plant(_ name: String) throws {
    #if LATCHKEY_MUTATIONS
      guard let mutation = Mutation(rawValue: name) else {
        let names = Mutation.allCases.map(\.rawValue).joined(separator: ", ")
        throw Usage(message: "no bug is named \(name); there are: \(names)")
      }
      Mutation.active = mutation
    #else
      throw Usage(message: "this program was compiled without bugs: use scripts/simulate")
    #endif
  }

  func run() -> Int32 {
    var standardError = StandardError()
    if let problem {
      print("latchkey-simulation: \(problem)", to: &standardError)
      print(
        "usage: latchkey-simulation --seeds N [--seed S] [--bug NAME] [--verbose] [--shrink] [--all] [--saved]",
        to: &standardError)
      return 64
    }
    let clocks = (0..<Swarm.mostDevices).compactMap { _ in VirtualClock(milliseconds: 0) }
    guard clocks.count == Swarm.mostDevices else {
      print("latchkey-simulation: SQLite takes no virtual clock", to: &standardError)
      return 1
    }
    var marks = Marks()
    let start = ContinuousClock.now
    var failures: [String] = []
    let chosen = runsSaved ? SavedSeeds.all.map(\.seed) : (0..<UInt64(seeds)).map { first &+ $0 }
    for (offset, seed) in chosen.enumerated() {
      let runner = Runner(seed: seed, clocks: clocks)
      guard let violation = runner.runTwice(isVerbose: isVerbose, &marks) else { continue }
      if shrinks { print(runner.shrink(violation)) }
      let planted = bug.map { " --bug \($0)" } ?? ""
      failures.append(
        "seed \(seed) failed: \(violation.invariant.rawValue): \(violation.detail); reproduce: scripts/simulate --seed \(seed) --seeds 1\(planted)"
      )
      if !runsAll {
        print("\(offset) seeds held before.")
        break
      }
    }
    if let last = failures.last {
      if failures.count > 1 { print(failures.dropLast().joined(separator: "\n")) }
      if runsAll { print("\(failures.count) of \(chosen.count) seeds failed.") }
      print(last)
      return 1
    }
    let elapsed = start.duration(to: .now)
    let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
    print(
      "\(chosen.count) seeds held, each run twice, in \(round(seconds * 10) / 10) s: \(round(Double(chosen.count) / seconds * 10) / 10) a second"
    )
    print("reached: " + Mark.allCases.map { "\($0) \(marks[$0])" }.joined(separator: ", "))
    let missing = marks.missing
    if chosen.count >= Self.seedsForMarks, bug == nil, !missing.isEmpty {
      print("never reached: \(missing.map { "\($0)" }.joined(separator: ", "))")
      return 1
    }
    return 0
  }
}

/// Where usage errors go.
struct StandardError: TextOutputStream {
  mutating func write(_ string: String) {
    let bytes = Array(string.utf8)
    _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
  }
}
