internal import CLatchkeySQLite

/// A prepared statement. Get one from ``Connection``, which keeps and reuses them; not for use after its closure.
public final class Statement {
  let handle: OpaquePointer
  private unowned let connection: Connection

  init(_ handle: OpaquePointer, _ connection: Connection) {
    self.handle = handle
    self.connection = connection
  }

  deinit { sqlite3_finalize(handle) }

  /// Binds a value to the parameter at `index`, counted from 1.
  public func bind(_ index: Int, _ value: SQLiteValue) throws(SQLiteError) {
    let i = Int32(index)
    let code: Int32
    switch value {
    case .null: code = sqlite3_bind_null(handle, i)
    case .integer(let x): code = sqlite3_bind_int64(handle, i, x)
    case .real(let x): code = sqlite3_bind_double(handle, i, x)
    case .text(let x):
      code = x.withUnsafeBytes { bytes in
        guard let base = bytes.baseAddress else { return latchkey_sqlite3_bind_text(handle, i, "", 0) }
        return latchkey_sqlite3_bind_text(handle, i, base.assumingMemoryBound(to: CChar.self), UInt64(bytes.count))
      }
    case .blob(let x): code = bindBlob(i, x)
    }
    if code != SQLITE_OK { throw connection.lastError(code) }
  }

  private func bindBlob(_ i: Int32, _ bytes: [UInt8]) -> Int32 {
    bytes.withUnsafeBytes { buffer in
      // A null pointer would bind NULL, not an empty blob.
      guard let base = buffer.baseAddress, !buffer.isEmpty else { return sqlite3_bind_zeroblob(handle, i, 0) }
      return latchkey_sqlite3_bind_blob(handle, i, base, UInt64(buffer.count))
    }
  }

  /// Binds `values` to the parameters from 1 on.
  public func bind(_ values: [SQLiteValue]) throws(SQLiteError) {
    for (index, value) in values.enumerated() { try bind(index + 1, value) }
  }

  /// Runs to the next row. False when there is none.
  @discardableResult
  public func step() throws(SQLiteError) -> Bool {
    let code = sqlite3_step(handle)
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default:
      let error = connection.lastError(code)
      sqlite3_reset(handle)
      throw error
    }
  }

  /// Makes the statement ready to run again, with nothing bound.
  public func reset() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
  }

  public var columnCount: Int { Int(sqlite3_column_count(handle)) }
  /// How many parameters the statement has.
  public var parameterCount: Int { Int(sqlite3_bind_parameter_count(handle)) }

  /// The name of a column of the result, counted from 0.
  public func columnName(_ index: Int) -> String {
    sqlite3_column_name(handle, Int32(index)).map(String.init(cString:)) ?? ""
  }

  /// The value in a column of the current row, counted from 0. Text keeps its exact bytes.
  public func value(_ index: Int) -> SQLiteValue {
    let i = Int32(index)
    switch sqlite3_column_type(handle, i) {
    case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, i))
    case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, i))
    case SQLITE_TEXT:
      guard let pointer = sqlite3_column_text(handle, i) else { return .text([]) }
      return .text(Array(UnsafeBufferPointer(start: pointer, count: Int(sqlite3_column_bytes(handle, i)))))
    case SQLITE_BLOB: return .blob(blob(index))
    default: return .null
    }
  }

  /// All values of the current row.
  public func row() -> [SQLiteValue] { (0..<columnCount).map(value) }

  public func isNull(_ index: Int) -> Bool { sqlite3_column_type(handle, Int32(index)) == SQLITE_NULL }
  public func int(_ index: Int) -> Int64 { sqlite3_column_int64(handle, Int32(index)) }
  /// The column as text for people and names; empty for NULL.
  public func text(_ index: Int) -> String { value(index).string ?? "" }
  /// The bytes of a blob column; empty for NULL.
  public func blob(_ index: Int) -> [UInt8] {
    let i = Int32(index)
    guard let pointer = sqlite3_column_blob(handle, i) else { return [] }
    return Array(UnsafeRawBufferPointer(start: pointer, count: Int(sqlite3_column_bytes(handle, i))))
  }
}
