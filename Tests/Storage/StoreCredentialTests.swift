import Foundation
import LatchkeyEncoding
import LatchkeyStorage
import Testing

@Suite("a store's credential")
struct StoreCredentialTests {
  @Test("lines of name = value are read, whatever surrounds them; a section of a shared credentials file is one")
  func reading() throws {
    let credential = try StoreCredential(
      parsing: "# for the box\r\n\n[default]\nUser = ana \n password=a = b;c# \n")
    #expect(credential["user"] == "ana")
    #expect(credential["password"] == "a = b;c#")
    #expect(credential["secret-key"] == nil)
    #expect(credential.names == ["password", "user"])
    #expect(try StoreCredential(parsing: credential.text) == credential)
  }

  @Test("what is no credential is refused by line or name, and none of it is repeated")
  func refusals() throws {
    for (text, hint) in [
      ("", "no credential"), ("# nothing\n", "no credential"), ("user = ana\nhunter2\n", "line 2"),
      ("user =", "line 1"),
      ("us er = hunter2", "line 1"), ("user = hunter2\u{7}x", "line 1"), ("user = a\nuser = hunter2", "user twice"),
    ] {
      let error = #expect(throws: StoreCredentialError.self) { _ = try StoreCredential(parsing: text) }
      #expect(error?.description.contains(hint) == true, "\(text)")
      #expect(error?.description.contains("hunter2") == false)
    }
  }

  @Test("it is never printed")
  func printing() throws {
    let credential = try StoreCredential(parsing: "password = hunter2")
    var dumped = ""
    dump(credential, to: &dumped)
    for text in ["\(credential)", String(reflecting: credential), "\([credential])", dumped] {
      #expect(!text.contains("hunter2"))
    }
  }

  @Test("a file that others can read is not used")
  func privacy() throws {
    let path = NSTemporaryDirectory() + "latchkey-credential-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try Data("password = hunter2\n".utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    #expect(throws: StoreCredentialError.file(.readableByOthers(path: path))) { _ = try StoreCredential(file: path) }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    #expect(try StoreCredential(file: path)["password"] == "hunter2")
    try Data(repeating: 0x61, count: PrivateFile.maximumBytes + 1).write(to: URL(fileURLWithPath: path))
    #expect(throws: StoreCredentialError.file(.tooLarge(path: path))) { _ = try StoreCredential(file: path) }
    #expect(throws: StoreCredentialError.self) { _ = try StoreCredential(file: path + "-none") }
    #expect(throws: StoreCredentialError.file(.notAFile(path: "/"))) { _ = try StoreCredential(file: "/") }
  }

  @Test("an adapter is given only values that it knows; one that asks for nothing takes none")
  func kinds() async throws {
    var stores = StoreRegistry()
    stores.register(scheme: "plain", form: "plain:X") { _, _ in MemoryStore() }
    stores.register(scheme: "vault", form: "vault:X", credential: ["key"]) { _, _, credential throws(StorageError) in
      guard credential?["key"] == "right" else { throw StorageError(.unauthorized, .open) }
      return MemoryStore()
    }
    let (plain, vault) = (try stores.locator("plain:a", relativeTo: ""), try stores.locator("vault:a", relativeTo: ""))
    let right = try StoreCredential(parsing: "key = right")
    _ = try await stores.open(plain)
    _ = try await stores.open(vault, credential: right)
    for (locator, credential, hint) in [
      (plain, right, "takes no credential"), (vault, try StoreCredential(parsing: "pass = right"), "known: key"),
    ] {
      let error = await #expect(throws: StorageError.self) {
        _ = try await stores.open(locator, credential: credential)
      }
      #expect(error?.cause == .unauthorized && error?.detail.contains(hint) == true)
    }
  }
}
