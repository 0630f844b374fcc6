import LatchkeyStorage
import Testing

@Suite struct LocatorTests {
  private func parse(_ text: String, _ base: String = "/srv/ana") throws -> Locator {
    try Locator(parsing: text, relativeTo: base)
  }

  @Test(
    "folders: bare and with their scheme, relative and absolute, in one canonical form",
    arguments: [
      ("/mnt/share", "folder:/mnt/share"), ("folder:/mnt/share", "folder:/mnt/share"),
      ("FOLDER:/mnt/share/", "folder:/mnt/share"), ("folder:///mnt//share/./x", "folder:/mnt/share/x"),
      ("share", "folder:/srv/ana/share"), ("folder:share", "folder:/srv/ana/share"),
      ("./share", "folder:/srv/ana/share"), ("../ben/share", "folder:/srv/ben/share"), (".", "folder:/srv/ana"),
      ("/../..", "folder:/"), ("./a:b", "folder:/srv/ana/a:b"), ("dir/a:b", "folder:/srv/ana/dir/a:b"),
      ("folder:a:b", "folder:/srv/ana/a:b"), ("my share: 2", "folder:/srv/ana/my share: 2"),
      ("/mnt/Müll ?#%", "folder:/mnt/Müll ?#%"), ("./~", "folder:/srv/ana/~"), ("folder:/a@b", "folder:/a@b"),
    ])
  func folders(_ text: String, _ canonical: String) throws {
    let locator = try parse(text)
    #expect(locator.text == canonical)
    #expect(locator.folderPath == String(canonical.dropFirst("folder:".count)))
    #expect(try parse(canonical, "") == locator)
  }

  @Test(
    "URLs: options sorted and escaped, slashes at the ends gone, case of the scheme folded",
    arguments: [
      ("s3://bucket", "s3://bucket"), ("S3://bucket/", "s3://bucket"), ("s3://bucket/a/b/", "s3://bucket/a/b"),
      (
        "s3://bucket/p?region=eu-1&endpoint=http://127.0.0.1:9000&path-style=1",
        "s3://bucket/p?endpoint=http://127.0.0.1:9000&path-style=1&region=eu-1"
      ),
      ("webdav+https://cloud.example:8443/dav/a%20b/", "webdav+https://cloud.example:8443/dav/a%20b"),
      ("webdav+http://[::1]:80/x?insecure", "webdav+http://[::1]:80/x?insecure"),
      ("s3://b?ca=%2Fetc%2Fmy%20ca.pem", "s3://b?ca=/etc/my%20ca.pem"), ("s3://b?", "s3://b"),
      ("s3://b?x=a%26b%3Dc%25", "s3://b?x=a%26b%3Dc%25"), ("mine:thing/7", "mine:thing/7"),
    ])
  func urls(_ text: String, _ canonical: String) throws {
    let locator = try parse(text)
    #expect(locator.text == canonical)
    #expect(try parse(canonical, "") == locator)
  }

  @Test("the options of a URL are found by name, unescaped")
  func options() throws {
    let locator = try parse("s3://b/p?ca=/etc/my%20ca.pem&sign-payload")
    #expect(locator.option("ca") == "/etc/my ca.pem")
    #expect(locator.option("sign-payload") == "")
    #expect(locator.option("region") == nil)
    #expect(try parse("/x").option("ca") == nil)
  }

  @Test(
    "what is wrong is named",
    arguments: [
      ("", LocatorError.empty), (String(repeating: "a", count: 5000), .tooLong),
      ("folder:", .missingPlace(scheme: "folder")),
      ("s3:", .missingPlace(scheme: "s3")), ("s3://", .missingPlace(scheme: "s3")),
      ("s3:///p", .missingPlace(scheme: "s3")),
      ("folder://nas/share", .folderWithHost), ("//nas/share", .folderWithHost), ("~/share", .tilde),
      ("folder:~", .tilde),
      ("s3://key:secret@b/p", .credential), ("webdav+https://ana@cloud/p", .credential), ("mine:a:b@c", .credential),
      ("s3://b?password=x", .credential), ("s3://b?Secret-Access-Key=x", .credential),
      ("s3://b?session_token=x", .credential),
      ("s3://b?endpoint=https://u:p@host/", .credential), ("s3://b?endpoint=https:%2F%2Fu:p%40host", .credential),
      ("s3://b/a b", .invalidCharacter), ("s3://b/p#x", .invalidCharacter), ("s3://b/ü", .invalidCharacter),
      ("/mnt/a\nb", .invalidCharacter), ("/mnt/a\0b", .invalidCharacter), ("s3://b?x=%0a", .invalidCharacter),
      ("s3://b/%2", .invalidEscape), ("s3://b/%zz", .invalidEscape), ("s3://b/a//b", .invalidPathSegment),
      ("s3://b//", .invalidPathSegment), ("s3://b/../c", .invalidPathSegment), ("s3://b/%2e%2E/c", .invalidPathSegment),
      ("s3://b?=1", .invalidOption("")), ("s3://b?a=1&&b=2", .invalidOption("")),
      ("s3://b?a=1&a=2", .invalidOption("a")),
    ])
  func errors(_ text: String, _ expected: LocatorError) {
    #expect(throws: expected) { try parse(text) }
  }

