extension String {
  /// Whether this word may hold a secret and must not be shown: an invite link, or an address with a password in it.
  var looksSecret: Bool {
    lowercased().hasPrefix("latchkey:") || contains("join#") || (contains("://") && contains("@"))
  }

  /// The word in quotes, for a message.
  var quotedUnlessSecret: String { looksSecret ? "(a secret, not shown)" : "\"\(printable)\"" }
}
