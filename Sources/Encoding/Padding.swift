/// How long an object is made, so that its length says little (format §4).
public enum Padding {
  /// Smallest object, in bytes.
  public static let floor = 4096

  /// PADMÉ (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and Communication with PURBs", PETS 2019,
  /// §4): at most 12 % longer, O(log log n) bits leaked.
  public static func padme(_ length: Int) -> Int {
    if length <= floor { return floor }
    let exponent = Int.bitWidth - 1 - length.leadingZeroBitCount
    let significant = Int.bitWidth - exponent.leadingZeroBitCount
    let mask = (1 << (exponent - significant)) - 1
    return (length + mask) & ~mask
  }

  /// The next power of two, at least the floor: heads, whose lengths would otherwise count edits.
  public static func powerOfTwo(_ length: Int) -> Int {
    var size = floor
    while size < length { size <<= 1 }
    return size
  }
}
