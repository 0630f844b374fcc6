import LatchkeyEncoding
import LatchkeyRecords

@testable import LatchkeyTables

/// What the tables of ``DuplicateTests`` should show, worked out from the merged records alone, the plain way.
struct DuplicateOracle {
  private struct Record {
    let name: RecordName
    let state: RecordState
    var key: String?
    var isPreferred = false
    var alias: Alias?
    var since: Stamp?
  }

  private var categories: [RecordName: Record] = [:]
  private var entries: [RecordName: RecordState] = [:]
  /// In the form of ``shownRows(_:)``.
  var rows: Set<String> = []

  init(_ device: Device) throws {
    for table in device.replica.tables {
      try device.replica.forEachRow(table) { row in
        if table.wire == "entry" { entries[row.name] = row.state }
        if table.wire == "category" { categories[row.name] = record(row, table) }
      }
    }
    show(groups())
  }

  private func record(_ row: Row, _ table: SyncedTable) -> Record {
    var record = Record(name: row.name, state: row.state)
    if case .text(let bytes)? = row.state.cell("name") {
      record.key = String(decoding: bytes, as: UTF8.self).lowercased().filter { $0 != " " }
    }
    record.isPreferred = row.state.cell("is_system") == .integer(1)
    if let entry = row.state[.alias], case .alias(let alias) = entry.value, alias.canonical != row.name {
      let name = row.state[.cell("name")]
      let isVoid =
        name.map { $0.stamp > entry.stamp } == true
        && device(hash: row, table) != RecordName(raw: alias.keyHash).bytes
      if !isVoid { (record.alias, record.since) = (alias, entry.stamp) }
    }
    return record
  }

  private func device(hash row: Row, _ table: SyncedTable) -> [UInt8]? {
    guard let value = row.state.cell("name"), !value.isNull else { return nil }
    return blake2b(16, "dedup-key", parts: 2) { writer in
      writer.text(table.wire)
      writer.array(1)
      DedupColumn.Fold.nocase.fold(value).write(to: &writer)
    }
  }

  private func best(_ names: some Sequence<RecordName>) -> Record? {
    names.compactMap { categories[$0] }.filter { $0.state.isLive }.min {
      ($0.isPreferred ? 0 : 1, $0.name) < ($1.isPreferred ? 0 : 1, $1.name)
    }
  }

  private func groups() -> [Set<RecordName>] {
    var parts = categories.keys.map { Set([$0]) }
    for record in categories.values {
      guard let to = record.alias?.canonical, categories[to] != nil else { continue }
      let joined = parts.filter { $0.contains(record.name) || $0.contains(to) }
      parts.removeAll { $0.contains(record.name) || $0.contains(to) }
      parts.append(joined.reduce(into: []) { $0.formUnion($1) })
    }
    var out: [Set<RecordName>] = []
    var byKey: [String: [Set<RecordName>]] = [:]
    for part in parts {
      if let key = best(part)?.key { byKey[key, default: []].append(part) } else { out.append(part) }
    }
    for same in byKey.values {
      func first(_ part: Set<RecordName>) -> (HLC, RecordName) {
        part.compactMap { categories[$0] }.filter { $0.state.isLive }
          .map { ($0.state.newestBorn?.hlc ?? .zero, $0.name) }.min { $0 < $1 } ?? (.zero, .zero)
      }
      func maker(_ name: RecordName) -> DeviceID? { categories[name]?.state.newestBorn?.origin.device }
      let inOrder = same.sorted { first($0) < first($1) }
      var joined: Set<RecordName> = []
      for part in inOrder {
        let made = joined.subtracting([first(inOrder[0]).1]).filter {
          categories[$0]?.state.isLive == true && maker($0) == maker(first(part).1)
        }
        if joined.isEmpty || made.count < 2 { joined.formUnion(part) } else { out.append(part) }
      }
      out.append(joined)
    }
    return out
  }

  private mutating func show(_ groups: [Set<RecordName>]) {
    var shown: [RecordName: RecordName] = [:]
    for group in groups {
      guard let head = best(group) else { continue }
      for name in group { shown[name] = head.name }
      rows.insert(
        "category \(head.name) name=\(head.state.cell("name") ?? .null) is_system=\(head.state.cell("is_system") ?? .null) note=\(note(group, head))"
      )
    }
    for (name, state) in entries where state.isLive {
      switch state.cell("category") {
      case .reference(let target)?:
        guard let meant = shown[target] else { continue }
        rows.insert("entry \(name) category=reference(\(meant)) cents=\(state.cell("cents") ?? .null)")
      default: rows.insert("entry \(name) category=null cents=\(state.cell("cents") ?? .null)")
      }
    }
  }

  private func note(_ group: Set<RecordName>, _ head: Record) -> Value {
    func since(_ name: RecordName) -> Stamp? {
      let named = group.compactMap { categories[$0] }.filter { $0.alias?.canonical == name }.compactMap(\.since)
      return (named + [categories[name]?.since].compactMap(\.self)).min()
    }
    guard var newest = head.state[.cell("note")] else { return .null }
    let others = group.subtracting([head.name]).sorted().compactMap { categories[$0] }
    for other in others {
      guard let entry = other.state[.cell("note")], let since = since(other.name), entry.stamp > since,
        entry.stamp > newest.stamp
      else { continue }
      newest = entry
    }
    guard case .cell(let value) = newest.value else { return .null }
    if !value.isNull || since(head.name).map({ newest.stamp > $0 }) == true { return value }
    return others.lazy.compactMap { $0.state.cell("note") }.first { !$0.isNull } ?? .null
  }
}
