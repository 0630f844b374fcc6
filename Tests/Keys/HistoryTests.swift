import Foundation
import LatchkeyEncoding
import LatchkeyKeys
import Testing

/// Random rosters with what Tests/Vectors/rostermodel.py, a second reading of format §8, makes of them.
struct History: Decodable, Sendable {
  struct Item: Decodable, Sendable {
    let id: String
    let kind: String
    let author: String
    let seq: UInt64
    let prev: String?
    let heads: [String]
    let kit: Paper?
    let zone: UInt64?
    let device: String?
    let by: String?
    let role: String?
    let uses: UInt64?
    let confirm: Bool?
    let invite: String?
    let epoch: String?
    let to: String?
    let wrong: Bool?
    let parents: [String]?
    let recipients: [String]?
    let removes: [String]?
    let confirms: [String]?
    let roles: [String: String]?
    let closed: Bool?
    let flaw: String?
    let formers: [String]?
  }

  /// A kit's name (Genesis, Admit), or whether a device is one (AddDevice).
  enum Paper: Decodable, Sendable {
    case named(String)
    case flag(Bool)
    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let flag = try? value.decode(Bool.self) {
        self = .flag(flag)
      } else {
        self = .named(try value.decode(String.self))
      }
    }
    var name: String? { if case .named(let name) = self { name } else { nil } }
    var isKit: Bool { if case .flag(let flag) = self { flag } else { false } }
  }

  struct Expected: Decodable, Equatable, Sendable {
    var devices: [String: [Value]] = [:]
    var removed: [String] = []
    var leaving: [String] = []
    var invites: [String: Invite] = [:]
    var zones: [UInt64] = []
    var void: [String] = []
    var fallen: [String] = []
    var ends: [String] = []
    var current: String?
    var closed = false
    var strangers: [String] = []
    var closedInvites: [String] = []
    var refused: [String] = []
  }

  enum Value: Decodable, Equatable, Sendable {
    case text(String)
    case number(UInt64)
    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let text = try? value.decode(String.self) {
        self = .text(text)
      } else {
        self = .number(try value.decode(UInt64.self))
      }
    }
  }

  struct Invite: Decodable, Equatable, Sendable {
    let admitted: [String]
    let isOpen: Bool
    init(admitted: [String], isOpen: Bool) {
      self.admitted = admitted
      self.isOpen = isOpen
    }
    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      admitted = try list.decode([String].self)
      isOpen = try list.decode(Bool.self)
    }
  }

  let seed: Int
  let entries: [Item]
  let expected: Expected
}

func person(_ device: String) -> String { String(device.prefix { $0 != "." }) }

/// The entries of a history with real keys.
struct Staging {
  let history: History
  private let devices: [String: DeviceKeys]
  private let names: [DeviceID: String]
  private let kits: Set<String>
  private(set) var entries: [RosterEntry] = []
  /// The key that each `Next` hands out, flawed ones included.
  private(set) var keys: [(EpochID, EpochKey)] = []
  let household: HouseholdID

  init(_ history: History) throws {
    self.history = history
    var mentioned: Set<String> = []
    var kits: Set<String> = []
    for item in history.entries {
      let named = [item.author, item.device, item.by, item.to, item.kit?.name].compactMap { $0 }
      mentioned.formUnion(named + (item.recipients ?? []).filter { $0.contains(".") } + (item.removes ?? []))
      if let kit = item.kit?.name { kits.insert(kit) }
      if item.kit?.isKit == true, let device = item.device { kits.insert(device) }
    }
    mentioned.formUnion(mentioned.map { person($0) + ".1" })
    // Ids in the order of names, so that both readings rank alike.
    let ordered = mentioned.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    let made = Self.pool.prefix(ordered.count).sorted { $0.id < $1.id }
    devices = Dictionary(uniqueKeysWithValues: zip(ordered, made))
    names = Dictionary(uniqueKeysWithValues: zip(made.map(\.id), ordered))
    self.kits = kits
    household = Self.hash(history.entries[0].id)
    for item in history.entries { entries.append(try entry(item)) }
  }

  private static let pool: [DeviceKeys] = {
    var random = SeededRandom("histories")
    return (0..<80).map { _ in DeviceKeys(&random) }
  }()

  static func hash(_ id: String) -> Hash32 {
    let bytes = unhex(id) ?? []
    return Hash32(bytes + [UInt8](repeating: 0, count: 32 - bytes.count)) ?? .zero
  }

  static func name(_ hash: Hash32) -> String { LatchkeyEncoding.hex(hash.bytes.prefix(5)) }

  static func invite(_ id: String) -> InviteID { InviteID(Array(hash(id).bytes.prefix(16))) ?? .zero }

  private static func link(_ id: String) -> LinkKeys {
    var random = SeededRandom("link " + id)
    return InviteSecret(&random).keys
  }

  func key(_ id: String) -> EpochKey {
    var random = SeededRandom("epoch " + id)
    return EpochKey(&random)
  }

