internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Facts about the zone that are not rows: the schema and the rules, so that a device without the app can make the tables.
extension Replica {
  /// What this file has to say of its schema and has not said yet. Said again only if it changed here: what others say of
  /// theirs, and rules that were taken from them, are no news.
  func pendingNotes() throws -> [PendingNote] {
    guard try state("notes")?.integer == 1 else { return [] }
    // A file that is filled from the zone has nothing to say before it heard the zone.
    if settings.adopts, try note(DatabaseNote.kind, DatabaseNote.key) == nil { return [] }
    try setState("notes", nil)
    let version = try connection.integer("PRAGMA main.user_version") ?? 0
    // What the zone says of a later version of the app stays.
    if let zone = try databaseNote()?.userVersion, version < zone { return [] }
    let survey = try survey()
    var notes: [(note: PendingNote, own: [UInt8])] = []
    for report in survey.tables {
      guard let shape = try connection.shape(of: report.name) else { continue }
      let verdict = settings.adopts ? settings.adopted[report.name] ?? report.verdict : report.verdict
      let table = tables.first { $0.shape?.name == report.name }
      if table == nil, tables.contains(where: { $0.shape != nil && sameBytes($0.wire, report.name) }) { continue }
      let known = try table.map { try knownNames($0.id) } ?? []
      var note = SchemaNote(
        wire: table?.wire ?? report.name, shape: shape,
        wires: shape.columns.map { column in known.first { sameBytes($0.name, column.name) }?.wire ?? column.name },
        verdict: verdict, version: version)
      let pending = PendingNote(kind: SchemaNote.kind, key: note.wire, value: note.encoded)
      if settings.adopts { note.verdict = .local }
      notes.append((pending, note.encoded))
    }
    let database = DatabaseNote(
      userVersion: version,
      applicationID: try connection.integer("PRAGMA main.application_id") ?? 0, needsTemplate: survey.needsTemplate)
    notes.append(
      (PendingNote(kind: DatabaseNote.kind, key: DatabaseNote.key, value: database.encoded), database.encoded))
    return try notes.filter { note, value in
      let own = "note \(note.kind) \(note.key)"
      let said = try state(own)?.bytes
      if said == value { return false }
      try setState(own, .blob(value))
      let present = try self.note(note.kind, note.key)
      // The template of a joining device may be older than what the zone describes: only later changes are news.
      if settings.adopts, said == nil, let present, present.appVersion >= version { return false }
      return present?.value != note.value
    }.map(\.note)
  }

  /// What the zone says, newest first or only.
  func note(_ kind: UInt64, _ key: String) throws -> Note? {
    guard
      let raw = try connection.first(
        "SELECT value, stamp FROM main.lk_note WHERE kind = ? AND key = ?", [.integer(Int64(kind)), SQLiteValue(key)]),
      let value = raw[0].bytes, let stamp = raw[1].bytes
    else { return nil }
    return Note(kind: kind, key: key, value: value, stamp: try decode(stamp: stamp))
  }

  func keep(own note: PendingNote, stamp: Stamp) throws {
    try keep(Note(kind: note.kind, key: note.key, value: note.value, stamp: stamp))
  }

  private func keep(_ note: Note) throws {
    try connection.run(
      "INSERT INTO main.lk_note(kind, key, value, stamp) VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, stamp = excluded.stamp",
      [
        .integer(Int64(bitPattern: note.kind)), SQLiteValue(note.key), .blob(note.value),
        .blob(encode(stamp: note.stamp)),
      ])
  }

  private func encode(stamp: Stamp) -> [UInt8] {
    var out: [UInt8] = []
    out.append(word: stamp.hlc.rawValue)
    out.append(stamp.isFilledIn ? 1 : 0)
    out += stamp.origin.device.bytes + stamp.origin.incarnation.bytes
    out.append(word: stamp.tie)
    return out
  }

  private func decode(stamp bytes: [UInt8]) throws -> Stamp {
    guard bytes.count == 41, let device = DeviceID(Array(bytes[9..<25])),
      let incarnation = Incarnation(Array(bytes[25..<33]))
    else {
      throw TablesError.corrupt("a note's stamp")
    }
    var reader = ByteReader(bytes)
    let hlc = HLC(rawValue: try reader.word())
    var tie = ByteReader(Array(bytes[33...]))
    return Stamp(
      hlc: hlc, isFilledIn: bytes[8] == 1, origin: Origin(device: device, incarnation: incarnation), tie: try tie.word()
    )
  }

  /// Takes the zone's notes. A file that was made by joining makes the tables that they describe; every file takes their
  /// rules.
  func apply(_ notes: [Note]) throws {
    var isNew = false
    for note in notes {
      guard note.kind <= UInt64(Int64.max) else { continue }
      if let present = try self.note(note.kind, note.key), !note.counts(over: present) { continue }
      try keep(note)
      isNew = true
    }
    guard isNew else { return }
    let isRenamed = try takeNames()
    if settings.adopts { try adopt() } else if isRenamed { try follow(settings) }
    if try takeRules() { try follow(settings) }
  }

