import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import LatchkeyRecords
import LatchkeySQLite

/// What is looked at after every transaction that may have published something.
extension World {
  /// Checks that exactly the app's changes were published, and takes them into the oracle.
  ///
  /// - Parameter before: what the tables said before the transaction.
  func observe(_ device: Device, before: Snapshot, _ reply: DatabaseReply, _ performer: DatabasePerformer) throws {
    let connection = try database(of: device)
    try readOutbox(device, connection, performer)
    try checkProgress(device, performer)
    if case .sealed(_, _, more: true) = reply {
      marks[.partialPasses] += 1
      try device.baseline.follow(from: before, to: Snapshot(connection))
    } else {
      guard try hasEmptyLogs(connection) else {
        throw Violation(.capture, "\(device.name): changes are left, and the pass says there are none")
      }
      if let difference = try device.baseline.meaning().difference(from: before.meaning()) {
        throw Violation(.capture, "\(device.name): published and written differ: \(difference)")
      }
      let snapshot = try Snapshot(connection)
      device.baseline = try Baseline(snapshot)
      try countSituations(device, connection, snapshot)
    }
  }

  private func hasEmptyLogs(_ connection: Connection) throws -> Bool {
    for row in try connection.rows("SELECT name FROM sqlite_schema WHERE name GLOB 'lk_log*'") {
      if try connection.integer("SELECT count(*) FROM \(row[0].string ?? "")") != 0 { return false }
    }
    return true
  }

  /// Whether everything captured has been stamped, and no table is still to be looked through.
  func isDrained(_ connection: Connection) throws -> Bool {
    try hasEmptyLogs(connection) && connection.integer("SELECT count(*) FROM lk_table WHERE scan IS NOT NULL") == 0
  }

  private func readOutbox(_ device: Device, _ connection: Connection, _ performer: DatabasePerformer) throws {
    guard let log = try performer.ownLog(), let keys = performer.household.keys(of: log.epoch) else { return }
    for row in try connection.rows("SELECT name, bytes FROM lk_outbox ORDER BY id") {
      guard let name = row[0].string.flatMap(ObjectName.init), let bytes = row[1].bytes else {
        throw Violation(.defect, "an outbox row without name or bytes")
      }
      for entry in try ledger.sealed(keys.objectName(zone: zone, name), zone: zone, bytes) {
        let body = try EntryBody(decoding: entry.body)
        let stamp = Stamp(hlc: HLC(rawValue: body.group.hlc), origin: body.origin, tie: body.group.tie)
        let payload = try Payload.decode(
          entry.payload(body), origin: body.origin, hlc: stamp.hlc, tie: body.group.tie)
        let place = EntryPlace(origin: body.origin, sequence: body.sequence)
        var writes: [Publication] = []
        for change in payload.changes {
          if let carried = try oracle.carried(change) {
            writes.append(carried)
            continue
          }
          let isRepeated = body.sequence <= device.republished[body.origin] ?? 0
          guard let publication = try Publication(change, own: stamp, isRepeated: isRepeated) else { continue }
          if trace.isVerbose { print("  \(publication)") }
          try device.baseline.publish(publication)
          try oracle.add(publication, &marks)
          writes.append(publication)
        }
        oracle.log(writes, at: place, citing: body.rosterHeads)
      }
    }
  }

  /// Clock, own sequence and what was accepted of others only rise.
  private func checkProgress(_ device: Device, _ performer: DatabasePerformer) throws {
    let clock = performer.replica.lastClock.rawValue
    guard clock >= device.seen.clock else { throw Violation(.monotony, "\(device.name): the clock fell") }
    device.seen.clock = clock
    if let log = try performer.ownLog() {
      guard log.lastSequence >= device.seen.sequence[log.origin] ?? 0 else {
        throw Violation(.monotony, "\(device.name): its own log fell")
      }
      device.seen.sequence[log.origin] = log.lastSequence
    }
    for (origin, author) in try performer.belief().authors {
      let sequence = author.mark?.sequence ?? 0
      if let known = device.seen.accepted[origin], sequence < known {
        throw Violation(.monotony, "\(device.name): what was accepted of \(origin) fell")
      }
      device.seen.accepted[origin] = sequence
    }
  }

  private func countSituations(_ device: Device, _ connection: Connection, _ snapshot: Snapshot) throws {
    if try connection.integer("SELECT count(*) FROM lk_wait") != 0 { marks[.deferredReferences] += 1 }
    if try connection.integer("SELECT count(*) FROM lk_park") != 0 { marks[.parkedRows] += 1 }
    if try connection.integer("SELECT count(*) FROM lk_held") != 0 { marks[.heldGroups] += 1 }
    for (index, table) in AppSchema.tables.enumerated() where table.keyIsLocal {
      for row in snapshot.tables[index] ?? [] {
        guard let record = row.record, case .plain(let hint)? = oracle.records[record]?.cells[table.key[0]]?.field,
          hint != row[table.key[0]]
        else { continue }
        marks[.keyCollisions] += 1
      }
    }
  }
}
