/// Base64 with padding (RFC 4648 §4).
func base64(_ bytes: [UInt8]) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  var text: [UInt8] = []
  text.reserveCapacity((bytes.count + 2) / 3 * 4)
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    var word: UInt32 = 0
    for byte in group { word = word << 8 | UInt32(byte) }
    word <<= UInt32(8 * (3 - group.count))
    for digit in 0..<4 {
      text.append(
        digit <= group.count ? alphabet[Int(word >> UInt32(18 - 6 * digit) & 63)] : UInt8(ascii: "="))
    }
  }
  return String(decoding: text, as: UTF8.self)
}
