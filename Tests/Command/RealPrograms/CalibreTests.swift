import Foundation
import Testing

@Suite("Real programs: calibre", .enabled(if: RealPrograms.areInstalled))
struct CalibreTests {
  /// What a library of calibre 6 has, in its own order.
  private static let verdicts: [(verdict: String, tables: [String])] = [
    (
      "sync",
      [
        "authors", "books", "books_authors_link", "books_languages_link", "books_plugin_data", "books_publishers_link",
        "books_ratings_link", "books_series_link", "books_tags_link", "comments", "conversion_options",
        "custom_columns",
        "data", "feeds", "identifiers", "languages", "library_id", "metadata_dirtied", "annotations_dirtied",
        "preferences",
        "publishers", "ratings", "series", "tags", "last_read_positions", "annotations",
      ]
    ),
    (
      "refused",
      ["annotations_fts", "annotations_fts_stemmed"].flatMap { name in
        ["", "_data", "_idx", "_docsize", "_config"].map { name + $0 }
      }
    ),
    ("sync", ["custom_column_1", "books_custom_column_1_link"]),
  ]

  @Test("attach --dry-run judges every table of a library that calibre made, and changes no byte")
  func dryRun() throws {
    let world = try World(.initialised)
    try world.shell(
      """
      mkdir library
      for title in One Two Three; do printf 'Title: %s\\n' $title > $title.txt; done
      calibredb --with-library library add One.txt Two.txt Three.txt --authors 'Ann Author' --tags x,y >/dev/null
      calibredb --with-library library add_custom_column shelf Shelf text --is-multiple >/dev/null
      calibredb --with-library library set_custom shelf 1 upstairs >/dev/null
      """)
    let before = try world.files().filter { $0.key.hasPrefix("library/") }
    let reply = try world.ok("attach library/metadata.db --home ana --zone Books --dry-run")
    #expect(try world.files().filter { $0.key.hasPrefix("library/") } == before)
    #expect(before.keys.contains("library/metadata.db"))
    let tables = try #require(reply.data["tables"] as? [[String: Any]])
    let judged = tables.map { "\($0["verdict"] as? String ?? "") \($0["name"] as? String ?? "")" }
    #expect(judged == Self.verdicts.flatMap { group in group.tables.map { "\(group.verdict) \($0)" } })
    #expect(tables.allSatisfy { ($0["reason"] as? String)?.isEmpty == false })
    // A file made from a description would lack what calibre's own schema is full of.
    let template = try #require(reply.data["needs_template"] as? [String])
    #expect(template.contains { $0.contains("trigger") } && template.contains { $0.contains("view meta") })
    // The links between tables are suspected, not taken for granted.
    let link = tables.first { $0["name"] as? String == "books_authors_link" }
    #expect((link?["suspected"] as? [[String: Any]])?.compactMap { $0["table"] as? String } == ["books", "authors"])
  }
}
