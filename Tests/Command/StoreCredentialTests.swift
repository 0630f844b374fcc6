import Foundation
import LatchkeyScriptedServer
import Testing

@Suite("Stores that ask for a credential")
struct StoreCredentialTests {
  private static let listing = Array(
    """
    <multistatus xmlns="DAV:"><response><href>/dav/</href><propstat><prop><resourcetype><collection/></resourcetype></prop>\
    <status>HTTP/1.1 200 OK</status></propstat></response></multistatus>
    """.utf8)

  @Test(
    "--credential-file is read, if nobody else can read it, and sent to that store; it is in no message and no list of processes"
  )
  func file() throws {
    let folder = try Folder()
    let server = try ScriptedServer { request in
      // "ana:hunter2"
      let isKnown = request.header("Authorization") == "Basic YW5hOmh1bnRlcjI="
      return isKnown
        ? .answer(207, [("Content-Type", "application/xml")], body: Self.listing)
        : .answer(401, [("WWW-Authenticate", "Basic realm=\"dav\"")])
    }
    let url = "webdav+http://127.0.0.1:\(server.port)/dav"
    func list(_ credential: String, mode: String = "600", more: String = "") throws -> Program.Result {
      try Program.run(
        "umask 077; printf '\(credential)' > c; chmod \(mode) c; latchkey store ls \(url) --json --no-input --credential-file c\(more)",
        in: folder)
    }
    let right = try list("user = ana\\npassword = hunter2\\n")
    #expect(right.exit == 0, "\(right.output)")
    let loose = try list("user = ana\\npassword = hunter2\\n", mode: "644")
    #expect(loose.exit == 14 && loose.output.contains("credential-unusable") && loose.output.contains("chmod 600"))
    let wrong = try list("user = ana\\npassword = hunter3\\n")
    #expect(wrong.exit == 11 && wrong.output.contains("store-unauthorized"))
    let other = try list("access-key = hunter2\\n")
    #expect(other.exit == 11 && other.output.contains("known: user, password"))
    let broken = try list("hunter2\\n")
    #expect(broken.exit == 14 && broken.output.contains("ine 1 of"))
    for result in [right, loose, wrong, other, broken] {
      #expect(!(result.output + result.error).contains("hunter"))
    }
    #expect(server.requests.allSatisfy { !$0.target.contains("hunter") })
  }

  @Test("Ctrl-C during a transfer that hangs ends the command with 130, without waiting for the server")
  func interrupted() throws {
    let folder = try Folder()
    let server = try ScriptedServer { request in
      request.method == "PROPFIND" && request.target == "/dav/"
        ? .answer(207, [("Content-Type", "application/xml")], body: Self.listing) : .nothing(.stall)
    }
    // Killed, with 137, if it waits for more than that after the signal: after two seconds it would give up by itself.
    let result = try Program.run(
      "timeout --preserve-status -k 1.5 -s INT 2 latchkey init --name Ana --store webdav+http://127.0.0.1:\(server.port)/dav --json",
      in: folder)
    #expect(result.exit == 130, "\(result.output) \(result.error)")
    #expect(result.output.contains("\"code\":\"interrupted\""))
    #expect(server.requests.contains { $0.target != "/dav/" })
  }
}
