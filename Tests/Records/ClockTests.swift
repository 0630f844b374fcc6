import LatchkeyRecords
import Testing

@Suite("Clock")
struct ClockTests {
  @Test("an HLC is 48 bits of milliseconds and 16 of counter")
  func layout() {
    #expect(HLC(milliseconds: 1, counter: 2).rawValue == 0x1_0002)
    #expect(HLC(milliseconds: 0x1234_5678_9abc, counter: 0xdef0).rawValue == 0x1234_5678_9abc_def0)
    #expect(at(5, 7).milliseconds == 5 && at(5, 7).counter == 7)
    #expect(at(-5) == .zero)
    #expect(at(.max).milliseconds == 1 << 48 - 1)
    #expect(at(5, .max).next == at(6, 0))
  }

  @Test("readings rise, whatever the edits' times")
  func rises() {
    var random = Generator(seed: 1)
    var clock = Clock()
    var last = HLC.zero
    for _ in 0..<5000 {
      if random.chance(4) { clock.saw(HLC(milliseconds: Int64(random.below(1000)), counter: UInt16(random.below(9)))) }
      let reading = clock.tick(editedAt: Int64(random.below(1000)))
      #expect(reading > last && reading == clock.last)
      last = reading
    }
  }

  @Test("an edit is dated when it was made if nothing later is known, else just after that")
  func dated() {
    var clock = Clock(last: at(100, 3))
    #expect(clock.tick(editedAt: 500) == at(500))
    #expect(clock.tick(editedAt: 200) == at(500, 1))
    clock.saw(at(300))
    #expect(clock.last == at(500, 1))
    clock.saw(at(900, 9))
    #expect(clock.tick(editedAt: 900) == at(900, 10))
  }

  @Test("a reading is ahead from ten minutes on, judged by its milliseconds")
  func ahead() {
    #expect(!Clock.isAhead(at(600_100, .max), now: 100))
    #expect(Clock.isAhead(at(600_101), now: 100))
    #expect(!Clock.isAhead(at(.max), now: .max))
    #expect(Clock.isAhead(at(1), now: -600_000))
  }
}
