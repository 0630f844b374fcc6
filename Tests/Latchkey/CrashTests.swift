import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyKeys
import Testing

@Suite("A sync that dies at any request")
struct CrashTests {
  @Test(
    "is simply run again: nothing is lost, nothing forks, the same bytes are sent", arguments: Fault.Moment.allCases)
  func sync(moment: Fault.Moment) async throws {
    let place = try Place()
    let fault = Fault()
    let (ana, ben) = try await household(place, fault)
    var step = 0
    var didFail = true
    while didFail {
      try place.run(
        "a.db",
        "INSERT INTO entries(account, cents, note) VALUES (1, \(step), 'a\(step)'); UPDATE accounts SET name = 'n\(step)' WHERE id = 1"
      )
      try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (2, \(step), 'b\(step)')")
      _ = try await ben.sync(place.path("b.db"))
      fault.arm(after: step, moment)
      do throws(LatchkeyError) {
        _ = try await ana.sync(place.path("a.db"))
        didFail = false
      } catch { #expect(error.code == "cancelled") }
      fault.arm(after: nil)
      // An edit between the crash and the retry is a later entry, not another version of the one that was sealed.
      try place.run("a.db", "UPDATE entries SET note = note || '+' WHERE cents = \(step) AND note LIKE 'a%'")
      #expect(try await ana.sync(place.path("a.db")).warnings.isEmpty)
      #expect(try await ben.sync(place.path("b.db")).warnings.isEmpty)
      #expect(try await ana.sync(place.path("a.db")).waiting == 0)
      #expect(try place.rows("a.db", budgetDump) == place.rows("b.db", budgetDump))
      step += 1
    }
    #expect(step >= 5)
    #expect(try place.rows("a.db", "SELECT count(*) FROM entries") == ["\(3 + 2 * step)"])
    // No name was ever given two contents: retries send what was sealed.
    var contents: [ObjectName: [UInt8]] = [:]
    for (name, bytes) in fault.plan.withLock({ $0.puts }) {
      #expect(contents[name] == nil || contents[name] == bytes)
      contents[name] = bytes
    }
  }

  @Test("is run again after sharing stopped at any request", arguments: Fault.Moment.allCases)
  func share(moment: Fault.Moment) async throws {
    for step in 0..<60 {
      let place = try Place()
      let fault = Fault()
      let ana = place.home("ana", fault)
      try place.run("a.db", budgetSchema)
      try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
      try await ana.attach(place.path("a.db"), zone: "Budget")
      _ = try await ana.sync(place.path("a.db"))
      fault.arm(after: step, moment)
      var didFail = false
      do throws(LatchkeyError) { _ = try await ana.share(place.path("a.db"), household: "Smith") } catch {
        #expect(error.code == "cancelled")
        didFail = true
      }
      fault.arm(after: nil)
      if didFail {
        do throws(LatchkeyError) {
          let report = try await ana.share(place.path("a.db"), household: "Smith")
          #expect(report.isVerified)
        } catch { #expect(error.code == "already-shared") }
      }
      _ = try await ana.sync(place.path("a.db"))
      let invite = try await ana.invite(household: "Smith")
      let joined = try await place.home("ben").join(
        link: invite.link, options: JoinOptions(database: place.path("b.db"), name: "Ben", device: "phone")
      ) { _ in true }
      #expect(joined.rows == 5)
      #expect(try place.rows("a.db", budgetDump) == place.rows("b.db", budgetDump))
      #expect(try await ana.identity().households.filter { $0.name == "Smith" }.count == 1)
      #expect(try await ana.counts(place.path("a.db")).household == "Smith")
      if !didFail { return }
    }
    Issue.record("sharing never got through")
  }

  @Test("is run again after joining stopped at any request", arguments: Fault.Moment.allCases)
  func join(moment: Fault.Moment) async throws {
    for step in 0..<80 {
      // A household of its own each time: one that grows takes more requests to join.
      let place = try Place()
      let ana = place.home("ana")
      try place.run("a.db", budgetSchema)
      try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
      try await ana.attach(place.path("a.db"), zone: "Budget")
      _ = try await ana.share(place.path("a.db"), household: "Smith")
      let invite = try await ana.invite(household: "Smith")
      let fault = Fault()
      let carl = place.home("carl\(step)", fault)
      let options = JoinOptions(database: place.path("c\(step).db"), name: "Carl \(step)", device: "tablet")
      fault.arm(after: step, moment)
      var didFail = false
      do throws(LatchkeyError) { _ = try await carl.join(link: invite.link, options: options) { _ in true } } catch {
        #expect(error.code == "cancelled")
        #expect(!FileManager.default.fileExists(atPath: place.path("c\(step).db")))
        didFail = true
      }
      fault.arm(after: nil)
      if didFail { _ = try await carl.join(link: invite.link, options: options) { _ in true } }
      _ = try await ana.sync(place.path("a.db"))
      _ = try await carl.sync(place.path("c\(step).db"))
      #expect(try place.rows("a.db", budgetDump) == place.rows("c\(step).db", budgetDump))
      #expect(try await ana.members().members.contains { $0.name == "Carl \(step)" })
      if !didFail { return }
    }
    Issue.record("joining never got through")
  }
}
