import Latchkey
import LatchkeyTables

extension Verbs {
  static let recipe = Verb(
    name: "recipe",
    summary: "rules for apps that many people have, and files of rules",
    body: .groups([listRecipes, showRecipe, checkRecipe]))

  private static let listRecipes = Verb(
    name: "list",
    summary: "list the recipes that came with this program",
    data: [Term("recipes", "[{name, app}]")],
    body: .runs { _, _ throws(CommandError) in
      Outcome(
        "There are \(counted(ShippedRecipe.all.count, "recipe")).",
        .lines(Columns(ShippedRecipe.all.map { [$0.name, $0.summary] }).lines.map { Line(.none, $0) }),
        data: [
          "recipes": .array(ShippedRecipe.all.map { ["name": .text($0.name), "app": .text($0.summary)] })
        ])
    })

  private static let showRecipe = Verb(
    name: "show",
    summary: "print a recipe that came with this program",
    arguments: [Argument("NAME", .text, "the recipe's name")],
    data: [Term("recipe", "the recipe")],
    examples: ["latchkey recipe show gnucash"],
    body: .runs { arguments, _ throws(CommandError) in
      let name = try arguments.required(Argument("NAME", .text, "the recipe's name"))
      guard let shipped = ShippedRecipe.all.first(where: { $0.name == name }) else {
        throw .usage(
          "no-such-recipe", "No recipe \(name.quotedUnlessSecret) came with this program.",
          next: ["latchkey recipe list"])
      }
      let rules = try Recipe(named: name).rules
      return Outcome(
        "\(shipped.summary).", .text(shipped.text + "\n"), data: ["recipe": JSON(recipe: rules, name: shipped.name)])
    })

  private static let checkRecipe = Verb(
    name: "check",
    summary: "check that a file of rules can be understood",
    details: [
      "Whether it fits a database is said by \"latchkey attach DB --recipe FILE --dry-run\" and \"latchkey rules set DB FILE "
        + "--dry-run\"."
    ],
    arguments: [Argument("FILE", .file, "the file")],
    exits: [.newerFormat],
    data: [Term("tables", "how many tables it has rules about"), Term("rules", "the rules, as they were understood")],
    examples: ["latchkey recipe check budget.json"],
    body: .runs { arguments, _ throws(CommandError) in
      let path = try arguments.required(Argument("FILE", .file, "the file"))
      let rules = try Recipe(parsing: try SmallFile.read(path), file: path).rules
      let message = "\(path) is a recipe with rules about \(counted(rules.tables.count, "table"))."
      return Outcome(
        message, .lines([Line(.done, message)]),
        data: ["tables": .count(rules.tables.count), "rules": JSON(recipe: rules, name: nil)])
    })
}
