import Foundation
import Testing

/// The shapes of the JSON answers, which are a contract with programs.
@Suite struct AnswerTests {
  @Test("init says who and where")
  func initialise() throws {
    let world = try World(.empty)
    let data = try world.ok("init --home ana --name Ana --device laptop --store store").data
    #expect(Set(data.keys) == ["member", "device", "household", "store"])
    #expect(data["store"] as? String == "folder:" + world.folder.url.appendingPathComponent("store").path)
    #expect((data["member"] as? String)?.count == 32)
  }

  @Test(
    "attach gives every table a verdict and a reason, with --dry-run too, which changes no byte and needs no identity")
  func attach() throws {
    let world = try World(.empty)
    try world.shell(
      "sqlite3 ana.db 'CREATE TABLE scratch(text); CREATE VIEW v AS SELECT 1; CREATE TABLE log(id TEXT PRIMARY KEY, entry_id INTEGER)'"
    )
    let before = try world.files()
    let dry = try world.ok("attach ana.db --zone Budget --dry-run --home none").data
    #expect(try world.files() == before)
    #expect(dry["dry_run"] as? Bool == true)
    try world.ok("init --home ana --name Ana --store store")
    let data = try world.ok("attach ana.db --zone Budget --home ana").data
    #expect(data["dry_run"] as? Bool == false)
    for data in [dry, data] {
      #expect(Set(data.keys) == ["zone", "tables", "rows_without_key", "needs_template", "dry_run"])
      #expect(data["zone"] as? String == "Budget")
      let tables = try #require(data["tables"] as? [[String: Any]])
      #expect(tables.map { $0["name"] as? String } == ["accounts", "entries", "scratch", "log"])
      #expect(tables.map { $0["verdict"] as? String } == ["sync", "sync", "refused", "sync"])
      #expect(tables.allSatisfy { ($0["reason"] as? String)?.isEmpty == false })
      #expect(tables[0]["identity"] as? String == "generated")
      #expect(tables[3]["identity"] as? String == "primaryKey")
      #expect(tables[2]["identity"] is NSNull)
      let reference = try #require((tables[1]["references"] as? [[String: Any]])?.first)
      #expect(reference["columns"] as? [String] == ["account_id"])
      #expect(reference["table"] as? String == "accounts")
      #expect(reference["declared"] as? Bool == true)
      #expect((data["needs_template"] as? [String])?.count == 1)
    }
  }

  @Test("store test says what a place can do and leaves it as it was; store ls says what lies there")
  func stores() throws {
    let world = try World(.initialised)
    try world.shell("mkdir -p fresh/Photos; echo x > fresh/Photos/y")
    let before = try world.files()
    for (place, content) in [("store", "store"), ("fresh", "empty")] {
      let data = try world.ok("store test \(place) --home none").data
      #expect(data["content"] as? String == content)
      #expect(data["failed"] as? Int == 0)
      let cases = try #require(data["cases"] as? [[String: Any]])
      #expect(cases.count == (data["passed"] as? Int ?? 0) + (data["skipped"] as? Int ?? 0))
      for one in cases {
        #expect(Set(one.keys) == ["name", "claim", "outcome", "detail", "consequence"])
        #expect((one["consequence"] as? String)?.isEmpty == false)
      }
      let capabilities = try #require(data["capabilities"] as? [String: Any])
      #expect(capabilities["conditional_create"] as? String == "atomic")
      #expect(capabilities.count == 6)
    }
    #expect(try world.files() == before)
    let listed = try world.ok("store ls store --home none").data
    let objects = try #require(listed["objects"] as? [[String: Any]])
    #expect(objects.contains { $0["name"] as? String == "latchkey-store" })
    #expect(listed["bytes"] as? Int == objects.reduce(0) { $0 + ($1["size"] as? Int ?? 0) })
  }

  @Test("a file of which no table can synchronise is refused with every table's reason")
  func nothingSyncs() throws {
    let world = try World(.initialised)
    try world.shell("sqlite3 x.db 'CREATE TABLE a(x); CREATE TABLE b(x)'")
    for line in ["attach x.db --home ana", "attach x.db --home ana -n"] {
      let (reply, exit) = try world.ask(line)
      #expect(exit == 2)
      let tables = try #require(reply.data["tables"] as? [[String: Any]])
      #expect(tables.map { $0["verdict"] as? String } == ["refused", "refused"])
    }
  }

