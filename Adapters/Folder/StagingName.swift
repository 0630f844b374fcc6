/// Names of files that are being written: outside the grammar of object names, so that no listing ever shows one.
///
/// Exactly `.lk-tmp-` and sixteen lower-case hexadecimal digits. What is not exactly that is not ours to remove.
enum StagingName {
  static let mark = ".lk-tmp-"

  /// How old, in seconds, a staging file must be to be one that a crash left behind: a day. Younger ones may belong to
  /// another device that is writing now.
  static let leftoverAge = 86_400

  static func make(_ token: UInt64) -> String {
    let digits = String(token, radix: 16)
    return mark + String(repeating: "0", count: 16 - digits.count) + digits
  }

  static func matches(_ name: String) -> Bool {
    guard name.hasPrefix(mark) else { return false }
    let token = name.utf8.dropFirst(mark.utf8.count)
    return token.count == 16 && token.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }
}
