import Testing

@testable import LatchkeyCommand

@Suite struct SpanTests {
  @Test(
    "a length of time is a whole number and a unit",
    arguments: [("90s", 90), ("10m", 600), ("24h", 86_400), ("7d", 604_800), ("2w", 1_209_600), ("365d", 31_536_000)])
  func read(text: String, seconds: Int64) { #expect(Span(text)?.seconds == seconds) }

  @Test(
    "anything else is none",
    arguments: ["", "h", "24", "0h", "-1h", "1.5h", "24 h", "24H", "1h30m", "366d", "٣h", "99999999999999999999w"])
  func refused(text: String) { #expect(Span(text) == nil) }
}
