import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeySQLite
import LatchkeyTables

/// The end of a run: faults end, everybody syncs until nothing moves, and everything is checked.
extension World {
  /// Passes over all devices within which everything must have been sent, received and shown. A device that had not joined when the
  /// faults ended needs several: an invite, a claim, an answer, and the same again where a rival took its link.
  static let settlingPasses = 24

  func settle() throws {
    for pass in 1...World.settlingPasses {
      // A device that joins in the last step of a pass has yet to send its claim.
      let areMembers = devices.allSatisfy(\.isMember)
      let (puts, deletes, received) = try syncEverybody()
      trace.note("settling \(pass): \(puts) put, \(deletes) deleted, \(received) received")
      // What is not urgent is done after a while: parallel epochs are joined.
      if puts == 0, received == 0, let due = devices.compactMap({ $0.kept?.nextDue }).max() {
        advanceTime(past: due)
        continue
      }
      // So has one that found out that the epoch which it claimed in has ended.
      let haveClaimed = devices.allSatisfy { $0.kept?.needsClaim == false }
      if puts == 0, deletes == 0, received == 0, areMembers, haveClaimed { return }
    }
    throw Violation(.progress, "still moving after \(World.settlingPasses) passes")
  }

  func quietRound() throws {
    let (puts, deletes, received) = try syncEverybody()
    if puts > 0 || deletes > 0 || received > 0 {
      throw Violation(.quiescence, "\(puts) put, \(deletes) deleted, \(received) received when all was settled")
    }
  }

  private func syncEverybody() throws -> (puts: Int, deletes: Int, received: Int) {
    store.resetCounts()
    var received = 0
    for device in devices {
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
    let wanted = oracle.shown()
    let versions = try devices.map { try database(of: $0).integer("PRAGMA main.user_version") }
    if Set(versions).count > 1 { marks[.versionsApart] += 1 }
    var first: (digest: Hash32, meaning: Meaning)?
    for device in devices {
      let connection = try database(of: device)
      guard let replica = device.replica, let kept = device.kept else { throw Violation(.membership, device.name) }
      for row in try connection.rows("PRAGMA main.integrity_check") where row.first?.string != "ok" {
        throw Violation(.database, "\(device.name) \(moment): \(row)")
      }
      try checkDrained(device, replica, kept)
      try checkMembers(device, kept)
      let snapshot = try Snapshot(connection)
      let meaning = try snapshot.meaning()
      if let difference = device.baseline.meaning().difference(from: meaning) {
        throw Violation(.capture, "\(device.name) \(moment): not published: \(difference)")
      }
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
        if devices.allSatisfy({ $0.lost.isEmpty }), let difference = first.meaning.difference(from: meaning) {
          throw Violation(.convergence, "\(devices[0].name) and \(device.name) \(moment): \(difference)")
        }
        guard first.digest == digest else {
          throw Violation(
            .convergence,
            "digests of \(devices[0].name) and \(device.name) differ \(moment): \(try digestDifference(device))")
        }
      } else {
        first = (digest, meaning)
      }
      try checkWaiting(device, connection)
      try checkLocal(device, connection)
    }
  }

  /// Which record two devices hold differently.
  private func digestDifference(_ device: Device) throws -> String {
    let rows = try [devices[0], device].map { device in
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

  private func checkMembers(_ device: Device, _ kept: HouseholdState) throws {
    let roster = kept.roster.state
    for other in devices where roster.device(other.keys.id) == nil {
      throw Violation(.membership, "\(device.name) does not know \(other.name)")
    }
    guard roster.devices.count == devices.count else { throw Violation(.membership, "a device nobody knows") }
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
