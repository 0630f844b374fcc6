import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import LatchkeySQLite
import LatchkeyTables

/// The end of a run: faults end, everybody syncs until nothing moves, and everything is checked.
extension World {
  /// Passes over all devices within which everything must have been sent, received and shown. A device that had not joined when the
  /// faults ended needs several: an invite, a claim, an answer, and the same again where a rival took its link.
  static let settlingPasses = 48

  func settle() throws {
    var days = 0
    for pass in 1...World.settlingPasses {
      // A device that joins in the last step of a pass has yet to send its claim.
      let areMembers = present.allSatisfy(\.isMember)
      let (puts, deletes, received) = try syncEverybody()
      trace.note("settling \(pass): \(puts) put, \(deletes) deleted, \(received) received")
      guard puts == 0, received == 0 else { continue }
      // What is not urgent is done after a while: parallel epochs are joined.
      if let due = present.compactMap({ $0.isRemoved ? nil : $0.kept?.nextDue }).max(), due > time {
        advanceTime(past: due)
        continue
      }
      // So has one that found out that the epoch which it claimed in has ended.
      guard deletes == 0, areMembers, present.allSatisfy({ $0.isRemoved || $0.kept?.needsClaim == false }) else {
        continue
      }
      let waiting = present.filter { $0.kept?.isProvisional == true && !$0.isRemoved }
      if !waiting.isEmpty {
        for device in waiting { inviteAgain(device) }
        continue
      }
      // A day is what a device waits for others to show what it misses, and until it looks again where it was before.
      let isWaiting = members.contains { $0.lastReport?.holds.isEmpty == false || !isEmpty($0.lastReport?.unjudged) }
      if days < (isWaiting ? 3 : 1) {
        days += 1
        advanceTime(past: time + Belief.day)
        continue
      }
      return
    }
    throw Violation(.progress, "still moving after \(World.settlingPasses) passes")
  }

  private func isEmpty(_ hashes: [EntryHash]?) -> Bool { hashes?.isEmpty ?? true }

  /// Devices that are in the household, by what they know.
  var members: [Device] { present.filter { $0.role != nil && $0.lastReport?.isLeftBehind != true } }

  func quietRound() throws {
    let (puts, deletes, received) = try syncEverybody()
    if puts > 0 || deletes > 0 || received > 0 {
      throw Violation(.quiescence, "\(puts) put, \(deletes) deleted, \(received) received when all was settled")
    }
  }

  private func syncEverybody() throws -> (puts: Int, deletes: Int, received: Int) {
    store.resetCounts()
    var received = 0
    for device in present {
      var schedule = Stream(seed, "settling", device.index)
      var effects = 0
      while try advance(device, swarm.steps, &schedule) {
        effects += 1
        if effects > 2_000 { throw Violation(.progress, "\(device.name): a round without end") }
      }
      received += device.lastReport?.received ?? 0
    }
    return (store.puts, store.deletes, received)
  }

  func check(_ moment: String) throws {
    guard let judge = members.first(where: { $0.role == .owner }), let roster = judge.kept?.roster else {
      throw Violation(.membership, "no owner is left")
    }
    let oracle = try oracle.counting { try counts($0, citing: $1, roster) }
    let wanted = oracle.shown()
    let versions = try members.map { try database(of: $0).integer("PRAGMA main.user_version") }
    if Set(versions).count > 1 { marks[.versionsApart] += 1 }
    try checkRemoved(roster)
    var first: (name: String, digest: Hash32, meaning: Meaning, device: Device)?
    for device in members {
      let connection = try database(of: device)
      guard let replica = device.replica, let kept = device.kept else { throw Violation(.membership, device.name) }
      for row in try connection.rows("PRAGMA main.integrity_check") where row.first?.string != "ok" {
        throw Violation(.database, "\(device.name) \(moment): \(row)")
      }
      try checkDrained(device, replica, kept)
      try checkMembers(device, kept, roster)
      let snapshot = try Snapshot(connection)
      let meaning = try snapshot.meaning()
      if let difference = device.baseline.meaning().difference(from: meaning) {
        throw Violation(.capture, "\(device.name) \(moment): not published: \(difference)")
      }
      try checkLocal(device, connection)
      if try holdsMore(device, than: oracle, roster) { continue }
      if let difference = try Baseline(snapshot).difference(from: wanted, lost: device.lost) {
        throw Violation(.oracle, "\(device.name) \(moment): \(difference)")
      }
      let digest = replica.digest
      var sum = Hash32.zero
      for row in try connection.rows("SELECT hash FROM lk_row WHERE hash IS NOT NULL") {
        if let hash = row[0].bytes.flatMap(Hash32.init) { sum = sum &+ hash }
      }
      guard digest == sum else {
        throw Violation(.convergence, "\(device.name) \(moment): its digest is not of its records")
      }
      if let first {
        if members.allSatisfy({ $0.lost.isEmpty }), let difference = first.meaning.difference(from: meaning) {
          throw Violation(.convergence, "\(first.name) and \(device.name) \(moment): \(difference)")
        }
        guard first.digest == digest else {
          throw Violation(
            .convergence,
            "digests of \(first.name) and \(device.name) differ \(moment): \(try digestDifference(first.device, device))"
          )
        }
      } else {
        first = (device.name, digest, meaning, device)
      }
      try checkWaiting(device, connection)
    }
  }

