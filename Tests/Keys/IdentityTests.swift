import LatchkeyEncoding
import LatchkeyKeys
import Testing

@Suite("Signatures")
struct SigningTests {
  @Test("a signature holds for its purpose, its body and its key only")
  func purposes() throws {
    var random = SeededRandom("signing")
    let (key, other) = (SigningKey(&random), SigningKey(&random))
    let body = random.bytes(50)
    for purpose in SigningPurpose.allCases {
      let signature = key.sign(purpose, body)
      for presented in SigningPurpose.allCases {
        #expect(key.publicKey.verifies(signature, presented, body) == (presented == purpose))
      }
      #expect(!other.publicKey.verifies(signature, purpose, body))
      #expect(!key.publicKey.verifies(signature, purpose, body + [0]))
      #expect(key.sign(purpose, body) == signature, "signing needs no randomness")
    }
  }

  @Test("a flipped bit, S + L, and keys of small order are refused")
  func malleability() throws {
    var random = SeededRandom("malleability")
    let key = SigningKey(&random)
    let good = key.sign(.entry, [1])
    for index in 0..<64 {
      var bytes = good.bytes
      bytes[index] ^= 1 << UInt8(index % 8)
      #expect(!key.publicKey.verifies(try #require(Signature(bytes)), .entry, [1]))
    }
    // The group's order L, little-endian: adding it to S gives the same point.
    let order: [UInt8] = [
      0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ]
    var bytes = good.bytes
    var carry = 0
    for index in 0..<32 {
      let sum = Int(bytes[32 + index]) + Int(order[index]) + carry
      bytes[32 + index] = UInt8(sum & 255)
      carry = sum >> 8
    }
    #expect(!key.publicKey.verifies(try #require(Signature(bytes)), .entry, [1]))
    let one = [UInt8(1)] + [UInt8](repeating: 0, count: 31)
    for small in [[UInt8](repeating: 0, count: 32), one] {
      let smallKey = try #require(SigningPublicKey(small))
      #expect(!smallKey.verifies(try #require(Signature(one + [UInt8](repeating: 0, count: 32))), .entry, [1]))
    }
    #expect(!key.publicKey.verifies(.absent, .entry, [1]))
  }

  @Test("secrets show nothing of themselves when printed")
  func redaction() {
    var random = SeededRandom("redaction")
    let keys = DeviceKeys(&random)
    let link = InviteLink(
      secret: InviteSecret(&random), household: .zero, checkpoint: .zero, locator: "folder:/x",
      credential: Credential("hunter2"), expiry: 1, role: .reader)
    let epoch = EpochKey(&random)
    var printed = "\(keys) \(keys.signing) \(keys.box) \(epoch) \(link) \(link.secret) \(link.secret.keys)"
    dump([keys.signing.secret, keys.box.secret, epoch.secret], to: &printed)
    dump(link, to: &printed)
    for secret in [keys.signing.secret, keys.box.secret, epoch.secret, link.secret.secret] {
      #expect(!printed.contains(hex(secret.bytes).prefix(16)))
      #expect(!printed.contains(secret.bytes.prefix(4).map { "\($0)" }.joined(separator: ", ")))
    }
    #expect(!printed.contains("hunter2"))
  }

  @Test("a seeded source gives the same bytes however they are asked for")
  func seeded() {
    var (one, two) = (SeededRandom("x"), SeededRandom("x"))
    let whole = one.bytes(200)
    #expect((0..<200).map { _ in two.bytes(1)[0] } == whole)
    var other = SeededRandom("y")
    #expect(other.bytes(200) != whole)
  }
}

@Suite("Certificates")
struct CertificateTests {
  @Test("a chain grows from the person's first device, each vouched for by one before it, and survives encoding")
  func chain() throws {
    var random = SeededRandom("chain")
    let first = Actor("laptop", &random)
    let second = try Actor("phone", of: first, &random)
    let third = try Actor("tablet", of: second, &random)
    #expect(third.chain.person == first.keys.publicKeys.foundedPerson && third.chain.keys == third.keys.publicKeys)
    #expect(try CertificateChain.decode(third.chain.encoded) == third.chain)
    #expect(Set([first, second, third].map(\.chain.person)).count == 1)
  }

