import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyKeys
import LatchkeyLog
import Testing

@Suite("Checking a store")
struct CheckingTests {
  @Test(
    "a check of an honest store reads everything, finds nothing and changes nothing, also after epochs, a clone and a removal"
  )
  func honest() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try village.run(ana.file, "INSERT INTO accounts(name) VALUES (hex(randomblob(20000)))")
    try await village.settle(ana, ben, cy)
    try village.copy("ben", to: "twin")
    try village.copy("ben.db", to: "twin.db")
    let twin = Resident("twin", village)
    try ben.write("by the first")
    try await village.settle(ben)
    try twin.write("by the second")
    try await village.settle(twin, ana, cy, ben)
    try await ana.home.removeMember("Cy")
    try ana.write("after Cy")
    try await village.settle(ana, ben)
    let before = village.shelf.objects()
    for resident in [ana, ben] {
      let report = try await resident.home.check(resident.file)
      #expect(report.findings == [] && report.evidence == nil && report.households == ["Smith"])
      #expect(report.objects > 20 && report.bytes > 20 * 4096)
      // What is left is the private household's, the invites' blobs and the marker.
      #expect(report.objects + report.foreign + 1 == before.count)
    }
    let all = try await ana.home.check()
    #expect(all.findings == [] && all.households.count == 2)
    #expect(village.shelf.objects() == before)
  }

  @Test(
    "every altered object is listed by its name with what it means; what is missing, unknown or rolled back is, too")
  func damage() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    try village.run(ana.file, "INSERT INTO accounts(name) VALUES (hex(randomblob(20000)))")
    try await village.settle(ana, ben)
    let insider = try Insider(ana)
    let honest = village.shelf.objects()
    let prefixes = insider.state.epochs.flatMap { [$0.prefix(.roster), $0.prefix(insider.zone)] }
    var kinds: Set<String> = []
    for (name, bytes) in honest.all where prefixes.contains(String(name.text.prefix(32))) {
      kinds.insert(String(name.text.dropFirst(33).prefix(1)))
      var altered = bytes
      altered[bytes.count / 2] ^= 1
      village.shelf.plant(name, altered)
      let report = try await ben.home.check(ben.file)
      #expect(report.findings.contains { $0.code == "damaged" && $0.object == name.text && $0.isDamage })
      #expect(report.hasDamage && report.evidence == nil)
      village.shelf.replace(with: honest)
    }
    #expect(kinds.isSuperset(of: ["h", "l", "n", "r", "c"]))

    let segment = insider.keys.objectName(
      zone: insider.zone, insider.keys.segmentName(zone: insider.zone, origin: insider.rows.origin, index: 1))
    village.shelf.remove(segment)
    #expect(try await ben.home.check(ben.file).findings.map(\.object) == [segment.text])
    #expect(try await ben.home.check(ben.file).findings.map(\.code) == ["missing"])
    village.shelf.replace(with: honest)

    let stray = try #require(ObjectName("\(insider.keys.prefix(insider.zone))/q/aa/bb"))
    village.shelf.plant(stray, [1])
    #expect(try await ben.home.check(ben.file).findings.map(\.object) == [stray.text])
    village.shelf.replace(with: honest)

    try ana.write("lost by the store")
    try await village.settle(ana, ben)
    village.shelf.replace(with: honest)
    let report = try await ben.home.check(ben.file)
    #expect(report.findings.contains { $0.code == "rollback" && $0.message.contains(insider.device.id.short) })
  }

  @Test("two histories under one key are exported as signed statements that contradict each other, without rows")
  func evidence() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    try await village.settle(ana, ben)
    try village.copy("ben", to: "twin")
    try village.copy("ben.db", to: "twin.db")
    let twin = Resident("twin", village)
    village.shelf.replace("other", with: village.shelf.objects())
    village.shelf.show("twin") { $0.world = "other" }
    try ben.write("canary of one history")
    _ = try await ben.sync()
    for number in 0..<2 {
      try twin.write("canary of another \(number)")
      _ = try await twin.sync()
    }
    for object in village.shelf.objects("other").all where village.shelf[object.name] == nil {
      village.shelf.plant(object.name, object.bytes)
    }
    let report = try await ana.home.check(ana.file)
    #expect(report.contradictions == 1 && report.hasDamage)
    #expect(report.findings.contains { $0.code == "fork" })
    let text = try #require(report.evidence)

    struct File: Decodable {
      struct Contradiction: Decodable {
        struct Statement: Decodable { let purpose, body, signature: String }
        let sign, box: String
        let statements: [Statement]
      }
      let contradictions: [Contradiction]
    }
    let found = try #require(try JSONDecoder().decode(File.self, from: Data(text.utf8)).contradictions.first)
    let insider = try Insider(ben)
    #expect(found.sign == insider.device.publicKeys.signing.description && found.statements.count == 2)
    var said: [UInt64: Set<EntryHash>] = [:]
    for statement in found.statements {
      let body = try #require(unhex(statement.body))
      let signature = try #require(unhex(statement.signature).flatMap(Signature.init))
      let isHead = statement.purpose == "head"
      #expect(insider.device.publicKeys.signing.verifies(signature, isHead ? .head : .entry, body))
      #expect(Data(body).range(of: Data("canary".utf8)) == nil)
      if isHead {
        let head = try HeadBody(decoding: body)
        said[head.lastSequence, default: []].insert(head.lastHash)
      } else {
        let entry = try EntryBody(decoding: body)
        said[entry.sequence, default: []].insert(EntryBody.hash(of: body))
        if let previous = entry.previous { said[entry.sequence - 1, default: []].insert(previous) }
      }
    }
    #expect(said.values.contains { $0.count == 2 })
    #expect(try await ana.home.check(ana.file).evidence == text)
  }
}
