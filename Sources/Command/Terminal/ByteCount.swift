/// A number of bytes as people read it: three digits and a decimal unit.
struct ByteCount: CustomStringConvertible {
  private let bytes: Int64

  init(_ bytes: Int64) { self.bytes = bytes }

  var description: String {
    if bytes < 1000 { return "\(bytes) B" }
    var value = Double(bytes)
    for unit in ["kB", "MB", "GB"] {
      value /= 1000
      if value < 999.5 || unit == "GB" {
        let tenths = Int((value * 10).rounded())
        return tenths < 1000 ? "\(tenths / 10).\(tenths % 10) \(unit)" : "\(Int(value.rounded())) \(unit)"
      }
    }
    return "\(bytes) B"
  }
}
