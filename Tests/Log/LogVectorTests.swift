import Foundation
import LatchkeyEncoding
import LatchkeyKeys
import LatchkeyLog
import Testing

/// The frozen log: two groups, one of two parts, in a segment and a tail. `Tests/Vectors/check.py` reads the same file by the format's text.
struct LogVectorTests {
  static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Vectors/log.json")

  static func vector() throws -> String {
    var world = World(seed: "vectors: log")
    let payloads: [[[UInt8]]] = [
      [Array("first part".utf8), [UInt8](repeating: 0x61, count: 400)], [Array("second group".utf8)],
    ]
    var clock: UInt64 = 1_800_000_000_000 << 16
    for parts in payloads {
      clock += 1 << 16
      _ = world.log.append(
        parts: parts.map { ($0, true) }, hlc: clock, rosterHeads: [world.keys.household], signing: world.author.signing)
    }
    let entries = world.log.tail
    let objects = try world.log.seal(
      HeadFacts(vector: [:], rosterHeads: [world.keys.household], hlc: clock, digest: .zero), keys: world.keys,
      signing: world.author.signing, now: 0, random: &world.random)
    let segment = SegmentContent(
      origin: world.origin, zone: world.zone, index: 1, firstSequence: 1, entries: Array(entries.prefix(2)))
    func text(_ pairs: [(String, String)]) -> String {
      "{" + pairs.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}"
    }
    func quoted(_ bytes: [UInt8]) -> String { "\"\(hex(bytes))\"" }
    let bodies = try entries.map { try EntryBody(decoding: $0.body) }
    let lines = try zip(entries, bodies).map { entry, body in
      text([
        ("body", quoted(entry.body)), ("signature", quoted(entry.signature)),
        ("hash", quoted(EntryBody.hash(of: entry.body).bytes)),
        ("payload", quoted(try entry.payload(body))), ("stored", quoted(entry.encoded())),
        ("tie", quoted(Incarnation(body.group.tie).bytes)),
      ])
    }
    return """
      {
      "epoch_key": \(quoted(world.keys.key.secret.bytes)), "household": \(quoted(world.keys.household.bytes)),
      "zone": \(quoted(world.zone.bytes)), "device": \(quoted(world.author.id.bytes)), "incarnation": \(quoted(world.origin.incarnation.bytes)),
      "sign_public": \(quoted(world.author.publicKeys.signing.bytes)),
      "entries": [
      \(lines.joined(separator: ",\n"))
      ],
      "segment_name": "\(world.keys.segmentName(zone: world.zone, origin: world.origin, index: 1))", "segment": \(quoted(segment.encoded())),
      "head_name": "\(objects[0].name)", "head_object": \(quoted(objects[0].bytes))
      }

      """
  }

  @Test("the log's bytes are those that were frozen")
  func frozen() throws {
    let vector = try Self.vector()
    if ProcessInfo.processInfo.environment["LATCHKEY_WRITE_VECTORS"] == "log" {
      try vector.write(to: Self.file, atomically: true, encoding: .utf8)
    }
    #expect(try String(contentsOf: Self.file, encoding: .utf8) == vector)
  }
}
