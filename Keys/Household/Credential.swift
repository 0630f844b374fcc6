/// What a store asks for before it lets somebody in, as its adapter understands it. Never printed, and never given to a
/// store other than the one it belongs to.
public struct Credential: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The secret itself.
  public let text: String

  public init(_ text: String) { self.text = text }

  public var description: String { "(credential)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
