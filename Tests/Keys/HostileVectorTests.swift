import Foundation
import LatchkeyEncoding
import LatchkeyKeys
import Testing

/// A file of Tests/Vectors.
func vectorFile(_ name: String) -> URL {
  URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Vectors").appendingPathComponent(name)
}

@Suite("What no honest writer makes (Tests/Vectors/hostile.json, made by an independent program)")
struct HostileVectorTests {
  private struct File: Decodable {
    struct TwoKeyObject: Decodable {
      let household, epoch, zone, name: String
      let zoneKeys: [String]
      let objectCommittedToFirst, objectCommittedToSecond: String
    }
    struct Seal: Decodable {
      let key, recipientSecret, recipient, seal, sealOfOwnMaking: String
    }
    let twoKeyObject: TwoKeyObject
    /// At the place, and with the first key, of the two-key object.
    let padding: [String: String]
    let seal: Seal
  }

  private func file() throws -> File {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(File.self, from: Data(contentsOf: vectorFile("hostile.json")))
  }

  private func place(of made: File.TwoKeyObject) throws -> EnvelopePlace {
    EnvelopePlace(
      kind: .segment, household: try #require(unhex(made.household).flatMap(Hash32.init)),
      epoch: try #require(unhex(made.epoch).flatMap(Hash32.init)),
      zone: try #require(unhex(made.zone).flatMap(ZoneID.init)), name: try #require(ObjectName(made.name)))
  }

  @Test("an object that is not padded with zeros, or whose length lies, is refused though its tag holds")
  func padding() throws {
    let file = try file()
    let place = try place(of: file.twoKeyObject)
    let key = ZoneKey(try #require(file.twoKeyObject.zoneKeys.first.flatMap { unhex($0) }))
    #expect(file.padding.count == 5)
    for (name, text) in file.padding {
      let object = try #require(unhex(text))
      if name == "sound" {
        #expect(try Envelope.open(object, at: place, key: key) == Array("abc".utf8))
      } else {
        #expect(throws: EnvelopeError.padding, "\(name)") { try Envelope.open(object, at: place, key: key) }
      }
    }
  }

  @Test("a ciphertext whose tag holds under two keys opens for one reader only: the other is stopped by the commitment")
  func twoKeys() throws {
    let made = try file().twoKeyObject
    let place = try place(of: made)
    let keys = try made.zoneKeys.map { ZoneKey(try #require(unhex($0))) }
    let first = try #require(unhex(made.objectCommittedToFirst))
    let second = try #require(unhex(made.objectCommittedToSecond))
    let content = try Envelope.open(first, at: place, key: keys[0])
    #expect(content.starts(with: Array("This opens under two keys.".utf8)))
    #expect(throws: EnvelopeError.commitment) { try Envelope.open(first, at: place, key: keys[1]) }
    #expect(throws: EnvelopeError.commitment) { try Envelope.open(second, at: place, key: keys[0]) }
    // The tag does hold under the second key: only what is inside is not of the stated form.
    #expect(throws: EnvelopeError.padding) { try Envelope.open(second, at: place, key: keys[1]) }
  }

  @Test("a seal that opens but was not made in the one stated way is refused")
  func ownMaking() throws {
    let made = try file().seal
    let recipient = try #require(unhex(made.recipientSecret).flatMap { BoxKey(secret: SecretBytes($0)) })
    let key = try #require(unhex(made.key).flatMap { EpochKey(SecretBytes($0)) })
    #expect(hex(recipient.publicKey.bytes) == made.recipient)
    #expect(key.seal(to: recipient.publicKey).map { hex($0.bytes) } == made.seal)
    let good = try #require(unhex(made.seal).flatMap(KeySeal.init))
    #expect(good.open(with: recipient) == key)
    let own = try #require(unhex(made.sealOfOwnMaking).flatMap(KeySeal.init))
    #expect(own.open(with: recipient) == nil)
  }
}
