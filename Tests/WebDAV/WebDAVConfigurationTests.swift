import Foundation
import LatchkeyHTTP
import LatchkeyStorage
import Testing

@testable import LatchkeyWebDAV

@Suite("WebDAV: URLs and credentials")
struct WebDAVConfigurationTests {
  private func read(_ text: String) throws -> WebDAVConfiguration {
    var stores = StoreRegistry()
    stores.registerWebDAV()
    return try WebDAVConfiguration(try stores.locator(text, relativeTo: ""))
  }

  @Test("a URL names a folder, with or without a slash at its end, its path as it is written")
  func urls() throws {
    #expect(try read("webdav+https://cloud.example/dav/a%20b").root.text == "https://cloud.example/dav/a%20b/")
    #expect(try read("webdav+https://cloud.example:8443/dav/").root.text == "https://cloud.example:8443/dav/")
    #expect(try read("webdav+https://cloud.example").root.text == "https://cloud.example/")
    #expect(try read("webdav+http://127.0.0.1:8080/x").root.text == "http://127.0.0.1:8080/x/")
    #expect(try read("webdav+http://nas.lan/x?insecure=1").root.text == "http://nas.lan/x/")
    #expect(try read("webdav+http://nas.lan/x?insecure").root.text == "http://nas.lan/x/")
    let options = try read("webdav+https://h/x?ca=/etc/ca.pem&proxy=http://p:3128").http
    #expect(options.caFile == "/etc/ca.pem" && options.proxy?.text == "http://p:3128/")
  }

  @Test("what cannot be is refused, and the message says what to write")
  func refusals() throws {
    for (text, hint) in [
      ("webdav+http://nas.lan/x", "webdav+https"), ("webdav+http://nas.lan/x?insecure=0", "insecure=1"),
      ("webdav+http://nas.lan/x?insecure=maybe", "1 or 0"), ("webdav+https://h/x?ca=ca.pem", "whole path"),
      ("webdav+https://h:99999/x", "no name of a host"), ("webdav+https://h/x?proxy=socks", "http://HOST:PORT"),
      ("webdav+https:h", "webdav+https://HOST/PATH"),
    ] {
      let error = #expect(throws: StorageError.self) { _ = try read(text) }
      #expect(error?.cause == .config)
      #expect(error?.description.contains(hint) == true, "\(text): \(error.map { "\($0)" } ?? "")")
    }
    #expect(throws: LocatorError.credential) { _ = try read("webdav+https://ana:hunter2@h/x") }
    #expect(throws: LocatorError.self) { _ = try read("webdav+https://h/x?user=ana") }
  }

  @Test("user and password come from a variable and a private file, for one server if it is named, and are not printed")
  func credentials() throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "latchkey-password-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: file) }
    func write(_ text: String, mode: Int) throws {
      try text.write(toFile: file, atomically: false, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
    }
    let server = try read("webdav+https://cloud.example/dav").root
    func credential(_ variables: [String: String]) throws -> HTTPCredential? {
      try WebDAVEnvironment { variables[$0] }.credential(for: server)
    }
    let (user, path) = ("LATCHKEY_WEBDAV_USER", "LATCHKEY_WEBDAV_PASSWORD_FILE")
    let both = [user: "ana", path: file]
    try write("hunter2 with space\r\nsecond line\n", mode: 0o600)
    let found = try #require(try credential(both))
    #expect(found == HTTPCredential(user: "ana", password: "hunter2 with space"))
    #expect(!"\(found)".contains("hunter2") && !String(reflecting: found).contains("hunter2"))
    #expect(try credential([:]) == nil)
    #expect(try credential([user: "", path: ""]) == nil)

    for (host, isMeant) in [
      ("cloud.example", true), ("CLOUD.example:443", true), ("cloud.example:8443", false), ("evil.example", false),
    ] { #expect(try (credential(both.merging(["LATCHKEY_WEBDAV_HOST": host]) { $1 }) != nil) == isMeant, "\(host)") }

    for (variables, hint) in [
      ([user: "ana"], path), ([path: file], user), ([user: "ana", path: "/nonexistent/x"], "/nonexistent/x"),
      ([user: "ana", path: "/tmp"], "not a file"), (both.merging(["LATCHKEY_WEBDAV_HOST": "a b"]) { $1 }, "HOST:PORT"),
    ] {
      let error = #expect(throws: StorageError.self) { _ = try credential(variables) }
      #expect(error?.cause == .unauthorized && error?.description.contains(hint) == true)
    }
    try write("hunter2\n", mode: 0o640)
    let loose = #expect(throws: StorageError.self) { _ = try credential(both) }
    #expect(loose?.description.contains("chmod 600") == true && loose?.description.contains("hunter2") == false)
    try write("\nhunter2\n", mode: 0o600)
    #expect(throws: StorageError.self) { _ = try credential(both) }
  }
}
