/// Lets one at a time through for each name; the others wait, first come, first served.
actor Turns {
  private var waiting: [String: [(ticket: Int, turn: CheckedContinuation<Bool, Never>)]] = [:]
  private var lastTicket = 0

  /// Waits for the turn. False if the task was cancelled first; then there is nothing to give back.
  func take(_ name: String) async -> Bool {
    if Task.isCancelled { return false }
    guard waiting[name] != nil else {
      waiting[name] = []
      return true
    }
    lastTicket += 1
    let ticket = lastTicket
    return await withTaskCancellationHandler {
      await withCheckedContinuation { turn in
        // Cancelled before it stood in the queue: nobody would find it there.
        if Task.isCancelled { turn.resume(returning: false) } else { waiting[name]?.append((ticket, turn)) }
      }
    } onCancel: {
      Task { await self.forget(ticket, name) }
    }
  }

  func giveBack(_ name: String) {
    if waiting[name]?.isEmpty == false {
      waiting[name]?.removeFirst().turn.resume(returning: true)
    } else {
      waiting[name] = nil
    }
  }

  private func forget(_ ticket: Int, _ name: String) {
    guard let index = waiting[name]?.firstIndex(where: { $0.ticket == ticket }) else { return }
    waiting[name]?.remove(at: index).turn.resume(returning: false)
  }
}
