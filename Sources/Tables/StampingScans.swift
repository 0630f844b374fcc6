internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Tables that must be looked at whole, since no trigger told what happened to them.
extension StampPass {
  /// Tables that were just attached, or whose triggers had vanished: every row is compared, in key order.
  mutating func readScans() throws {
    for table in present {
      guard
        let position = try connection.first("SELECT scan FROM main.lk_table WHERE id = ?", [.integer(table.id)])?[0]
          .bytes
      else { continue }
      touchedTables.insert(table.id)
      newReferences[table.id] = Set(try replica.newReferences(table))
      let room = limit - candidates.count
      if room <= 0 {
        report.more = true
        return
      }
      let page: [[SQLiteValue]]
      if position.isEmpty {
        page = try connection.rows(table.selectFirstPage, [.integer(Int64(room))])
      } else if let after = try replica.unpack(packed: position) {
        page = try connection.rows(table.selectNextPage, after + [.integer(Int64(room))])
      } else {
        page = []
      }
      for values in page {
        let key = table.keyValues(values)
        if key.contains(where: \.isNull) { continue }
        order += 1
        add(table, key, now, order, values)
      }
      if page.count == room, let last = page.last {
        try connection.run(
          "UPDATE main.lk_table SET scan = ? WHERE id = ?",
          [.blob(replica.packed(key: table.keyValues(last))), .integer(table.id)])
        report.more = true
        return
      }
      try connection.run("UPDATE main.lk_table SET scan = NULL WHERE id = ?", [.integer(table.id)])
      try replica.setState("references \(table.id)", nil)
      try findLost(table)
    }
  }

  /// Rows that the table lost while no trigger stood: deleted; if it is many, rather thrown away with the table, and
  /// then nobody else's are deleted for it.
  mutating func findLost(_ table: SyncedTable) throws {
    let lost = try connection.rows(table.lostRows).compactMap { $0[0].integer }
    if lost.isEmpty { return }
    let all = try connection.integer("SELECT count(*) FROM main.lk_map\(table.id)") ?? 0
    let isThrownAway = lost.count >= 50 && Int64(lost.count) * 5 >= all || Int64(lost.count) == all
    for id in lost {
      if isThrownAway, let row = try stored(id),
        let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(id)])?[0]
      {
        // Rows that refer to it are looked at again: what they have is still this row's key, and it means nothing now.
        row.reservedKey = try replica.unpack(key: packed, table)
        row.formerShown = row.shown
        gone[FieldHash(target: row.name)] = row.name
        movedRows.append(row)
      }
      try release(table, id)
      if isThrownAway {
        try connection.run("UPDATE main.lk_row SET key = NULL WHERE id = ?", [.integer(id)])
        try replica.park(id, table, .lost)
      } else {
        deleted.append((id, now))
      }
    }
  }
}