  func keys(_ name: String) throws -> DeviceKeys { try #require(devices[name]) }
  func id(_ name: String) throws -> DeviceID { try keys(name).id }

  private func founder(_ name: String) throws -> DeviceKeys { try keys(person(name) + ".1") }
  private func personID(_ name: String) throws -> PersonID { try founder(name).publicKeys.foundedPerson }

  private func certificate(_ name: String, by signer: String) throws -> Certificate {
    let request = Certificate(request: try keys(name), person: try personID(name), signer: try id(signer))
    return request.completed(by: try keys(signer)) ?? request
  }

  private func entry(_ item: History.Item) throws -> RosterEntry {
    RosterEntry(
      hash: Self.hash(item.id), origin: Origin(device: try id(item.author), incarnation: Incarnation(1)),
      sequence: item.seq, previous: item.prev.map(Self.hash), heads: item.heads.map(Self.hash).sorted(), hlc: 1,
      payload: try operation(item).payload)
  }

  private mutating func note(_ item: History.Item, _ key: EpochKey) { keys.append((Self.hash(item.id), key)) }

  private func operation(_ item: History.Item) throws -> RosterOperation {
    switch item.kind {
    case "Genesis":
      var random = SeededRandom("genesis")
      let kit = try item.kit?.name.map { try certificate($0, by: item.author) }
      return .genesis(
        try #require(
          Genesis(
            householdName: "", isPrivate: false, chain: CertificateChain(first: try keys(item.author)), personName: "",
            deviceName: "", key: key(item.id), kit: kit, random: &random)))
    case "Zone":
      return .zone(ZoneID(raw: Bytes16(high: 1, low: item.zone ?? 0)), name: "")
    case "AddDevice":
      let device = try #require(item.device)
      return .addDevice(
        try certificate(device, by: try #require(item.by)), name: device, isKit: item.kit?.isKit == true)
    case "OpenInvite":
      let link = Self.link(item.id)
      let roles: [String: InviteRole] = ["reader": .reader, "member": .member, "owner": .owner]
      return .openInvite(
        OpenInvite(
          id: Self.invite(item.id), claimKey: link.claimKey.publicKey, boxKey: link.boxKey.publicKey,
          role: try #require(roles[item.role ?? ""]), expiry: 0, uses: item.uses ?? 1, confirm: item.confirm == true))
    case "RevokeInvite":
      return .revokeInvite(Self.invite(try #require(item.invite)))
    case "Admit":
      let device = try #require(item.device)
      let invite = try #require(item.invite)
      let claim = Claim(
        household: household, invite: Self.invite(invite), chain: CertificateChain(first: try keys(device)),
        personName: "", deviceName: "", epoch: household,
        kit: try item.kit?.name.map { try certificate($0, by: device) },
        claimKey: Self.link(invite).claimKey, device: try keys(device))
      return .admit(claim: claim.bytes)
    case "Leave":
      return .leave
    case "Seal":
      let epoch = try #require(item.epoch)
      let to = try #require(item.to)
      let sealed = key(item.wrong == true ? "wrong" : epoch)
      return .seal(
        try id(to), epoch: Self.hash(epoch), try #require(sealed.seal(to: try keys(to).publicKeys.box)))
    default:
      return .next(try next(item))
    }
  }

  private func next(_ item: History.Item) throws -> Next {
    let parents = (item.parents ?? []).map(Self.hash).sorted()
    if item.closed == true { return .closing(parents: parents) }
    let key = key(item.id)
    let recipients = try (item.recipients ?? []).map { name -> Next.Recipient in
      if !name.contains(".") {
        let seal = try #require(key.seal(to: Self.link(name).boxKey.publicKey))
        return .init(kind: .invite, id: Self.invite(name).bytes, seal: seal)
      }
      let seal = try #require(key.seal(to: try keys(name).publicKeys.box))
      return .init(kind: kits.contains(name) ? .kit : .device, id: try id(name).bytes, seal: seal)
    }
    .sorted {
      $0.kind == $1.kind ? $0.id.lexicographicallyPrecedes($1.id) : $0.kind.rawValue < $1.kind.rawValue
    }
    var random = SeededRandom("nonces " + item.id)
    let formers = Set(item.formers ?? []).union(item.flaw == "former" ? [history.entries[0].id] : [])
    let boxes = formers.map { former -> Next.Former in
      let isWrong = item.flaw == "former" && former == history.entries[0].id
      let box = KeyBox(
        self.key(isWrong ? "wrong" : former), of: Self.hash(former), under: key, random: &random)
      return .init(epoch: Self.hash(former), nonce: box.nonce, box: box.box)
    }
    let wrong = self.key("wrong")
    var sealed = recipients
    if item.flaw == "seal", let first = recipients.first {
      let kind = first.kind
      sealed[0] = .init(kind: kind, id: first.id, seal: try #require(wrong.seal(to: try founder("a.1").publicKeys.box)))
    }
    let roles: [String: Role] = ["reader": .reader, "member": .member, "owner": .owner]
    return Next(
      parents: parents, form: .moved,
      commitment: (item.flaw == "commitment" ? wrong : key).commitment(parents: parents), recipients: sealed,
      formers: boxes.sorted { $0.epoch < $1.epoch },
      removals: try (item.removes ?? []).map { .init(device: try id($0), limits: []) }.sorted { $0.device < $1.device },
      roles: try (item.roles ?? [:]).map {
        .init(person: try personID($0.key + ".1"), role: try #require(roles[$0.value]))
      }.sorted { $0.person < $1.person }, confirmed: try (item.confirms ?? []).map { try id($0) }.sorted(), store: nil)
  }

  /// All keys that `Next`s hand out, and the first epoch's.
  var allKeys: [(EpochID, EpochKey)] {
    history.entries.filter { $0.kind == "Genesis" || $0.kind == "Next" && $0.closed != true }
      .map { (Self.hash($0.id), key($0.id)) }
  }

  /// What the roster says, in the words of the second reading.
  func outcome(_ roster: Roster) throws -> History.Expected {
    let state = roster.state
    var out = History.Expected()
    for device in state.devices {
      let paper: UInt64 = device.isFoundingKit ? 2 : device.isKit ? 1 : 0
      out.devices[try #require(names[device.id])] = [
        .text("\(device.role)"), .number(device.enrolment), .number(paper),
      ]
    }
    out.removed = try state.limited.filter(\.isRemoved).map { try #require(names[$0.device]) }.sorted()
    out.leaving = try state.leaving.map { try #require(names[$0]) }.sorted()
    for invite in state.invites {
      out.invites[Self.name(invite.opened)] = History.Invite(
        admitted: try invite.admitted.map { try #require(names[$0]) }.sorted(), isOpen: invite.status(now: 0) == .open)
    }
    out.zones = state.zones.map { $0.id.raw.low }.sorted()
    out.void = state.void.map { Self.name($0.epoch) }.sorted()
    out.fallen = state.fallen.map(Self.name).sorted()
    out.ends = state.epochEnds.map(Self.name)
    out.current = state.currentEpoch.map(Self.name)
    out.closed = state.isClosed
    var ring = EpochRing(household: household)
    ring.walk(roster.entries)
    if case .held(let holds) = roster.upload(by: .zero, ring: ring) {
      for hold in holds {
        switch hold {
        case .strangers(let devices): out.strangers = try devices.map { try #require(names[$0]) }.sorted()
        case .closedInvites(let invites):
          out.closedInvites = history.entries.map(\.id).filter { invites.contains(Self.invite($0)) }.sorted()
        default: continue
        }
      }
    }
    out.refused = history.entries.map(\.id).filter {
      if case .refused? = roster.verdict(of: Self.hash($0)) { true } else { false }
    }.sorted()
    return out
  }
}

@Suite("Random rosters, and a second reading of the format")
struct HistoryTests {
  static let histories: [History] = {
    guard let data = try? Data(contentsOf: vectorFile("histories.json")),
      let list = try? JSONDecoder().decode([History].self, from: data)
    else { return [] }
    return list
  }()

  @Test("both readings agree about people, devices, invites, epochs and verdicts, in every delivery order")
  func agree() throws {
    #expect(Self.histories.count >= 60)
    var random = SeededRandom("orders")
    for history in Self.histories {
      let staging = try Staging(history)
      var inOrder = Roster(household: staging.household, evaluating: .everyEpoch)
      for entry in staging.entries { inOrder.add(entry) }
      for (epoch, key) in staging.allKeys { inOrder.learn(key, of: epoch) }
      let outcome = try staging.outcome(inOrder)
      if outcome != history.expected {
        Issue.record("seed \(history.seed): \(difference(outcome, history.expected))")
        continue
      }
      // The keys may come before, between or after the entries.
      var shuffled = Roster(household: staging.household, evaluating: .everyEpoch)
      var keys = random.shuffled(staging.allKeys)
      for entry in random.shuffled(staging.entries) {
        shuffled.add(entry)
        if random.number(below: 2) == 0, let (epoch, key) = keys.popLast() { shuffled.learn(key, of: epoch) }
      }
      for (epoch, key) in keys { shuffled.learn(key, of: epoch) }
      #expect(shuffled.state == inOrder.state, "seed \(history.seed)")
      #expect(shuffled.heads == inOrder.heads)
      for entry in staging.entries { #expect(shuffled.verdict(of: entry.hash) == inOrder.verdict(of: entry.hash)) }
    }
  }

  private func difference(_ a: History.Expected, _ b: History.Expected) -> String {
    var out: [String] = []
    for (one, two) in zip(Mirror(reflecting: a).children, Mirror(reflecting: b).children)
    where "\(one.value)" != "\(two.value)" {
      out.append("\(one.label ?? ""): \(one.value) but expected \(two.value)")
    }
    return out.joined(separator: "; ")
  }
}
