public import LatchkeyEncoding

/// One store, wherever it is moved to; random.
public struct StoreID: Identifier16 {
  public let raw: Bytes16
  public init(raw: Bytes16) { self.raw = raw }
}

/// The object that tells a store from an empty, unmounted or wrong place (format §3).
///
/// Deterministic CBOR of `["latchkey-store", format version, id]`. It is in the clear: whoever sees the store sees it.
public struct StoreMarker: Equatable, Sendable {
  /// Its format version, and the only one that this program reads.
  public static let version = 1

  public let id: StoreID

  public init(id: StoreID) { self.id = id }

  /// What is found where a store is looked for.
  public enum Finding: Equatable, Sendable {
    case store(StoreMarker)
    /// No marker. `empty` if there is no object either: a place for a new store, or the wrong one. If there are
    /// objects, the marker was lost, or the place belongs to something else.
    case absent(empty: Bool)
    /// A store of a later format; this program must not write there.
    case newerFormat(Int)
    /// What has the marker's name is not a marker.
    case notAStore
  }

  public var encoded: [UInt8] {
    var writer = CBORWriter(reserving: 40)
    writer.array(3)
    writer.text(ObjectName.marker.text)
    writer.uint(Self.version)
    writer.id(id)
    return writer.bytes
  }

  /// Judges the bytes of a marker object; never `.absent`.
  public static func judge(_ bytes: [UInt8]) -> Finding {
    do throws(CBORError) {
      var reader = CBORReader(bytes)
      let count = try reader.array(max: 16)
      guard count >= 2, try reader.text(max: 32) == ObjectName.marker.text else { return .notAStore }
      let version = try reader.uint(max: Int(Int32.max))
      // A later format may put anything after the version.
      if version > Self.version { return .newerFormat(version) }
      guard version == Self.version, count == 3 else { return .notAStore }
      let id = try reader.id(StoreID.self)
      try reader.finish()
      return .store(StoreMarker(id: id))
    } catch {
      return .notAStore
    }
  }

  /// Looks for a store.
  ///
  /// - Throws: ``StorageError`` where it cannot be told, `.storeMissing` included.
  public static func read(_ store: some ObjectStore) async throws(StorageError) -> Finding {
    let bytes: [UInt8]
    do { bytes = try await store.get(.marker) } catch {
      guard error.cause == .notFound else { throw error }
      let page = try await store.list(prefix: "", after: nil, limit: 1)
      return .absent(empty: page.entries.isEmpty)
    }
    return judge(bytes)
  }

  /// Makes a place a store.
  ///
  /// - Throws: ``StorageError``; `.alreadyExists` if it is one with another id.
  public static func create(in store: some ObjectStore, id: StoreID) async throws(StorageError) -> StoreMarker {
    let marker = StoreMarker(id: id)
    try await store.put(.marker, marker.encoded)
    return marker
  }
}
