/// What the conformance suite found.
public struct ConformanceReport: Sendable, CustomStringConvertible {
  public enum Outcome: Equatable, Sendable {
    case passed
    /// Why it failed.
    case failed(String)
    /// Why it was not run.
    case skipped(String)
  }

  public struct Result: Equatable, Sendable {
    /// Short and stable.
    public let name: String
    /// What the case claims.
    public let claim: String
    public let outcome: Outcome
  }

  public let results: [Result]

  /// Whether nothing failed.
  public var passed: Bool { failures.isEmpty }

  public var failures: [Result] {
    results.filter { if case .failed = $0.outcome { true } else { false } }
  }

  /// A table: one line a case, and what failed or was skipped below it.
  public var description: String {
    let width = results.map { $0.name.count }.max() ?? 0
    var lines: [String] = []
    for result in results {
      let name = result.name + String(repeating: " ", count: width - result.name.count)
      switch result.outcome {
      case .passed: lines.append("ok    \(name)  \(result.claim)")
      case .failed(let why): lines += ["FAIL  \(name)  \(result.claim)", "      \(why)"]
      case .skipped(let why): lines.append("skip  \(name)  \(why)")
      }
    }
    let skipped = results.count { if case .skipped = $0.outcome { true } else { false } }
    lines.append("\(results.count) cases, \(failures.count) failed, \(skipped) skipped")
    return lines.joined(separator: "\n")
  }
}