  @Test("sync counts rows, requests and bytes; the second one writes nothing")
  func sync() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ana.db 'UPDATE entries SET cents = cents + 1'")
    let first = try world.ok("sync ana.db --home ana").data
    #expect(
      Set(first.keys) == [
        "sent", "received", "waiting", "parked", "requests", "bytes_up", "bytes_down", "conflicts", "held", "decisions",
        "warnings",
      ])
    #expect(first["sent"] as? Int == 2)
    #expect(first["waiting"] as? Int == 0)
    #expect((first["bytes_up"] as? Int ?? 0) > 0)
    for line in ["sync ben.db --home ben", "sync --home ana", "sync --home ben", "sync --home ana"] {
      try world.ok(line)
    }
    for line in ["sync ana.db --home ana", "sync ben.db --home ben", "sync --home ana", "sync --home ben"] {
      let data = try world.ok(line).data
      let requests = try #require(data["requests"] as? [String: Int])
      #expect(Set(requests.keys) == ["put", "get", "list", "head", "delete"])
      #expect(requests["put"] == 0, "\(line)")
      #expect(requests["delete"] == 0, "\(line)")
      #expect(data["sent"] as? Int == 0)
      #expect(data["received"] as? Int == 0)
      #expect((data["warnings"] as? [Any])?.isEmpty == true)
    }
  }

  @Test("a damaged object is set aside: exit code 3, and rows stay")
  func setAside() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ben.db 'INSERT INTO accounts(name) VALUES (zeroblob(0) || hex(randomblob(20)))'")
    try world.shell("find store -type f | sort > before.txt")
    try world.ok("sync ben.db --home ben")
    // Whatever Ben has just sent is altered.
    try world.shell(
      "find store -type f | sort | comm -13 before.txt - | while read -r f; do printf x | dd of=\"$f\" bs=1 seek=700 conv=notrunc 2> /dev/null; done"
    )
    let (reply, exit) = try world.ask("sync ana.db --home ana")
    #expect(exit == 3)
    #expect(reply.ok)
    #expect(reply.code == "set-aside")
    let warnings = try #require(reply.data["warnings"] as? [[String: String]])
    #expect(warnings.contains { $0["code"] == "damaged" })
    #expect(try world.shell("sqlite3 ana.db 'SELECT count(*) FROM accounts'") == "2\n")
  }

  @Test("status names file, zone, mode and when others were heard")
  func status() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ben.db 'UPDATE entries SET cents = 0'")
    for line in ["sync ben.db --home ben", "sync ana.db --home ana"] { try world.ok(line) }
    let data = try world.ok("status --home ana").data
    #expect(Set(data.keys) == ["databases", "decisions"])
    #expect((data["decisions"] as? [Any])?.isEmpty == true)
    let databases = try #require(data["databases"] as? [[String: Any]])
    #expect(databases.count == 1)
    #expect(databases[0]["path"] as? String == world.folder.url.appendingPathComponent("ana.db").path)
    let zone = try #require((databases[0]["zones"] as? [[String: Any]])?.first)
    #expect(
      Set(zone.keys) == [
        "name", "household", "mode", "epoch", "last_acknowledged", "last_heard", "waiting", "parked", "warnings",
        "parked_rows", "store", "mirror",
      ])
    #expect(zone["mode"] as? String == "owner")
    #expect(zone["household"] as? String == "Smith")
    let heard = try #require(zone["last_heard"] as? [String: String])
    #expect(Array(heard.keys) == ["phone"])
    for time in [heard["phone"], zone["last_acknowledged"] as? String] {
      let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
      let date = try Date(try #require(time), strategy: style)
      #expect(abs(date.timeIntervalSinceNow) < 3600)
    }
    let participant = try world.ok("status ben.db --home ben").data
    let theirs = ((participant["databases"] as? [[String: Any]])?.first?["zones"] as? [[String: Any]])?.first
    #expect(theirs?["mode"] as? String == "participant")
  }

  @Test("status of all files goes on past one that cannot be read, and says so")
  func statusWithMissing() throws {
    let world = try World(.attached)
    try world.shell("sqlite3 b.db 'CREATE TABLE t(id INTEGER PRIMARY KEY)'")
    try world.ok("attach b.db --home ana")
    try world.shell("rm b.db")
    let (reply, exit) = try world.ask("status --home ana")
    #expect(exit == 3)
    let databases = try #require(reply.data["databases"] as? [[String: Any]])
    #expect(databases.map { ($0["zones"] as? [Any])?.count } == [1, 0])
    #expect((databases[1]["error"] as? [String: Any])?["code"] as? String == "missing-file")
  }

  @Test("counts are equal on both sides, and compare says where they are not")
  func counts() throws {
    let world = try World(.joined)
    let zones = [try world.ok("counts ana.db --home ana"), try world.ok("counts ben.db --home ben")].map {
      ($0.data["zones"] as? [[String: Any]])?.first ?? [:]
    }
    #expect(Set(zones[0].keys) == ["name", "household", "mode", "digest", "tables"])
    let tables = try #require(zones[0]["tables"] as? [[String: Any]])
    #expect(Set(tables[0].keys) == ["name", "local", "live", "deleted", "waiting", "parked", "merged", "digest"])
    #expect(tables.map { $0["name"] as? String } == ["accounts", "entries"])
    #expect(zones[0]["digest"] as? String == zones[1]["digest"] as? String)
    try world.shell("latchkey counts ben.db --home ben --json > ben.json")
    #expect(try world.ok("counts ana.db --home ana --compare ben.json").data["equal"] as? Bool == true)
    try world.shell("sqlite3 ana.db 'UPDATE entries SET cents = 5 WHERE id = 1'")
    try world.ok("sync ana.db --home ana")
    let (reply, exit) = try world.ask("counts ana.db --home ana --compare ben.json")
    #expect(exit == 3)
    #expect(reply.code == "differs")
    #expect(reply.data["equal"] as? Bool == false)
    let comparison = try #require(reply.data["comparison"] as? [[String: Any]])
    #expect(comparison.map { $0["equal"] as? Bool } == [true, false])
    #expect(comparison.map { $0["table"] as? String } == ["accounts", "entries"])
  }

  @Test("explain names author, device and time of every field, and where references go")
  func explain() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ben.db 'UPDATE entries SET cents = 7 WHERE id = 1'")
    for line in ["sync ben.db --home ben", "sync ana.db --home ana"] { try world.ok(line) }
    let data = try world.ok("explain ana.db entries 1 --home ana").data
    #expect(
      Set(data.keys) == [
        "table", "record", "live", "shown", "fields", "references", "waits", "merged_into", "duplicates",
      ])
    #expect(data["live"] as? Bool == true)
    #expect(data["shown"] as? Bool == true)
    #expect(data["waits"] is NSNull)
    let fields = try #require(data["fields"] as? [[String: Any]])
    for field in fields { #expect(Set(field.keys) == ["name", "value", "author", "device", "time", "shown"]) }
    func field(_ name: String) -> [String: Any]? { fields.first { $0["name"] as? String == name } }
    #expect(field("cents")?["value"] as? Int == 7)
    #expect(field("cents")?["author"] as? String == "Ben")
    #expect(field("cents")?["device"] as? String == "phone")
    #expect(field("account_id")?["author"] as? String == "Ana")
    let reference = try #require((data["references"] as? [[String: String]])?.first)
    #expect(reference["column"] == "account_id")
    #expect((field("account_id")?["value"] as? [String: String])?["ref"] == reference["record"])
  }

  @Test("a file is one file, however its path is written")
  func paths() throws {
    let world = try World(.attached)
    try world.shell("mkdir sub")
    for path in ["./ana.db", "sub/../ana.db", "sub/.././/ana.db", "$PWD/ana.db"] {
      try world.ok("sync \(path) --home ana")
    }
    #expect((try world.ok("status --home ana").data["databases"] as? [Any])?.count == 1)
    try world.ok("detach sub/../ana.db --home ana")
    #expect((try world.ok("status --home ana").data["databases"] as? [Any])?.isEmpty == true)
  }

  @Test("a row that cannot be shown is counted, listed with its reason, and explained by its record's name")
  func parked() throws {
    let world = try World(.joined)
    // Ben leaves an entry of his own without its account, as a program that does not enforce its references can.
    let before = try world.shell("sqlite3 ana.db 'SELECT count(*) FROM entries'")
    try world.shell(
      "sqlite3 ben.db 'INSERT INTO accounts(id, name) VALUES (50, \"lent\"); INSERT INTO entries VALUES (70, 50, 77)'")
    for line in ["sync ben.db --home ben", "sync ana.db --home ana"] { try world.ok(line) }
    try world.shell("sqlite3 ben.db 'DELETE FROM accounts WHERE id = 50'")
    for line in ["sync ben.db --home ben", "sync --home ana", "sync --home ben", "sync --home ana"] {
      try world.ok(line)
    }
    for name in ["ana", "ben"] {
      #expect(try world.ok("sync \(name).db --home \(name)").data["parked"] as? Int == 1)
      let status = try world.ok("status \(name).db --home \(name)").data
      let zone = try #require(((status["databases"] as? [[String: Any]])?.first?["zones"] as? [[String: Any]])?.first)
      #expect(zone["parked"] as? Int == 1)
      let row = try #require((zone["parked_rows"] as? [[String: String]])?.first)
      #expect(row["table"] == "entries")
      #expect(row["reason"]?.contains("deleted") == true)
      let record = try #require(row["record"])
      let explanation = try world.ok("explain \(name).db entries \(record) --home \(name)").data
      #expect(explanation["live"] as? Bool == true)
      #expect(explanation["shown"] as? Bool == false)
      #expect(explanation["waits"] as? String == row["reason"])
      #expect(try world.shell("sqlite3 \(name).db 'SELECT count(*) FROM entries'") == before)
    }
  }

  @Test("members, devices and keys are listed with names and ids, and without secrets")
  func people() throws {
    let world = try World(.joined)
    let data = try world.ok("members list --household Smith --home ben").data
    #expect(data["household"] as? String == "Smith")
    let members = try #require(data["members"] as? [[String: Any]])
    #expect(members.count == 2)
    for member in members { #expect(Set(member.keys) == ["name", "id", "role", "status", "you", "devices"]) }
    let ben = try #require(members.first { $0["name"] as? String == "Ben" })
    #expect(ben["you"] as? Bool == true)
    #expect(ben["role"] as? String == "member")
    #expect(ben["status"] as? String == "active")
    let device = try #require((ben["devices"] as? [[String: String]])?.first)
    #expect(device["name"] == "phone")
    #expect(Set(device.keys) == ["name", "id"])

    let keys = try world.ok("key show --home ana").data
    #expect(Set(keys.keys) == ["member", "device", "households"])
    let households = try #require(keys["households"] as? [[String: Any]])
    #expect(Set(households.compactMap { $0["name"] as? String }) == ["Ana's own", "Smith"])
    #expect((households[0]["fingerprint"] as? [String])?.map(\.count) == Array(repeating: 4, count: 10))
    let one = try world.ok("key show --household Smith --home ana").data
    #expect((one["households"] as? [Any])?.count == 1)

    let devices = try #require(try world.ok("device list --home ana").data["devices"] as? [[String: Any]])
    #expect(devices.count == 1)
    #expect(devices[0]["name"] as? String == "laptop")
    #expect(devices[0]["this"] as? Bool == true)
  }

  @Test("share, invite, join and detach say what they did")
  func lifecycle() throws {
    let world = try World(.attached)
    let share = try world.ok("share ana.db --household Smith --home ana").data
    #expect(Set(share.keys) == ["household", "zone", "rows", "verified", "warnings"])
    #expect(share["rows"] as? Int == 4)
    #expect(share["verified"] as? Bool == true)
    let shown = try world.ok("invite --home ana --role reader --expires 10m").data
    #expect(Set(shown.keys) == ["id", "link", "household", "role", "expires"])
    #expect((shown["link"] as? String)?.hasPrefix("latchkey://join#") == true)
    #expect(shown["role"] as? String == "reader")
    let hidden = try world.ok("invite --home ana --out i.txt").data
    #expect(Set(hidden.keys) == ["id", "file", "household", "role", "expires"])
    let join = try world.ok("join --home ben --name Ben --db ben.db --yes --invite-file i.txt").data
    #expect(Set(join.keys) == ["household", "zone", "database", "rows", "provisional", "words", "warnings"])
    #expect(join["household"] as? String == "Smith")
    #expect(join["zone"] as? String == "Budget")
    #expect(join["rows"] as? Int == 4)
    #expect(join["provisional"] as? Bool == true)
    let device = try world.ok("device add --home ana").data
    #expect(Set(device.keys) == ["id", "link", "household", "role", "expires"])
    #expect(device["role"] as? String == "mine")
    let detach = try world.ok("detach ben.db --home ben").data
    #expect(Set(detach.keys) == ["path", "waiting"])
    #expect(detach["waiting"] as? Int == 0)
  }

  @Test("export prints the same lines on both devices, and the same records as one object")
  func export() throws {
    let world = try World(.joined)
    try world.shell(
      "sqlite3 ana.db \"INSERT INTO entries VALUES (9, 2, 1e16), (10, 2, x'00ff'), (11, 1, cast(x'61ff' AS TEXT)), (12, 1, 0.1)\""
    )
    try world.ok("sync ana.db --home ana")
    try world.ok("sync ben.db --home ben")
    let lines = try world.shell("latchkey export ana.db --home ana")
    #expect(try world.shell("latchkey export ben.db --home ben") == lines)
    for value in ["10000000000000000", #"{"blob":"AP8="}"#, #"{"text":"Yf8="}"#, "0.1", "-1250"] {
      #expect(lines.contains("\"cents\":\(value),"), "\(value)")
    }
    let objects = try lines.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? NSDictionary)
    }
    #expect(objects.count == 8)
    let order = objects.map { "\($0["table"] ?? "") \($0["record"] ?? "")" }
    #expect(order == order.sorted())
    let records = try #require(try world.ok("export ana.db --home ana").data["records"] as? [NSDictionary])
    #expect(records == objects)
    let only = try #require(
      try world.ok("export ana.db --table accounts --home ana").data["records"] as? [NSDictionary])
    #expect(only.count == 2)
    let csv = try world.shell("latchkey export ana.db --home ana --format csv --table accounts")
    #expect(csv.hasPrefix("lk_record,id,name\r\n"))
    #expect(csv.hasSuffix("\r\n"))
    #expect(csv.contains(",1,Joint\r\n"))
  }

  @Test("every verb answers --json --no-input with one object, with a household and without any")
  func oneObject() throws {
    let lines = [
      "init --name Ana --store store", "attach ana.db", "detach ana.db", "sync", "sync ana.db",
      "share ana.db --household Smith", "invite", "join", "join --db x.db", "device add", "device list", "status",
      "status ana.db", "counts ana.db", "explain ana.db accounts 1", "members list", "key show", "export ana.db",
      "completion bash", "help",
    ]
    for home in ["none", "ana"] {
      let world = try World(.shared)
      for line in lines {
        let result = try Program.run("latchkey \(line) --home \(home) --json --no-input < /dev/null", in: world.folder)
        let reply = try Reply(result)
        #expect(reply.ok == (result.exit == 0 || result.exit == 3), "\(line)")
        #expect(result.error.isEmpty, "\(line): \(result.error)")
        #expect(!result.output.unicodeScalars.contains("\u{1B}"), "\(line)")
      }
    }
  }

  @Test("a link is in the answer that was asked for it, and nowhere else; no name is in the store")
  func secrets() throws {
    let world = try World(.joined)
    let link = try #require(try world.ok("invite --home ana").data["link"] as? String)
    let secrets = [link, try world.shell("cat ben.invite")].map {
      String($0.dropFirst("latchkey://join#".count).prefix(40))
    }
    let lines = [
      "sync ana.db --home ana", "status --home ana", "key show --home ana", "members list --home ana",
      "device list --home ana", "join --home eve --db eve.db --name Eve --yes --invite-file ben.invite",
      "join --home eve --db eve.db --name Eve \(link)", "join --home eve --invite-file \(link)",
      "--verbose sync --home ben",
    ]
    for line in lines {
      for suffix in ["", " --json"] {
        let result = try Program.run("latchkey \(line)\(suffix) < /dev/null", in: world.folder)
        for secret in secrets {
          #expect(!result.output.contains(secret), "\(line)")
          #expect(!result.error.contains(secret), "\(line)")
        }
      }
    }
    // What was written while the household came to be: the second link was shown once, the first never.
    #expect(world.written.components(separatedBy: secrets[0]).count == 2)
    #expect(!world.written.contains(secrets[1]))
    for (name, bytes) in try world.files() where name.hasPrefix("store/") {
      for word in ["Ana", "Ben", "Smith", "Budget", "Joint", "entries", "accounts", "laptop", "phone"] {
        #expect(bytes.range(of: Data(word.utf8)) == nil, "\(word) in \(name)")
      }
    }
  }

  @Test("accounts of one computer can share the folder, but not the keys: the mask decides the one and not the other")
  func permissions() throws {
    let world = try World(.empty)
    try world.shell("umask 0; latchkey init --home ana --name Ana --store store > /dev/null 2>&1")
    #expect(try world.shell("stat -c %a store store/latchkey-store") == "777\n666\n")
    #expect(try world.shell("stat -c %a ana ana/keyring") == "700\n600\n")
  }

  @Test("the home directory and what is above it are made")
  func deepHome() throws {
    let world = try World(.empty)
    let environment = ["LATCHKEY_HOME": ""]
    let result = try Program.run(
      "latchkey init --name Ana --store store --json", in: world.folder, environment: environment)
    #expect(result.exit == 0, "\(result.output)")
    try world.shell("test -s .local/state/latchkey/keyring")
  }
}