  @Test("chains that do not show the membership are refused, each for its reason")
  func refused() throws {
    var random = SeededRandom("refused")
    let ana = Actor("Ana", &random)
    let phone = try Actor("phone", of: ana, &random)
    let ben = Actor("Ben", &random)
    func expect(_ error: CertificateError, _ certificates: [Certificate]) {
      #expect(throws: error) { try CertificateChain(verifying: certificates) }
    }
    expect(.length, [])
    expect(.notFounded, [phone.certificate])
    expect(.repeated, [ana.certificate, phone.certificate, phone.certificate])
    expect(.repeated, [ana.certificate, ana.certificate])
    expect(.otherPerson, [ana.certificate, ben.certificate])
    // Ben claims Ana's person: he can ask, and vouch for himself, and nobody of hers signed.
    let request = Certificate(request: ben.keys, person: ana.chain.person, signer: ana.keys.id)
    expect(.forged, [ana.certificate, request])
    let elsewhere = Certificate(request: phone.keys, person: ana.chain.person, signer: ben.keys.id)
    let byBen = try #require(elsewhere.completed(by: ben.keys))
    expect(.unknownSigner, [ana.certificate, byBen])
    #expect(request.completed(by: ben.keys) == nil, "only the device that was asked completes a request")
    var long = [ana.certificate]
    for number in 2...17 { long.append(try Actor("\(number)", of: ana, &random).certificate) }
    #expect(throws: Never.self) { try CertificateChain(verifying: Array(long.prefix(16))) }
    expect(.length, long)
  }

  @Test("every flipped bit in the encoding of a chain of two is refused")
  func flips() throws {
    var random = SeededRandom("flips")
    let first = Actor("laptop", &random)
    let encoded = try Actor("phone", of: first, &random).chain.encoded
    for index in encoded.indices {
      var altered = encoded
      altered[index] ^= 1 << UInt8((index * 5) % 8)
      #expect(throws: FormatError.self) { try CertificateChain.decode(altered) }
    }
    for length in encoded.indices {
      #expect(throws: FormatError.self) { try CertificateChain.decode(Array(encoded.prefix(length))) }
    }
  }
}

@Suite("Seals of epoch keys")
struct SealTests {
  @Test("a seal opens with its recipient's key, and everyone who holds the epoch key computes the same one")
  func recomputable() throws {
    var random = SeededRandom("seals")
    let (key, ana, ben) = (EpochKey(&random), BoxKey(&random), BoxKey(&random))
    let seal = try #require(key.seal(to: ana.publicKey))
    #expect(seal.open(with: ana) == key)
    #expect(seal.open(with: ben) == nil)
    #expect(key.seal(to: ana.publicKey) == seal)
    #expect(key.seal(to: ben.publicKey) != seal)
    #expect(EpochKey(&random).seal(to: ana.publicKey) != seal)
  }

  @Test("every flipped bit of a seal is refused")
  func flips() throws {
    var random = SeededRandom("seal flips")
    let (key, ana) = (EpochKey(&random), BoxKey(&random))
    let seal = try #require(key.seal(to: ana.publicKey))
    for index in seal.bytes.indices {
      for bit in 0..<8 {
        var bytes = seal.bytes
        bytes[index] ^= 1 << UInt8(bit)
        #expect(try #require(KeySeal(bytes)).open(with: ana) == nil)
      }
    }
  }

  @Test("keys of small order get no seal")
  func smallOrder() throws {
    var random = SeededRandom("small")
    let zero = try #require(BoxPublicKey([UInt8](repeating: 0, count: 32)))
    #expect(EpochKey(&random).seal(to: zero) == nil)
  }

  @Test("a commitment binds the key and the parents")
  func commitments() {
    var random = SeededRandom("commitments")
    let (key, other) = (EpochKey(&random), EpochKey(&random))
    let all = [key.commitment(parents: []), key.commitment(parents: [.zero]), other.commitment(parents: [])]
    #expect(Set(all).count == 3)
  }
}
