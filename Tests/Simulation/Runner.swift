import LatchkeySQLite

/// Runs one seed, and makes a failure smaller.
struct Runner {
  let seed: UInt64
  let clocks: [VirtualClock]

  /// Runs the seed twice.
  ///
  /// - Returns: what failed, in either run or in that they differ.
  func runTwice(isVerbose: Bool, _ marks: inout Marks) -> Violation? {
    let first = run(Omissions(), isVerbose: isVerbose)
    marks.add(first.marks)
    if let violation = first.violation { return violation }
    if isVerbose { print("second run") }
    let second = run(Omissions(), isChecking: false, isVerbose: isVerbose)
    if second.trace != first.trace || second.violation != nil {
      return Violation(.determinism, "two runs differ: an order leaks into what is written")
    }
    return nil
  }

  private func run(_ omissions: Omissions, isChecking: Bool = true, isVerbose: Bool) -> (
    violation: Violation?, trace: UInt64, marks: Marks
  ) {
    do {
      let world = try World(
        seed: seed, omissions: omissions, clocks: clocks, isChecking: isChecking, isVerbose: isVerbose)
      do {
        try world.run()
        return (nil, world.signature ?? 0, world.marks)
      } catch let violation as Violation {
        return (violation, world.trace.hash, world.marks)
      } catch {
        return (Violation(.defect, "\(error)"), world.trace.hash, world.marks)
      }
    } catch {
      return (Violation(.defect, "before the first step: \(error)"), 0, Marks())
    }
  }

  /// Leaves out devices, then faults, then steps, as long as the same invariant fails; prints what is left.
  ///
  /// - Returns: what the smallest run found, in words.
  func shrink(_ violation: Violation) -> String {
    var smallest = Omissions()
    var last = violation
    func stillFails(_ omissions: Omissions) -> Bool {
      guard let found = run(omissions, isVerbose: false).violation, found.invariant == violation.invariant else {
        return false
      }
      last = found
      smallest = omissions
      return true
    }
    let swarm = Swarm(seed: seed, isCalm: false)
    for devices in 1..<swarm.devices {
      var fewer = smallest
      fewer.devices = devices
      if stillFails(fewer) { break }
    }
    var calm = smallest
    calm.isCalm = true
    if stillFails(calm) {}
    var size = swarm.steps / 2
    while size >= 1 {
      var at = 0
      while at < swarm.steps {
        var fewer = smallest
        fewer.steps.formUnion(at..<min(at + size, swarm.steps))
        if fewer != smallest { _ = stillFails(fewer) }
        at += size
      }
      size /= 2
    }
    _ = run(smallest, isVerbose: true)
    let steps = (0..<swarm.steps).filter { !smallest.steps.contains($0) }
    return
      "shrunk to \(smallest.devices ?? swarm.devices) devices, \(smallest.isCalm ? "no faults" : "faults"), steps \(steps): \(last.invariant.rawValue): \(last.detail)"
  }
}
