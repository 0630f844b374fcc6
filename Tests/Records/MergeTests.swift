import LatchkeyEncoding
import LatchkeyRecords
import Testing

@Suite("Merging")
struct MergeTests {
  @Test("merging is commutative, associative and idempotent, whatever the states", arguments: 0..<8)
  func joinLaws(seed: UInt64) {
    var random = Generator(seed: seed)
    for _ in 0..<600 {
      let a = RecordState(random.entries(12))
      let b = RecordState(random.entries(12))
      let c = RecordState(random.entries(12))
      #expect(a.merging(b) == b.merging(a))
      #expect(a.merging(b).merging(c) == a.merging(b.merging(c)))
      #expect(a.merging(a) == a)
      #expect(a.merging(b).merging(a) == a.merging(b))
      #expect(a.merging(.empty) == a && RecordState.empty.merging(a) == a)
    }
  }

  @Test("any batching, order and repetition of the same writes gives the same state", arguments: 0..<8)
  func batching(seed: UInt64) {
    var random = Generator(seed: 100 + seed)
    for _ in 0..<300 {
      let writes = random.entries(25)
      let whole = RecordState(writes)
      var state = RecordState.empty
      var rest = (writes + writes.filter { _ in random.chance(3) }).shuffled(using: &random)[...]
      while !rest.isEmpty {
        let batch = rest.prefix(1 + random.below(5))
        rest = rest.dropFirst(batch.count)
        let arrived = RecordState(Array(batch))
        state = random.chance(2) ? state.merging(arrived) : arrived.merging(state)
      }
      #expect(state == whole)
    }
  }

