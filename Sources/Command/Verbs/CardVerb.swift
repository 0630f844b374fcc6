import Latchkey

extension Verbs {
  private static let publicName = Option.taking(
    "NAME", .text, "public-name", "put this name on the card: everybody who sees the store can read it")
  private static let cardID = Argument("ID", .text, "the card's id, or the first six characters of it or more")
  private static let petname = Option.taking("NAME", .text, "name", "what you call the person")

  static let card = Verb(
    name: "card",
    summary: "public cards: invite people without sending a link",
    body: .groups([publishCard, listCards, pinCard]))

  private static let publishCard = Verb(
    name: "publish",
    summary: "put your card into a store, so that others there can invite you",
    details: [
      "A card holds the public keys of your devices, and no name unless you give one. Whoever can read the store can read it, its "
        + "provider included: they learn that this person uses the store, and can count the invites that come.",
      "The ten words that are shown are what others compare before they invite you: read them out over the phone, or side by side.",
    ],
    options: [publicName, .store.saying("which store (default: the one of your personal household)")],
    exits: [.notAttached, .storeUnavailable, .keyRefused, .newerFormat],
    data: [
      Term("id", "your id"), Term("words", "[word], ten"), Term("public_name", "the name on the card, or null"),
      Term("store", "the store's URL"), Term("published", "false if the store showed the very same card already"),
    ],
    examples: ["latchkey card publish", "latchkey card publish --store ~/shared --public-name Ben"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("card publish", "a card is signed with its time")
      let card = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.publishCard(publicName: arguments[publicName], store: arguments[.store])
      }
      let message = card.isNew ? "Your card is in \(card.store)." : "Your card was in \(card.store) already."
      var outcome = Outcome(
        message,
        .lines([
          Line(.done, message), Line(.detail, "id     \(card.id)"),
          Line(.detail, "words  \(card.words.joined(separator: " "))"),
        ]),
        data: [
          "id": .text(card.id), "words": .array(card.words.map(JSON.text)), "public_name": .text(card.publicName),
          "store": .text(card.store), "published": .bool(card.isNew),
        ])
      outcome.notes = [
        Line(
          .warning,
          "Whoever can read that store can read the card: \(card.publicName.map { "the name \($0), and " } ?? "")your public keys."
        )
      ]
      outcome.next = [
        "latchkey card pin \(card.id.prefix(8)) --name YOUR-NAME --words WORDS   (on the other person's device)"
      ]
      return outcome
    })

  private static let listCards = Verb(
    name: "list",
    summary: "list the cards in the stores at hand",
    options: [.store.saying("only this store")],
    exits: [.setAside, .notAttached, .storeUnavailable, .keyRefused, .newerFormat],
    data: [
      Term(
        "cards",
        "[{id, display_name, petname, verified, standing, published, store}], standing: you, verified, pinned, unverified or "
          + "changed; display_name is what the card calls itself, and proof of nothing"),
      Term("warnings", "[{code, message}]"),
    ],
    body: .runs { arguments, context throws(CommandError) in
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.cards(store: arguments[.store])
      }
      let rows = report.cards.map { card in
        [
          String(card.id.prefix(8)), card.petname ?? "", card.standing.rawValue,
          card.displayName.map { "calls itself \"\($0)\" (unverified)" } ?? "",
        ]
      }
      var outcome = Outcome(
        "There are \(counted(report.cards.count, "card")).", .lines(Columns(rows).lines.map { Line(.none, $0) }),
        data: ["cards": .array(report.cards.map(json)), "warnings": .warnings(report.warnings)])
      outcome.notes = Line.warnings(report.warnings)
      if !report.warnings.isEmpty { outcome.exit = .setAside }
      return outcome
    })

  private static let pinCard = Verb(
    name: "pin",
    summary: "give the person behind a card a name here, after comparing words",
    details: [
      "Ask the person for the ten words that \"latchkey card publish\" shows on their own device. If they are the card's, the card "
        + "is theirs, and you can invite them. Without words the card is pinned and not trusted.",
      "Keys that were pinned are never replaced because a store shows others: only words that you compare do that.",
    ],
    arguments: [cardID],
    options: [
      petname.required, .words.saying("the ten words that the person read to you from their own device"),
      .store.saying("only this store"),
    ],
    exits: [.notAttached, .storeUnavailable, .databaseBusy, .keyRefused, .newerFormat],
    data: [
      Term("card", "{id, display_name, petname, verified, standing, published, store}, as in \"latchkey card list\"")
    ],
    examples: ["latchkey card pin 3f2a9c --name Ben"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("card pin", "it changes nothing but your own list of names")
      let id = try arguments.required(cardID)
      let name = try arguments.required(petname)
      let typed =
        arguments[.words]
        ?? context.terminal.words(
          [
            Line(.detail, "Ask \(name) for the ten words that \"latchkey card publish\" shows there."),
            Line(.detail, "Nothing typed: the card is pinned, and not trusted."),
          ], "The ten words: ")
      let card = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.pinCard(id, petname: name, words: typed, store: arguments[.store])
      }
      let isVerified = card.standing == .verified
      let message =
        isVerified ? "\(name) is pinned and verified." : "\(name) is pinned; whose the card is has not been verified."
      var outcome = Outcome(
        message, .lines([Line(isVerified ? .done : .warning, message)]), data: ["card": json(card)])
      outcome.next =
        isVerified
        ? ["latchkey invite --to \(name.quotedForShell)"]
        : ["latchkey card pin \(card.id.prefix(8)) --name \(name.quotedForShell) --words WORDS"]
      return outcome
    })

  private static func json(_ card: CardReport) -> JSON {
    [
      "id": .text(card.id), "display_name": .text(card.displayName), "petname": .text(card.petname),
      "verified": .bool(card.standing == .verified), "standing": .text(card.standing.rawValue),
      "published": .moment(card.published), "store": .text(card.store),
    ]
  }
}
