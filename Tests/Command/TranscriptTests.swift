import Foundation
import Testing

@Suite struct TranscriptTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Transcripts")

  static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
    .filter { $0.hasSuffix(".txt") }.sorted()

  @Test("the sessions of the manual go as they are written", arguments: names)
  func session(name: String) throws {
    let file = TranscriptTests.folder.appendingPathComponent(name)
    try run(Transcript(try String(contentsOf: file, encoding: .utf8)), name)
  }

  private func run(_ transcript: Transcript, _ name: String) throws {
    #expect(!transcript.steps.isEmpty)
    let folder = try Folder()
    for step in transcript.steps {
      let result = try Program.run(step.command, in: folder)
      let isAsWritten =
        Transcript.matches(step.output, result.output) && Transcript.matches(step.error, result.error)
        && step.exit == result.exit
      #expect(
        isAsWritten,
        """
        \(name):\(step.lineNumber): $ \(step.command)
        \(result.output)--- standard error
        \(result.error)[\(result.exit)]
        """)
    }
  }

  private static let stories = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../docs/stories").standardizedFileURL

  static let storyNames = ((try? FileManager.default.contentsOfDirectory(atPath: stories.path)) ?? [])
    .filter { $0.hasSuffix(".md") }.sorted()

  @Test("the stories of the documentation go as they are told", arguments: storyNames)
  func story(name: String) throws {
    let file = TranscriptTests.stories.appendingPathComponent(name)
    try run(Transcript(markdown: try String(contentsOf: file, encoding: .utf8)), name)
  }

  @Test("there are sessions and stories to run")
  func sessionsExist() { #expect(!TranscriptTests.names.isEmpty && !TranscriptTests.storyNames.isEmpty) }

  @Test(
    "a star in a session stands for anything, three dots for any lines",
    arguments: [
      (["a*c"], "abbc\n", true), (["a*c"], "abbd\n", false), (["*"], "\n", true), (["..."], "", true),
      (["...", "z"], "x\ny\nz\n", true), (["...", "z"], "x\ny\n", false), (["a"], "a\nb\n", false),
      (["\\*"], "*\n", true), (["\\*"], "a\n", false), (["a", "", "b"], "a\n\nb\n", true), ([], "x\n", false),
      (["a*b*c"], "a1b2b3c\n", true), (["\\d"], "\\d\n", true),
    ])
  func matching(expected: [String], written: String, fits: Bool) {
    #expect(Transcript.matches(expected, written) == fits)
  }
}