  /// Whether an entry counts for the household, by the rules (format §8, *Row entries* and *Limits*).
  private func counts(_ place: EntryPlace, citing heads: [EntryHash], _ roster: Roster) throws -> Bool {
    let origin = place.origin
    let role = roster.role(of: origin.device, at: heads) ?? roster.roleAtEnrolment(of: origin.device) ?? .reader
    guard role >= .member else { return false }
    guard let limited = roster.state.limited.first(where: { $0.device == origin.device }) else {
      // Who was never let in, or is not any more, has sent it all the same, or has not.
      return roster.role(of: origin.device) != nil || wasAccepted(place)
    }
    let limit = limited.limits.filter { $0.zone == zone && $0.incarnation == origin.incarnation }.map(\.sequence).max()
    // What the store has lost before anybody read it is lost with its author.
    return place.sequence <= limit ?? 0 && (restores == 0 || wasAccepted(place))
  }

  private func wasAccepted(_ place: EntryPlace) -> Bool { members.contains { $0.accepted.contains(place) } }

  /// Whether a device shows what does not count for the others: what it wrote while it was a reader, or did not know yet that it was, and what
  /// it has read as a reader, who may not hand it on.
  ///
  /// - Throws: ``Violation`` where somebody who may write has accepted what does not count for all.
  private func holdsMore(_ device: Device, than oracle: Oracle, _ roster: Roster) throws -> Bool {
    for entry in self.oracle.entries where entry.changes.contains(where: oracle.lacks) {
      if entry.place.origin.device == device.keys.id { return true }
      guard device.accepted.contains(entry.place) else { continue }
      if roster.role(of: device.keys.id) == .reader { return true }
      throw Violation(
        .counted,
        "\(device.name) has accepted \(entry.place.origin) \(entry.place.sequence), which does not count for all")
    }
    return false
  }

  /// Whoever was removed can open nothing that is written now, with all that there ever was in the store.
  private func checkRemoved(_ roster: Roster) throws {
    guard let current = roster.state.currentEpoch else { throw Violation(.membership, "no epoch") }
    for device in present where roster.state.limited.contains(where: { $0.device == device.keys.id && $0.isRemoved }) {
      guard device.role == nil else { throw Violation(.membership, "\(device.name) does not know that it was removed") }
      var ring = EpochRing(household: keys.household)
      ring.hold(device.keys.box, of: device.keys.id)
      for (epoch, key) in device.secrets.held.sorted(by: { $0.key < $1.key }) { ring.hold(key, of: epoch) }
      if let link = device.secrets.link { ring.hold(link.box, of: link.invite) }
      for (epoch, key) in device.kept?.ring.keys.sorted(by: { $0.key < $1.key }) ?? [] { ring.hold(key, of: epoch) }
      ring.walk(roster.entries)
      if ring.keys[current] != nil {
        throw Violation(.secrecy, "\(device.name) was removed and can open the epoch \(current.short)")
      }
    }
  }

