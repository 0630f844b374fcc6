public import LatchkeyEncoding

/// Ten words that two people read to each other to make sure that they see the same (format §8, *Words*).
///
/// Nine words are 99 bits of a hash, the tenth is a check of the nine: so a slip of the pen is told from a difference.
public struct ComparisonWords: Hashable, Sendable, CustomStringConvertible {
  public static let count = 10

  /// Ten words of ``WordList``.
  public let words: [String]

  /// "We know the same roster": whoever hides an entry from one of two devices makes these differ.
  ///
  /// - Parameter heads: of the roster, ascending.
  public init(household: HouseholdID, roster heads: [EntryHash]) {
    self.init(
      hash32("words", parts: 2) {
        $0.id(household)
        $0.hashes(heads)
      })
  }

  /// "It is my claim that you see": what an inviter compares with the newcomer before it lets it in.
  public init(claim: Claim) {
    self.init(
      hash32("claim-words", parts: 2) {
        $0.id(claim.household)
        $0.byteString(claim.bytes)
      })
  }

  /// "These are the keys on my card": what the owner of a card reads to whoever pins it. Over the keys only, so that a card
  /// published anew under another name keeps its words.
  ///
  /// - Parameter card: the chain on the card.
  public init(card chain: CertificateChain) {
    self.init(
      hash32("card-words", parts: 3) {
        $0.id(chain.person)
        $0.id(chain.keys.signing)
        $0.id(chain.keys.box)
      })
  }

  private init(_ hash: Hash32) {
    let nine = WordCode.words(hash.bytes, count: Self.count - 1)
    words = nine + [Self.check(nine)]
  }

  private static func check(_ nine: [String]) -> String {
    WordCode.words(blake2b(16, "words-check", parts: 1) { $0.text(nine.joined(separator: " ")) }, count: 1)[0]
  }

  public var description: String { words.joined(separator: " ") }

  /// What comparing with what somebody typed shows.
  public enum Comparison: Hashable, Sendable {
    case same
    /// All ten are words and belong together: the other side sees something else.
    case different
    /// Not ten words.
    case count(Int)
    /// This word, 1 to 10, is none of the list; perhaps one of these was meant.
    case unknownWord(position: Int, word: String, suggestions: [String])
    /// All are words, but they do not belong together: misheard or mistyped. Those that differ from the own ones, 1 to 10.
    case slip(positions: [Int])
  }

  /// Compares with what somebody typed or read out.
  public func compare(_ text: String) -> Comparison {
    let typed = WordCode.typed(text)
    guard typed.count == Self.count else { return .count(typed.count) }
    for (index, word) in typed.enumerated() where WordList.number(of: word) == nil {
      return .unknownWord(position: index + 1, word: word, suggestions: WordList.suggestions(for: word))
    }
    if typed == words { return .same }
    guard Self.check(Array(typed.prefix(Self.count - 1))) == typed[Self.count - 1] else {
      return .slip(positions: typed.indices.filter { typed[$0] != words[$0] }.map { $0 + 1 })
    }
    return .different
  }
}