  private func databaseNote() throws -> DatabaseNote? {
    try note(DatabaseNote.kind, DatabaseNote.key).flatMap { try? DatabaseNote(decoding: $0.value) }
  }

  /// What the zone's descriptions say, by the tables' names on the wire.
  func schemaNotes() throws -> [SchemaNote] {
    try connection.rows(
      "SELECT key, value FROM main.lk_note WHERE kind = ? ORDER BY key", [.integer(Int64(SchemaNote.kind))]
    ).compactMap { raw in
      guard let key = raw[0].string, let value = raw[1].bytes else { return nil }
      return try? SchemaNote(table: key, decoding: value)
    }
  }

  /// Tables of which nothing was published yet, in a file that was attached before it heard of the zone, get the names that
  /// the zone has for them.
  private func takeNames() throws -> Bool {
    var isRenamed = false
    for note in try schemaNotes() {
      guard let table = tables.first(where: { $0.shape.map { sameBytes($0.name, note.shape.name) } ?? false })
      else { continue }
      let isOther = !sameBytes(table.wire, note.wire)
      if isOther, tables.contains(where: { $0.shape != nil && sameBytes($0.wire, note.wire) }) { continue }
      let names = try knownNames(table.id)
      let isSame = note.names.allSatisfy { said in
        names.first { sameBytes($0.name, said.name) }.map { sameBytes($0.wire, said.wire) } ?? true
      }
      if !isOther, isSame { continue }
      let isPublished =
        try connection.first(
          "SELECT 1 FROM main.lk_row WHERE tid = ? AND length(meta) > 0 LIMIT 1", [.integer(table.id)]) != nil
      if isPublished { continue }
      try forget(table)
      isRenamed = true
    }
    return isRenamed
  }

  private func adopt() throws {
    var wanted = settings
    let database = try databaseNote()
    // Once the file has tables an app may be using it, and then its version and its migrations are the app's.
    if wanted.createsTables, let database, try state("made") == nil {
      if !database.needsTemplate.isEmpty { throw TablesError.needsTemplate(database.needsTemplate) }
      if let version = Int32(exactly: database.userVersion) {
        try connection.run("PRAGMA main.user_version = \(version)")
      }
      if let id = Int32(exactly: database.applicationID) { try connection.run("PRAGMA main.application_id = \(id)") }
      try setState("made", .integer(1))
    }
    let version = try connection.integer("PRAGMA main.user_version") ?? 0
    for note in try schemaNotes() {
      let key = note.wire
      let known = tables.first { $0.shape != nil && sameBytes($0.wire, key) }
      if known == nil, try connection.shape(of: note.shape.name) == nil {
        // What cannot be made does not hold up the rest: its rows are kept and listed.
        guard wanted.createsTables, note.version == version, try create(note) else { continue }
      }
      guard let shape = try known?.shape ?? connection.shape(of: note.shape.name) else { continue }
      if note.verdict.syncs, settings.adopted[shape.name] == nil, !wanted.createsTables,
        tables.first(where: { $0.shape?.name == shape.name }) == nil
      {
        // A table of the template that turns out to sync is filled from the zone, not from the template.
        try withoutCapture { try connection.run("DELETE FROM main.\(quoted(shape.name))") }
        if wanted.rules.tables[shape.name] == TableRules(isLocal: true) { wanted.rules.tables[shape.name] = nil }
      }
      wanted.adopted[shape.name] = note.verdict
    }
    if wanted != settings || wanted.createsTables { try follow(wanted) }
  }

  /// Makes a table from its description, and makes sure that it is what was described.
  private func create(_ note: SchemaNote) throws -> Bool {
    guard let statements = note.statements() else { return false }
    try connection.run("SAVEPOINT lk_make")
    do {
      for sql in statements { try connection.execute(sql) }
      let made = try connection.shape(of: note.shape.name)
      if let made,
        SchemaNote(
          wire: note.wire, shape: made, wires: note.wires, verdict: note.verdict, version: note.version
        ).encoded == note.encoded
      {
        try connection.run("RELEASE lk_make")
        return true
      }
    } catch SQLiteError.other {
      // Not what SQLite takes for a table.
    }
    try connection.run("ROLLBACK TO lk_make")
    try connection.run("RELEASE lk_make")
    return false
  }
}

extension Note {
  /// The version of the app of which it tells; 0 for other kinds.
  fileprivate var appVersion: Int64 {
    switch kind {
    case SchemaNote.kind: (try? SchemaNote(table: key, decoding: value).version) ?? 0
    case DatabaseNote.kind: (try? DatabaseNote(decoding: value).userVersion) ?? 0
    default: 0
    }
  }

  /// Of what versions of the app say that are different, the latest counts; of what one version says, the newest: so that
  /// a newcomer finds the tables of one version.
  fileprivate func counts(over other: Note) -> Bool {
    let (mine, theirs) = (appVersion, other.appVersion)
    return mine == theirs ? isNewer(than: other) : mine > theirs
  }
}
