internal import CLatchkeySodium

/// libsodium picks its fastest implementations once, before first use.
enum Sodium {
  private static let started: Bool = sodium_init() >= 0

  /// Call before long work. Everything is right without it, only slower.
  static func start() { _ = started }

  static let boxOverhead = Int(crypto_box_MACBYTES)
}
