internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Integer keys that are of this device only.
extension Materialiser {
  /// The origin's key if it is free here, else a new one.
  func chooseKey(_ row: Row) throws -> Int64 {
    let table = row.table
    let column = table.columns[table.key[0]]
    func isFree(_ key: Int64) throws -> Bool {
      let values: [SQLiteValue] = [.integer(key)]
      return try retired[table.id]?.contains(values) != true && reserved[table.id]?.contains(values) != true
        && !replica.isAwaited(table, .integer(key)) && replica.mapped(table, values) == nil
        && connection.first(table.selectRow, values) == nil
    }
    var chosen: Int64?
    // Near the greatest key there would be none left for the app's own rows.
    if case .integer(let hint)? = row.state.cell(column.wire), hint < Int64.max - 1 << 32, try isFree(hint) {
      chosen = hint
    }
    while chosen == nil {
      var next = try nextKeys[table.id] ?? firstNewKey(table)
      if next == .max { next = 1 }
      nextKeys[table.id] = next + 1
      if try isFree(next) { chosen = next }
    }
    let key = chosen ?? 1
    reserved[table.id, default: []].insert([.integer(key)])
    return key
  }

  func firstNewKey(_ table: SyncedTable) throws -> Int64 {
    let name = quoted(table.columns[table.key[0]].name)
    var greatest = max(try connection.integer("SELECT max(\(name)) FROM main.\(quoted(table.name))") ?? 0, 0)
    greatest = max(greatest, try connection.integer("SELECT max(k0) FROM main.lk_map\(table.id)") ?? 0)
    if table.shape?.isAutoincrement == true {
      greatest = max(
        greatest,
        try connection.integer("SELECT seq FROM main.sqlite_sequence WHERE name = ?", [SQLiteValue(table.name)]) ?? 0)
    }
    return greatest == .max ? 1 : greatest + 1
  }
}