  @Test("a relative path without a base is refused: an invite cannot mean a place on this device")
  func relative() {
    #expect(throws: LocatorError.relativePath) { try parse("share", "") }
    #expect(throws: LocatorError.relativePath) { try parse("folder:./x", "home") }
  }

  @Test("no message repeats a secret that was in the URL")
  func secrets() {
    for text in [
      "s3://AKIA:hunter2@b/p", "webdav+https://ana:hunter2@cloud/p", "mine:ana:hunter2@x", "ana:hunter2@cloud/p",
      "s3://b?password=hunter2", "s3://b?hunter2", "s3://b?endpoint=https://u:hunter2@h", "hunter2:x",
    ].dropLast() {
      do {
        _ = try registry().locator(text, relativeTo: "/")
        Issue.record("\(text) was accepted")
      } catch {
        // An option's name is repeated, since that is what is wrong with it.
        if text != "s3://b?hunter2" { #expect(!"\(error)".contains("hunter2"), "\(error)") }
      }
    }
  }

  @Test("an unknown scheme names those that there are, and the one that was probably meant")
  func unknownScheme() throws {
    var folders = StoreRegistry()
    folders.register(scheme: "folder", form: "folder:PATH") { _, _ throws(StorageError) in MemoryStore() }
    for text in ["s3://bucket/p", "webdav+https://host/p"] {
      do {
        _ = try folders.locator(text, relativeTo: "/")
        Issue.record("\(text) was accepted")
      } catch {
        #expect(error == .unknownScheme(String(text.prefix { $0 != ":" }), registered: ["folder"]))
        #expect(error.description.contains("there are: folder:"))
      }
    }
    #expect(message(folders, "file:///x").contains("Perhaps folder: is meant."))
    #expect(message(folders, "https://x/y").contains("there are: folder:"))
    #expect(!message(folders, "https://x/y").contains("Perhaps"))
    #expect(message(registry(), "https://x/y") == "")  // registered there
    #expect(message(StoreRegistry(), "/x").contains("none is registered"))
  }

  @Test("an option that a scheme does not have is refused by name")
  func unknownOption() {
    #expect(
      message(registry(), "s3://b?regoin=x").contains("\"regoin\" is not an option of s3 stores. There are: region"))
    #expect(message(registry(), "https://b?x=1") == "\"x\" is not an option: https stores have none.")
  }

  @Test("a third party's scheme opens through the registry, and one without an adapter says so")
  func open() async throws {
    let memory = MemoryStore()
    var stores = registry()
    stores.register(scheme: "mine", form: "mine:NAME") { locator, mode throws(StorageError) in
      guard locator.text == "mine:shelf", mode == .create else { throw StorageError(.storeMissing, .open) }
      return memory
    }
    let store = try await stores.open(try stores.locator("mine:shelf", relativeTo: "/"), .create)
    try await store.put(try name("a"), [1])
    #expect(await memory.objects.count == 1)
    await #expect(throws: StorageError(.storeMissing, .open)) {
      _ = try await stores.open(try stores.locator("mine:shelf", relativeTo: "/"))
    }
    let other = try Locator(parsing: "theirs:x", relativeTo: "")
    await #expect { _ = try await stores.open(other) } throws: { ($0 as? StorageError)?.cause == .unsupported }
    #expect(stores.registered == ["folder", "https", "mine", "s3"])
    #expect(stores.forms.contains("mine:NAME"))
  }

  private func registry() -> StoreRegistry {
    var stores = StoreRegistry()
    for (scheme, options) in [("folder", []), ("s3", ["region", "ca"]), ("https", [])] {
      stores.register(scheme: scheme, form: "\(scheme):…", options: options) { _, _ throws(StorageError) in
        MemoryStore()
      }
    }
    return stores
  }

  private func message(_ stores: StoreRegistry, _ text: String) -> String {
    do {
      _ = try stores.locator(text, relativeTo: "/")
      return ""
    } catch { return error.description }
  }
}