  /// Which record two devices hold differently.
  private func digestDifference(_ first: Device, _ device: Device) throws -> String {
    let rows = try [first, device].map { device in
      var hashes: [RecordName: SQLiteValue] = [:]
      for row in try database(of: device).rows("SELECT record, hash FROM lk_row") {
        if let name = row[0].bytes.flatMap(RecordName.init) { hashes[name] = row[1] }
      }
      return hashes
    }
    for (name, record) in oracle.records.sorted(by: { $0.key < $1.key }) where rows[0][name] != rows[1][name] {
      let cells = record.cells.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.stamp) \($0.value.field)" }
      return "\(AppSchema.tables[record.table].name) \(name.short) \(cells)"
    }
    return "no record differs"
  }

  private func checkDrained(_ device: Device, _ replica: Replica, _ kept: HouseholdState) throws {
    guard try replica.outbox(zone: zone).isEmpty, kept.outbox.isEmpty else {
      throw Violation(.progress, "\(device.name): something waits to be sent")
    }
    let connection = try database(of: device)
    guard try isDrained(connection) else { throw Violation(.progress, "\(device.name): changes wait to be stamped") }
    guard try connection.integer("SELECT count(*) FROM lk_held") == 0 else {
      throw Violation(.progress, "\(device.name): groups are held whose time has come")
    }
  }

  /// All who are in know the same of who is.
  private func checkMembers(_ device: Device, _ kept: HouseholdState, _ roster: Roster) throws {
    guard kept.roster.heads == roster.heads else { throw Violation(.membership, "\(device.name) knows another roster") }
    guard kept.roster.state.epochEnds.count == 1 else { throw Violation(.membership, "epochs lie side by side") }
    guard kept.epoch == roster.state.currentEpoch else {
      throw Violation(.membership, "\(device.name) is in another epoch")
    }
    let known = Set(devices.map(\.keys.id))
    for other in roster.state.devices where !known.contains(other.id) {
      throw Violation(.membership, "a device nobody knows")
    }
    for other in present where roster.state.device(other.keys.id) != nil && other.lastReport?.isLeftBehind == true {
      throw Violation(.membership, "\(other.name) takes itself for left behind")
    }
    for other in present where roster.state.device(other.keys.id) == nil {
      // One that was let in by somebody who might not by then cannot judge that, and knows that something is wrong.
      if other.isRemoved { continue }
      if other.lastReport?.isLeftBehind == true {
        marks[.leftBehind] += 1
        continue
      }
      throw Violation(.membership, "\(device.name) does not know \(other.name)")
    }
  }

  /// Nothing waits for what is shown.
  private func checkWaiting(_ device: Device, _ connection: Connection) throws {
    let waiting = try connection.rows(
      """
      SELECT hex(r.record), hex(w.target) FROM lk_wait w JOIN lk_row t ON t.record = w.target
        JOIN lk_row r ON r.id = w.row
      WHERE t.key IS NOT NULL AND r.hash IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM lk_park p WHERE p.row = w.row AND p.kind = 3)
      """)
    if let first = waiting.first {
      let names = first.compactMap(\.string).joined(separator: " for ")
      throw Violation(.references, "\(device.name): \(waiting.count) rows wait for rows that are shown: \(names)")
    }
  }

  /// What does not sync is the device's own, untouched.
  private func checkLocal(_ device: Device, _ connection: Connection) throws {
    guard try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'zebrafinLocal'") == 1 else { return }
    for row in try connection.rows("SELECT secret FROM zebrafinLocal")
    where row[0] != SQLiteValue("\(AppSchema.canary) stays on \(device.name)") {
      throw Violation(.database, "\(device.name): a local table was changed")
    }
  }

  /// Faults end, clocks are right, and the time has come of everything that was stamped ahead.
  func heal() throws {
    endFaults()
    store.settle()
    for device in devices {
      device.loseRound()
      device.offset = 0
      device.drift = 0
    }
    if swarm.endsWithOneVersion { for device in devices { while try migrate(device) {} } }
    let newest = devices.compactMap { $0.replica?.lastClock.milliseconds }.max() ?? 0
    advanceTime(past: newest)
    trace.note("healed")
  }
}
