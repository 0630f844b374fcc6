extension Unicode.Scalar {
  /// Whether a terminal shows it and does nothing else: no control character, no line separator, nothing that turns
  /// the direction of the text around it (which can make one name look like another).
  var isPrintable: Bool {
    switch value {
    case 0x00...0x1F, 0x7F...0x9F: false
    case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
    default: true
    }
  }
}

extension String {
  /// The text with what is not printable spelled out: names come from other people and from files.
  var printable: String {
    guard unicodeScalars.contains(where: { !$0.isPrintable }) else { return self }
    var shown = ""
    for scalar in unicodeScalars {
      if scalar.isPrintable {
        shown.unicodeScalars.append(scalar)
      } else {
        shown += "\\u{" + String(scalar.value, radix: 16) + "}"
      }
    }
    return shown
  }
}
