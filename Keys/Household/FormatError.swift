public import LatchkeyEncoding

/// Why bytes are not what they should be, after their tag or signature held.
public enum FormatError: Error, Equatable, Sendable {
  /// Written by a newer version of the format; nothing of it is used (format §11).
  case newer
  /// Not the stated form (format §1, §11: longer arrays are refused).
  case malformed(CBORError)
}

/// Runs a decoder whose failures all mean "not the stated form".
func decoding<T>(_ body: () throws(CBORError) -> T) throws(FormatError) -> T {
  do { return try body() } catch { throw .malformed(error) }
}

extension CBORReader {
  /// Opens an array whose first element is a version: exactly `count` elements, version 1.
  mutating func versionOne(elements count: Int) throws(FormatError) {
    do {
      let found = try array()
      let version = try uint()
      if version > 1 { throw FormatError.newer }
      guard version == 1, found == count else { throw CBORError.unexpected("array of \(count), version 1") }
    } catch let error as FormatError {
      throw error
    } catch let error as CBORError {
      throw .malformed(error)
    } catch {
      throw .malformed(.unexpected("array"))
    }
  }

  /// A name of a person, device, household or zone (format §12).
  mutating func name() throws(CBORError) -> String { try text(max: Limits.name) }

  /// A list of hashes in ascending order without repetition, at most `max`.
  mutating func hashes(max: Int) throws(CBORError) -> [Hash32] {
    var out: [Hash32] = []
    for _ in 0..<(try array(max: max)) {
      let hash: Hash32 = try id()
      if let last = out.last, last >= hash { throw .notDeterministic }
      out.append(hash)
    }
    return out
  }
}

extension CBORWriter {
  mutating func hashes(_ values: [Hash32]) {
    array(values.count)
    for value in values { id(value) }
  }
}
