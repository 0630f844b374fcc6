public import LatchkeyEncoding

/// Why a payload cannot be read.
public enum PayloadError: Error, Equatable, Sendable {
  /// A version that this program does not know: the log waits for an update (format §11).
  case newer(UInt64)
  /// Not the encoding of a payload.
  case malformed(CBORError)
  /// Well encoded, and contradicts itself.
  case invalid(String)
  /// Over a bound of format §12.
  case limit(String)
}

/// What a payload says of one record. A payload may say several things of one record, in any order: merge them.
public struct RecordChange: Hashable, Sendable {
  /// The table's wire name.
  public let table: String
  public let record: RecordName
  /// The registers that were written.
  public let state: RecordState

  public init(table: String, record: RecordName, state: RecordState) {
    self.table = table
    self.record = record
    self.state = state
  }
}

/// A fact about the zone and not about a record; the last writer wins per (kind, key) (format §6).
public struct Note: Hashable, Sendable {
  /// 1 a table's schema, 2 properties of the database and rules; others are kept and handed on.
  public let kind: UInt64
  public let key: String
  /// Raw CBOR of one value.
  public let value: [UInt8]
  public let stamp: Stamp

  public init(kind: UInt64, key: String, value: [UInt8], stamp: Stamp) {
    self.kind = kind
    self.key = key
    self.value = value
    self.stamp = stamp
  }

  /// Whether this note replaces another of the same kind and key.
  public func isNewer(than other: Note) -> Bool {
    stamp != other.stamp ? stamp > other.stamp : other.value.lexicographicallyPrecedes(value)
  }
}

/// The signed entry that carried registers come from (format §6).
public struct Source: Hashable, Sendable {
  public let zone: ZoneID
  public let origin: Origin
  public let sequence: UInt64
  public let hash: EntryHash

  public init(zone: ZoneID, origin: Origin, sequence: UInt64, hash: EntryHash) {
    self.zone = zone
    self.origin = origin
    self.sequence = sequence
    self.hash = hash
  }
}

/// The content of one entry of a row zone, read (format §6).
public struct Payload: Equatable, Sendable {
  public let changes: [RecordChange]
  public let notes: [Note]
  public let sources: [Source]
  /// The greatest HLC of all stamps, carried ones included: what decides whether the group must wait (format §10).
  public let newest: HLC

  /// The version that this program writes, and the greatest it reads.
  public static let version: UInt64 = 1
  /// Most stamps listed in a payload (format §12).
  public static let maximumStamps = 65_536
  /// Most rows in a block (format §12).
  public static let maximumRows = 65_536
  /// Most registers in all blocks of a payload together: a block of constant columns takes few bytes and much memory.
  public static let maximumRegisters = 1 << 20

  /// Reads a payload whose entry was believed.
  ///
  /// Memory is bounded: a few hundred bytes per byte of input at most, and ``maximumRegisters`` registers.
  ///
  /// - Parameters:
  ///   - bytes: the payload in plain form.
  ///   - origin: of the entry.
  ///   - hlc: of the push group.
  ///   - tie: of the push group.
  public static func decode(_ bytes: [UInt8], origin: Origin, hlc: HLC, tie: UInt64) throws(PayloadError) -> Payload {
    var decoder = PayloadDecoder(bytes, own: Stamp(hlc: hlc, origin: origin, tie: tie))
    do {
      return try decoder.payload()
    } catch let error as CBORError {
      throw .malformed(error)
    } catch let error as PayloadError {
      throw error
    } catch {
      throw .invalid("\(error)")
    }
  }
}
