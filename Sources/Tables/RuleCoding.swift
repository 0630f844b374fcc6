internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// How a table's rules are written down (format §6, note kind 4): `[[name, value]…]`, names ascending as they are in a
/// recipe, and only what is not as it is without a rule. Rules of a newer version stay as they came.
extension TableRules {
  /// As deep as a value may be (format §12).
  private static let maximumDepth = 16

  private enum Name {
    static let compress = "compress"
    static let dedup = "dedup"
    static let identity = "identity"
    static let local = "local"
    static let localColumns = "local_columns"
    static let lookup = "lookup"
    static let ownedBy = "owned_by"
    static let prefer = "prefer"
    static let references = "references"
    static let renamed = "renamed"
    static let singleton = "singleton"
  }

  func write(to writer: inout CBORWriter) {
    var rules: [(name: String, value: [UInt8])] = newer.map { ($0.key, $0.value) }
    func add(_ name: String, _ write: (inout CBORWriter) -> Void) {
      var value = CBORWriter()
      write(&value)
      rules.append((name, value.bytes))
    }
    if !compress { add(Name.compress) { $0.bool(false) } }
    if let identity {
      add(Name.identity) { writer in
        switch identity {
        case .generated: writer.uint(0 as UInt64)
        case .primaryKey: writer.uint(1 as UInt64)
        case .columns(let columns): writer.texts(columns)
        }
      }
    }
    if isLocal { add(Name.local) { $0.bool(true) } }
    if !localColumns.isEmpty { add(Name.localColumns) { $0.texts(localColumns) } }
    if isLookup { add(Name.lookup) { $0.bool(true) } }
    if !dedup.isEmpty {
      add(Name.dedup) { writer in
        writer.array(dedup.count)
        for part in dedup { writer.texts([part.column, part.fold.rawValue]) }
      }
    }
    if let preferred { add(Name.prefer) { $0.text(preferred) } }
    if isSingleton { add(Name.singleton) { $0.bool(true) } }
    if let ownedBy { add(Name.ownedBy) { $0.text(ownedBy) } }
    if !references.isEmpty { add(Name.references, writeReferences) }
    if !renamed.isEmpty {
      add(Name.renamed) { writer in
        writer.array(renamed.count)
        for former in renamed.keys.sorted() { writer.texts([former, renamed[former] ?? former]) }
      }
    }
    writer.array(rules.count)
    for rule in rules.sorted(by: { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }) {
      writer.array(2)
      writer.text(rule.name)
      writer.raw(rule.value)
    }
  }

  private func writeReferences(_ writer: inout CBORWriter) {
    writer.array(references.count)
    for column in references.keys.sorted() {
      guard let reference = references[column] else { continue }
      writer.array(4)
      writer.text(column)
      switch reference.target {
      case .table(let table): writer.text(table)
      case .chosen(let by, let choices):
        writer.array(2)
        writer.text(by)
        writer.array(choices.count)
        for choice in choices {
          writer.array(2)
          Value(choice.value).write(to: &writer)
          writer.text(choice.table)
        }
      }
      if let action = reference.onDelete { writer.text(action.rawValue) } else { writer.null() }
      writer.array(reference.none.count)
      for value in reference.none { Value(value).write(to: &writer) }
    }
  }

