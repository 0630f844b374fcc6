/// Header fields in order; names are compared without case.
public struct HTTPHeaders: Sendable, ExpressibleByDictionaryLiteral {
  /// In the order in which they are sent or came.
  public private(set) var fields: [(name: String, value: String)]

  public init() { fields = [] }

  public init(dictionaryLiteral elements: (String, String)...) { fields = elements.map { ($0.0, $0.1) } }

  /// The first value of that name. Setting replaces all of that name; nil removes them.
  public subscript(name: String) -> String? {
    get { fields.first { Self.same($0.name, name) }?.value }
    set {
      fields.removeAll { Self.same($0.name, name) }
      if let newValue { fields.append((name, newValue)) }
    }
  }

  /// Every value of that name.
  public func all(_ name: String) -> [String] { fields.filter { Self.same($0.name, name) }.map(\.value) }

  /// Adds a field beside those of the same name.
  public mutating func add(_ name: String, _ value: String) { fields.append((name, value)) }

  private static func same(_ a: String, _ b: String) -> Bool {
    a.utf8.count == b.utf8.count && zip(a.utf8, b.utf8).allSatisfy { lowered($0) == lowered($1) }
  }

  private static func lowered(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 32 : byte }
}
