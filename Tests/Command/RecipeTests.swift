import LatchkeySQLite
import LatchkeyTables
import Testing

@testable import LatchkeyCommand

@Suite struct RecipeTests {
  private func rules(_ text: String) throws -> Rules { try Recipe(parsing: Array(text.utf8), file: "r.json").rules }

  @Test("a recipe says identity, references, what is local and what is not compressed")
  func vocabulary() throws {
    let rules = try rules(
      """
      { "v": 1, "name": "my budget",
        "tables": {
          "a": { "identity": ["uuid"] }, "b": { "identity": "generated" }, "c": { "identity": "primaryKey" },
          "t": { "references": { "c": "categories", "p": { "to": "people", "on_delete": "cascade", "none": [0, -1, ""] } },
                 "local_columns": ["seen"], "compress": false },
          "settings": "local", "book": "singleton",
          "d": { "dedup": ["name", { "column": "code", "fold": "exact" }], "prefer": "is_system" },
          "u": { "references": { "refid": { "by": "reftype", "to": { "Asset": "a", "2": "b" }, "on_delete": "keep" } },
                 "renamed": { "memo": "note" }, "lookup": true, "owned_by": "refid" } } }
      """)
    #expect(
      rules.tables["u"]
        == TableRules(
          references: [
            "refid": ReferenceRule(
              target: .chosen(
                by: "reftype", [.init(SQLiteValue("Asset"), table: "a"), .init(.integer(2), table: "b")]),
              onDelete: .keep)
          ], renamed: ["memo": "note"], isLookup: true, ownedBy: "refid"))
    #expect(rules.tables["a"] == TableRules(identity: .columns(["uuid"])))
    #expect(rules.tables["b"] == TableRules(identity: .generated))
    #expect(rules.tables["c"] == TableRules(identity: .primaryKey))
    #expect(
      rules.tables["t"]
        == TableRules(
          references: [
            "c": ReferenceRule(table: "categories"),
            "p": ReferenceRule(table: "people", onDelete: .cascade, none: [.integer(0), .integer(-1), .text([])]),
          ], localColumns: ["seen"], compress: false))
    #expect(rules.tables["settings"] == TableRules(isLocal: true))
    #expect(
      rules.tables["d"]
        == TableRules(dedup: [DedupColumn("name"), DedupColumn("code", fold: .exact)], preferred: "is_system"))
    #expect(rules.tables["book"] == TableRules(isSingleton: true))
    #expect(rules.tables.count == 8)
    // What is printed can be read in again.
    #expect(try self.rules(JSON(recipe: rules, name: nil).recipeText(ascii: false)) == rules)
  }

  @Test(
    "every recipe that comes with the program can be read, and reads the same when printed",
    arguments: ShippedRecipe.all)
  func shipped(recipe: ShippedRecipe) throws {
    let rules = try Recipe(named: recipe.name).rules
    #expect(!rules.tables.isEmpty)
    #expect(try self.rules(JSON(recipe: rules, name: recipe.name).recipeText(ascii: true)) == rules)
  }

  @Test("an empty recipe has no rules")
  func empty() throws { #expect(try rules("{\"v\":1}") == .none) }

  @Test(
    "a mistake is told with its line",
    arguments: [
      ("[]", 1, "the recipe is an object"), ("{}", 1, "\"v\" is missing"), ("{\"v\": \"1\"}", 1, "\"v\" is a version"),
      ("{\"v\":1,\n\"table\": {}}", 2, "a recipe has no key \"table\""),
      ("{\"v\":1,\n\"tables\": []}", 2, "\"tables\" is an object"),
      ("{\"v\":1,\"tables\":{\n\"a\": {},\n\n\"b\": {\"refs\": {}}}}", 4, "a table has no key \"refs\""),
      ("{\"v\":1,\"tables\":{\n\"a\": \"locl\"}}", 2, "the word is \"local\""),
      ("{\"v\":1,\"tables\":{\n\"a\": {\"identity\": \"uuid\"}}}", 2, "\"identity\" is"),
      ("{\"v\":1,\"tables\":{\n\"a\": {\"identity\": []}}}", 2, "\"identity\" is a list of columns"),
      ("{\"v\":1,\"tables\":{\n\"a\": {\"references\": {\"x\": {}}}}}", 2, "does not say which table"),
      (
        "{\"v\":1,\"tables\":{\n\"a\": {\"references\": {\"x\": {\"to\":\"b\",\n\"ondelete\":\"null\"}}}}}", 3,
        "a reference has no key"
      ),
      (
        "{\"v\":1,\"tables\":{\n\"a\": {\"references\": {\"x\": {\"to\":\"b\",\"on_delete\":\"no\"}}}}}", 2,
        "\"on_delete\" is"
      ),
      ("{\"v\":1,\"tables\":{\n\"a\": {\"references\": {\"x\": {\"to\":\"b\",\"none\":[null]}}}}}", 2, "\"none\" is"),
      ("{\"v\":1,\"tables\":{\n\"a\": {\"local_columns\": \"x\"}}}", 2, "is a list of columns' names"),
      ("{\"v\":1,\"tables\":{\n\"a\": {\"dedup\": \"name\"}}}", 2, "\"dedup\" is a list"),
      ("{\"v\":1,\"tables\":{\n\"a\": {\"compress\": 0}}}", 2, "\"compress\" is true or false"),
      ("{\"v\":1,\n\"v\":1}", 2, "occurs twice"),
    ])
  func mistakes(text: String, line: Int, reason: String) {
    #expect {
      _ = try rules(text)
    } throws: { error in
      guard let error = error as? CommandError else { return false }
      return error.exit == .usage && error.code == "bad-recipe" && error.message.contains("line \(line)")
        && error.message.contains(reason)
    }
  }

  @Test(
    "what this version cannot do is refused by its name, never passed over",
    arguments: [
      "attribute", "together", "unit", "additive",
    ])
  func later(key: String) {
    #expect {
      _ = try rules("{\"v\":1,\"tables\":{\"a\":{\n\"\(key)\": []}}}")
    } throws: { error in
      guard let error = error as? CommandError else { return false }
      return error.code == "recipe-not-supported" && error.message.contains("line 2") && error.message.contains(key)
    }
  }

  @Test("when rows are shown is said for the whole file, and survives being written down")
  func applyWhen() throws {
    let closed = try rules("{\"v\":1,\"apply_when\":\"closed\",\"tables\":{\"a\":\"local\"}}")
    #expect(closed.appliesWhenClosed)
    #expect(try rules(JSON(recipe: closed, name: "x").recipeText(ascii: false)) == closed)
    #expect(try rules("{\"v\":1}").appliesWhenClosed == false)
    #expect(throws: CommandError.self) { try rules("{\"v\":1,\"apply_when\":\"open\"}") }
  }

  @Test("a newer recipe is told as one")
  func newer() {
    #expect {
      _ = try rules("{\"v\":2,\"whatever\":1}")
    } throws: { ($0 as? CommandError)?.exit == .newerFormat }
  }

  @Test("a recipe's rules reach the tables, and one that does not fit the file changes nothing")
  func attach() throws {
    let world = try World(.initialised)
    try world.shell(
      """
      echo '{"v":1,"tables":{"accounts":"local","entries":{"local_columns":["cents"]}}}' > r.json
      echo '{"v":1,"tables":{"nope":"local"}}' > table.json
      echo '{"v":1,"tables":{"entries":{"local_columns":["nope"]}}}' > column.json
      """)
    let before = try world.files()
    for (recipe, code) in [
      ("table.json", "no-such-table"), ("column.json", "no-such-column"), ("money", "no-such-recipe"),
    ] {
      let (reply, exit) = try world.ask("attach ana.db --home ana --recipe \(recipe)")
      #expect(exit == 64)
      #expect(reply.code == code)
    }
    #expect(try world.files() == before)
    let tables = try #require(
      try world.ok("attach ana.db --home ana --recipe r.json").data["tables"] as? [[String: Any]])
    #expect(tables.map { $0["verdict"] as? String } == ["local", "sync"])
    // The rules that hold can be shown, suggested and set.
    let shown = try #require(try world.ok("rules show ana.db --home ana").data["rules"] as? [String: Any])
    #expect((shown["tables"] as? [String: Any])?["accounts"] as? String == "local")
    try world.shell("echo '{\"v\":1,\"tables\":{\"entries\":{\"local_columns\":[\"cents\"]}}}' > set.json")
    #expect(try world.ok("rules set ana.db set.json --home ana --dry-run").data["dry_run"] as? Bool == true)
    let after = try world.ok("rules set ana.db set.json --home ana").data["tables"] as? [[String: Any]]
    #expect(after?.map { $0["verdict"] as? String } == ["sync", "sync"])
    #expect(try world.ok("rules suggest ana.db --home ana").data["suggestions"] is [Any])
    #expect(try world.ok("recipe check set.json").data["tables"] as? Int == 1)
    #expect(try world.ask("rules show other.db --home ana").1 != 0)
  }
}