  @Test("a state is in order, without duplicates, and holds nothing void", arguments: 0..<4)
  func normalForm(seed: UInt64) {
    var random = Generator(seed: 200 + seed)
    for _ in 0..<500 {
      let state = RecordState(random.entries(25))
      for (a, b) in zip(state.registers, state.registers.dropFirst()) { #expect(a.register < b.register) }
      let floor = max(state.newestBorn?.hlc ?? .zero, state.newestTombstone?.hlc ?? .zero)
      for entry in state.registers {
        #expect(state[entry.register] == entry)
        if case .cell = entry.value { #expect(entry.stamp.hlc >= floor) }
        if case .additive(let contribution) = entry.value, let born = state.newestBorn {
          #expect(contribution.born >= born)
        }
      }
    }
  }

  @Test("of one register the newest stamp wins, and of equal stamps always the same value")
  func newestWins() {
    let old = Stamp(hlc: at(1), origin: origin(9), tie: 9)
    let new = Stamp(hlc: at(2), origin: origin(1), tie: 0)
    let a = RecordState([RegisterEntry(.cell("x"), old, .cell(.integer(1)))])
    let b = RecordState([RegisterEntry(.cell("x"), new, .cell(.integer(2)))])
    #expect(a.merging(b).cell("x") == .integer(2))
    let c = RecordState([RegisterEntry(.cell("x"), new, .cell(.integer(3)))])
    #expect(b.merging(c) == c.merging(b))
    #expect(b.merging(c).registers.count == 1)
  }

  @Test("different fields of one row both survive")
  func fields() {
    let base = RecordState([
      RegisterEntry(.born, Stamp(hlc: at(1), origin: origin(1), tie: 1), .life(nil)),
      RegisterEntry(.cell("x"), Stamp(hlc: at(1), origin: origin(1), tie: 1), .cell(.integer(0))),
      RegisterEntry(.cell("y"), Stamp(hlc: at(1), origin: origin(1), tie: 1), .cell(.integer(0))),
    ])
    let mine = base.merging(
      RecordState([RegisterEntry(.cell("x"), Stamp(hlc: at(2), origin: origin(1), tie: 2), .cell(.integer(1)))]))
    let theirs = base.merging(
      RecordState([RegisterEntry(.cell("y"), Stamp(hlc: at(2), origin: origin(2), tie: 3), .cell(.integer(2)))]))
    let both = mine.merging(theirs)
    #expect(both.cell("x") == .integer(1) && both.cell("y") == .integer(2))
  }

  @Test("an edit older or newer than a delete does not bring the row back; a re-insert does, with its own cells only")
  func deletes() {
    func stamp(_ ms: Int64) -> Stamp { Stamp(hlc: at(ms), origin: origin(1), tie: UInt64(ms)) }
    let row = RecordState([
      RegisterEntry(.born, stamp(1), .life(nil)), RegisterEntry(.cell("x"), stamp(1), .cell(.integer(1))),
      RegisterEntry(.cell("y"), stamp(1), .cell(.integer(1))),
    ])
    let deleted = row.merging(RecordState([RegisterEntry(.tombstone, stamp(5), .life(nil))]))
    #expect(row.isLive && !deleted.isLive)
    #expect(deleted.cells.isEmpty)
    for ms in [3, 9] as [Int64] {
      let edited = deleted.merging(RecordState([RegisterEntry(.cell("x"), stamp(ms), .cell(.integer(2)))]))
      #expect(!edited.isLive)
    }
    let again = deleted.merging(
      RecordState([
        RegisterEntry(.born, stamp(7), .life(nil)), RegisterEntry(.cell("x"), stamp(7), .cell(.integer(3))),
      ]))
    #expect(again.isLive)
    #expect(again.cell("x") == .integer(3) && again.cell("y") == nil)
    let late = again.merging(RecordState([RegisterEntry(.cell("y"), stamp(6), .cell(.integer(4)))]))
    #expect(late == again)
  }

  @Test("a delete and an insert of equal stamps: not live")
  func equalLifeAndDeath() {
    let stamp = Stamp(hlc: at(1), origin: origin(1), tie: 1)
    #expect(
      !RecordState([RegisterEntry(.born, stamp, .life(nil)), RegisterEntry(.tombstone, stamp, .life(nil))]).isLive)
  }

  @Test(
    "a filled-in cell belongs to the insert of its time: it shows beside it, loses to real writes, and goes with it")
  func filledIn() {
    func stamp(_ ms: Int64, filledIn: Bool = false, _ device: UInt64 = 1) -> Stamp {
      Stamp(hlc: at(ms), isFilledIn: filledIn, origin: origin(device), tie: UInt64(ms))
    }
    let filled = RecordState([RegisterEntry(.cell("new"), stamp(5, filledIn: true, 2), .cell(.integer(0)))])
    let row = RecordState([RegisterEntry(.born, stamp(5), .life(nil))])
    #expect(row.merging(filled).cell("new") == .integer(0))
    let real = RecordState([RegisterEntry(.cell("new"), stamp(5, 1), .cell(.integer(7)))])
    #expect(row.merging(filled).merging(real).cell("new") == .integer(7))
    let reborn = RecordState([RegisterEntry(.born, stamp(6), .life(nil))])
    #expect(row.merging(filled).merging(reborn).cell("new") == nil)
    let older = RecordState([RegisterEntry(.cell("new"), stamp(4, filledIn: true, 2), .cell(.integer(0)))])
    #expect(row.merging(older).cell("new") == nil)
  }

  @Test("contributions of all origins add up; those to an earlier life are void")
  func additive() {
    func stamp(_ ms: Int64, _ device: UInt64 = 1) -> Stamp { Stamp(hlc: at(ms), origin: origin(device), tie: 1) }
    func contribution(_ device: UInt64, _ born: Stamp, _ ms: Int64, _ number: Value) -> RegisterEntry {
      RegisterEntry(
        .additive(column: "n", origin(device)), stamp(ms, device), .additive(Contribution(born: born, number: number)))
    }
    let row = RecordState([
      RegisterEntry(.born, stamp(1), .life(nil)), contribution(1, stamp(1), 1, .integer(10)),
      contribution(2, stamp(1), 3, .integer(-4)),
    ])
    #expect(row.sum(of: "n") == .integer(6))
    #expect(row.additiveColumns == ["n"])
    let more = row.merging(RecordState([contribution(2, stamp(1), 4, .integer(-5))]))
    #expect(more.sum(of: "n") == .integer(5))
    let reborn = more.merging(
      RecordState([RegisterEntry(.born, stamp(5), .life(nil)), contribution(1, stamp(5), 5, .integer(1))]))
    #expect(reborn.sum(of: "n") == .integer(1))
    // Counted from the old life, written later.
    #expect(reborn.merging(RecordState([contribution(2, stamp(1), 9, .integer(100))])) == reborn)
    #expect(row.sum(of: "m") == nil)
    let large = row.merging(RecordState([contribution(3, stamp(1), 2, .integer(.max))]))
    #expect(large.sum(of: "n") == .real(Double(Int64.max)))
  }

  @Test("names of columns are compared byte by byte")
  func canonicalEquivalence() {
    #expect("\u{fc}" == "u\u{308}")
    #expect(Register.cell("\u{fc}") != .cell("u\u{308}"))
    #expect(Register.hide(column: "\u{fc}") != .hide(column: "u\u{308}"))
    #expect(Register.additive(column: "\u{fc}", origin(1)) != .additive(column: "u\u{308}", origin(1)))
  }

  @Test("registers are ordered as their keys' bytes")
  func registerOrder() {
    var random = Generator(seed: 7)
    for _ in 0..<8000 {
      let a = random.register()
      let b = random.register()
      #expect((a < b) == a.encoded.lexicographicallyPrecedes(b.encoded))
      #expect((a == b) == (a.encoded == b.encoded))
    }
  }

  @Test("stamps are ordered by time, then real, then origin, then tie")
  func stampOrder() {
    let ascending = [
      Stamp(hlc: at(1), isFilledIn: true, origin: origin(9), tie: 9),
      Stamp(hlc: at(1), origin: origin(1, 1), tie: 5), Stamp(hlc: at(1), origin: origin(1, 1), tie: 6),
      Stamp(hlc: at(1), origin: origin(1, 2), tie: 0), Stamp(hlc: at(1), origin: origin(2, 1), tie: 0),
      Stamp(hlc: at(1, 1), isFilledIn: true, origin: origin(0), tie: 0),
      Stamp(hlc: at(2), origin: origin(0), tie: 0),
    ]
    for i in ascending.indices { for j in ascending.indices { #expect((ascending[i] < ascending[j]) == (i < j)) } }
  }
}