  init(from reader: inout CBORReader) throws(CBORError) {
    self.init()
    var last: String?
    for _ in 0..<(try reader.array(max: 256)) {
      try reader.array(exactly: 2)
      let name = try reader.text(max: 64)
      if let last, !last.utf8.lexicographicallyPrecedes(name.utf8) { throw .unexpected("ascending rules") }
      last = name
      switch name {
      case Name.compress: compress = try reader.bool()
      case Name.identity:
        switch try reader.peek() {
        case .unsigned: identity = try reader.uint(max: 1) == 0 ? .generated : .primaryKey
        case .array: identity = .columns(try reader.texts(max: 1_024))
        case .negative, .bytes, .text, .map, .tag, .bool, .null, .double: throw .unexpected("identity")
        }
      case Name.local: isLocal = try reader.bool()
      case Name.localColumns: localColumns = try reader.texts(max: 32_767)
      case Name.lookup: isLookup = try reader.bool()
      case Name.dedup:
        for _ in 0..<(try reader.array(max: 1_024)) {
          try reader.array(exactly: 2)
          let column = try reader.text(max: 1_024)
          guard let fold = DedupColumn.Fold(rawValue: try reader.text(max: 32)) else { throw .unexpected("fold") }
          dedup.append(DedupColumn(column, fold: fold))
        }
      case Name.prefer: preferred = try reader.text(max: 1_024)
      case Name.singleton: isSingleton = try reader.bool()
      case Name.ownedBy: ownedBy = try reader.text(max: 1_024)
      case Name.references: references = try TableRules.references(from: &reader)
      case Name.renamed:
        for _ in 0..<(try reader.array(max: 32_767)) {
          try reader.array(exactly: 2)
          let former = try reader.text(max: 1_024)
          renamed[former] = try reader.text(max: 1_024)
        }
      default: newer[name] = try reader.raw(depth: TableRules.maximumDepth)
      }
    }
  }

  private static func references(from reader: inout CBORReader) throws(CBORError) -> [String: ReferenceRule] {
    var references: [String: ReferenceRule] = [:]
    for _ in 0..<(try reader.array(max: 32_767)) {
      try reader.array(exactly: 4)
      let column = try reader.text(max: 1_024)
      let target: ReferenceTarget
      if try reader.peek() == .text {
        target = .table(try reader.text(max: 1_024))
      } else {
        try reader.array(exactly: 2)
        let by = try reader.text(max: 1_024)
        var choices: [ReferenceTarget.Choice] = []
        for _ in 0..<(try reader.array(max: 1_024)) {
          try reader.array(exactly: 2)
          guard let value = try Value.read(from: &reader).plain else { throw .unexpected("plain value") }
          choices.append(ReferenceTarget.Choice(value, table: try reader.text(max: 1_024)))
        }
        target = .chosen(by: by, choices)
      }
      var action: DeleteAction?
      if try !reader.null() {
        guard let known = DeleteAction(rawValue: try reader.text(max: 32)) else { throw .unexpected("delete action") }
        action = known
      }
      var none: [SQLiteValue] = []
      for _ in 0..<(try reader.array(max: 1_024)) {
        guard let value = try Value.read(from: &reader).plain else { throw .unexpected("plain value") }
        none.append(value)
      }
      references[column] = ReferenceRule(target: target, onDelete: action, none: none)
    }
    return references
  }

  /// The same rules with other names for columns and tables. A rule about a column without a name there is left out: it
  /// cannot hold where the column is not.
  func naming(column: (String) -> String?, table: (String) -> String) -> TableRules {
    var out = self
    if case .columns(let columns)? = identity {
      let named = columns.compactMap(column)
      out.identity = named.count == columns.count ? .columns(named) : nil
    }
    out.localColumns = localColumns.compactMap(column)
    out.ownedBy = ownedBy.flatMap(column)
    out.preferred = preferred.flatMap(column)
    let parts = dedup.compactMap { part in column(part.column).map { DedupColumn($0, fold: part.fold) } }
    out.dedup = parts.count == dedup.count ? parts : []
    out.references = [:]
    for (name, rule) in references {
      guard let name = column(name) else { continue }
      var rule = rule
      switch rule.target {
      case .table(let target): rule.target = .table(table(target))
      case .chosen(let by, let choices):
        guard let by = column(by) else { continue }
        rule.target = .chosen(by: by, choices.map { ReferenceTarget.Choice($0.value, table: table($0.table)) })
      }
      out.references[name] = rule
    }
    return out
  }
}
