internal import LatchkeyEncoding

/// Why words are not a recovery phrase.
public enum RecoveryPhraseError: Error, Hashable, Sendable {
  /// Not 24 words.
  case count(Int)
  /// This word, 1 to 24, is none of the list; perhaps one of these was meant.
  case unknownWord(position: Int, word: String, suggestions: [String])
  /// All are words, and two or more are wrong or stand in another order.
  case checksum
}

/// A recovery kit's seed as 24 words to write on paper (format §8, *Words*): 32 bytes and one byte of checksum.
public struct RecoveryPhrase: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public static let count = 24
  /// 32 bytes, the kit's seed: see ``KitKeys``.
  public let seed: SecretBytes

  /// Nil unless there are 32 bytes.
  public init?(seed: SecretBytes) {
    guard seed.bytes.count == 32 else { return nil }
    self.seed = seed
  }

  /// A new phrase.
  public init(_ random: inout some RandomSource) { seed = SecretBytes(random.bytes(32)) }

  /// Reads what somebody typed: any case, parted by spaces, lines, commas or numbers.
  ///
  /// - Throws: which word is wrong, where that can be told: a slip of one letter always can.
  public init(parsing text: String) throws(RecoveryPhraseError) {
    let typed = WordCode.typed(text)
    guard typed.count == Self.count else { throw .count(typed.count) }
    var numbers: [Int] = []
    for (index, word) in typed.enumerated() {
      guard let number = WordList.number(of: word) else {
        throw .unknownWord(position: index + 1, word: word, suggestions: WordList.suggestions(for: word))
      }
      numbers.append(number)
    }
    let bytes = WordCode.bytes(numbers)
    let seed = SecretBytes(Array(bytes.prefix(32)))
    guard bytes[32] == Self.checksum(seed) else { throw .checksum }
    self.seed = seed
  }

  /// The words to write down. Show them once, keep them nowhere.
  public var words: [String] { WordCode.words(seed.bytes + [Self.checksum(seed)], count: Self.count) }

  /// The first byte of `H_16(seed; "kit-checksum")`.
  private static func checksum(_ seed: SecretBytes) -> UInt8 {
    blake2b(16, "kit-checksum", key: seed.bytes, parts: 0) { _ in }[0]
  }

  public var description: String { "(recovery phrase)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
