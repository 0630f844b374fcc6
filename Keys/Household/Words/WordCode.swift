/// Bits as words of ``WordList``: 11 bits a word, most significant first.
enum WordCode {
  static let bitsPerWord = 11

  /// - Parameter count: how many words; `bytes` holds at least as many bits, the rest is not used.
  static func words(_ bytes: [UInt8], count: Int) -> [String] {
    (0..<count).map { index in
      var number = 0
      for bit in index * bitsPerWord..<(index + 1) * bitsPerWord {
        number = number << 1 | Int(bytes[bit / 8] >> UInt8(7 - bit % 8) & 1)
      }
      return WordList.words[number]
    }
  }

  /// The bits of words by their numbers, filled up with zero bits to whole bytes.
  static func bytes(_ numbers: [Int]) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: (numbers.count * bitsPerWord + 7) / 8)
    for (index, number) in numbers.enumerated() {
      for bit in 0..<bitsPerWord where number >> (bitsPerWord - 1 - bit) & 1 == 1 {
        let at = index * bitsPerWord + bit
        out[at / 8] |= 1 << UInt8(7 - at % 8)
      }
    }
    return out
  }

  /// Words as somebody typed them: parted by anything but letters and digits, in any case, with or without numbers in front
  /// ("1. acorn").
  static func typed(_ text: String) -> [String] {
    text.lowercased().split { !($0.isLetter || $0.isNumber) }.map(String.init).filter { !$0.allSatisfy(\.isNumber) }
  }
}
