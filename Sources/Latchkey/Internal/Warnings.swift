internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyStorage

extension Warning {
  static let readerWrites = Warning(
    code: "reader-kept-here",
    message:
      "You are a reader of this household: what you change stays on this device, and does not count for the others.")

  static let wroteAsReader = Warning(
    code: "reader-kept-here",
    message:
      "What you changed in this file while you were a reader is here only. It can be published now, or taken back: latchkey status says how."
  )

  init(_ finding: Finding) {
    switch finding {
    case .damaged(let object, let reason):
      self.init(code: "damaged", message: "Object \(object) was set aside: \(reason). Other devices' data went on.")
    case .newer(let object, let reason):
      self.init(
        code: "newer",
        message: "Object \(object) was written by a newer version (\(reason)) and waits for an update of latchkey.")
    case .unknownAuthor(let device, _):
      self.init(
        code: "unknown-author",
        message: "Device \(device.short) has written, but nobody has admitted it yet: its data waits.")
    case .rollback(let origin, let accepted, let shown):
      self.init(
        code: "rollback",
        message:
          "The store shows less of device \(origin.device.short)'s log than before (\(shown) of \(accepted)): it was rolled back. Rows were kept."
      )
    case .fork(let origin, let sequence):
      self.init(
        code: "fork",
        message:
          "Device \(origin.device.short) has written two different entries at position \(sequence): keys were copied, or an old copy is in use. Its log was stopped here."
      )
    case .rosterBehind(let origin):
      self.init(
        code: "roster-behind",
        message: "Device \(origin.device.short) cites roster entries that the store does not show yet: its data waits.")
    case .missing(let object, let origin):
      self.init(
        code: "missing",
        message: "Object \(object) of device \(origin.device.short)'s log is not in the store: that log waits.")
    case .withheld(let origin, let accepted, let cited, let by):
      self.init(
        code: "withheld",
        message:
          "Device \(by.short) says that device \(origin.device.short) has written up to entry \(cited); for more than a day the store has shown "
          + "entries up to \(accepted) only: \(accepted + 1)–\(cited) are withheld, late, or never were. Unproven, says \(by.short)."
      )
    case .divergence(let origin):
      self.init(
        code: "divergence",
        message:
          "Device \(origin.device.short) has merged exactly what this one has, and holds other rows: one of the two is damaged, or not honest. Compare them: latchkey counts DB, there and here."
      )
    case .notMine(let origin):
      self.init(
        code: "not-mine",
        message:
          "The store holds entries under this device's name (\(origin.device.short)) that this copy did not write. If a file or latchkey's folder was restored from a backup or copied, that is why, and it goes on as a new log. If not, somebody has copied the keys: revoke this device on another one."
      )
    case .unreadable(let origin, let sequence, let reason, let isNewer):
      self.init(
        code: isNewer ? "newer" : "unreadable",
        message: isNewer
          ? "Device \(origin.device.short) writes with a newer version (from entry \(sequence) on): its data waits for an update of latchkey."
          : "Entry \(sequence) of device \(origin.device.short) does not follow the format (\(reason)): its log waits.")
    case .notAuthorised(let origin, _):
      self.init(
        code: "reader-wrote", message: "Device \(origin.device.short) is a reader's; what it wrote does not count.")
    }
  }

  init(_ request: ClaimRequest) {
    let id = String(request.claim.device.id.description.prefix(8))
    let why =
      switch request.reason {
      case .words:
        "compare the ten words first: latchkey requests list, then latchkey requests approve \(id)"
      case .rivals:
        "more than one device used that invite, so one of them is not who was meant: compare the words of the right one (latchkey requests list), or withdraw the invite and make a new one"
      case .rights: "it takes an owner to decide"
      }
    self.init(code: "claim-waits", message: "\(request.who) wants to join: \(why).")
  }

  init(_ alarm: RosterState.Alarm) {
    switch alarm {
    case .overused(let invite, let devices):
      self.init(
        code: "invite-overused",
        message:
          "An invite for fewer was used by \(devices.count) devices (invite \(invite.short)): check who is in the household."
      )
    case .fork(let origin, let sequence, _):
      self.init(
        code: "roster-fork",
        message:
          "Device \(origin.device.short) has signed two different roster entries at position \(sequence): keys were copied."
      )
    }
  }
}

extension Warning {
  init(_ flawed: RosterState.Flawed) {
    self.init(
      code: "epoch-flawed",
      message:
        "Device \(flawed.author.short) has begun an epoch \(flawed.epoch.short) whose keys are not the same for everybody: it counts for "
        + "nothing, and nothing is written there. Whoever did that may have wanted to split the household."
    )
  }
}

extension LatchkeyError {
  /// This person, or only this device of it, is not in the household any more.
  ///
  /// - Parameters:
  ///   - decision: the id of what waits to be decided about the files.
  ///   - personStays: whether the person has other devices in it.
  init(removedFrom household: String, decision: String, personStays: Bool) {
    self.init(
      .membership, "removed",
      personStays
        ? "This device was revoked: it is not in the household \(household) any more, but you are. The rows in its files stay, with what was changed here since; nothing of that is sent, and nothing new is received."
        : "You are not in the household \(household) any more. The rows in your files stay, with what was changed here since; nothing of that "
          + "is sent, and nothing new is received.",
      next: ["latchkey decide \(decision) keep", "latchkey decide \(decision) drop"]
        + (personStays
          ? ["latchkey forget, here; latchkey device add on another device of yours; then latchkey join"]
          : ["ask an owner for a new invite, and join with a new identity (another --home DIR)"]))
  }
}

extension UploadHold {
  /// What a person is told; nil for what is told otherwise.
  var warning: Warning? {
    switch self {
    case .newer, .incomplete, .notEnrolled: nil
    case .closed:
      Warning(code: "household-closed", message: "An owner has ended the household: nothing is sent any more.")
    case .noKey(let epoch):
      Warning(
        code: "no-epoch-key",
        message:
          "This device was not given the key of the household's epoch \(epoch.short) yet: what is written here waits until another device has synced."
      )
    case .unproven, .strangers, .closedInvites:
      Warning(
        code: "outbox-held",
        message:
          "Somebody who must not read on still has the household's present key: what is written here waits until a member's device has begun a new epoch."
      )
    }
  }
}

extension SyncReport {
  mutating func note(_ round: RoundReport) {
    rounds += 1
    sent += round.sent
    received += round.received
    hasSetAside = hasSetAside || round.hasSetAside
    var seen: [Warning] = warnings
    func warn(_ warning: Warning) {
      if !seen.contains(warning) { seen.append(warning) }
    }
    for finding in round.findings { warn(Warning(finding)) }
    for admission in round.admitted {
      warn(
        Warning(
          code: "admitted",
          message: admission.isOwnDevice
            ? "\(admission.who) is a device of yours now. Its screen shows: \(admission.words). If it does not, somebody else used the link: latchkey device revoke."
            : "\(admission.who) was admitted."))
    }
    for request in round.requests { warn(Warning(request)) }
    if !round.isRemoved {
      for hold in round.holds {
        if let warning = hold.warning, !round.isProvisional { warn(warning) }
      }
      if !round.unjudged.isEmpty {
        warn(
          Warning(
            code: "epoch-unproven",
            message:
              "A member has begun a new epoch, and the store does not show what it builds on: nothing is sent until it does, or a day has passed."
          ))
      }
    }
    if round.isLeftBehind {
      warn(
        Warning(
          code: "left-behind",
          message:
            "The household has gone on in an epoch that this device was not given the key of, and no other device was heard since: what is written here may reach nobody. Ask an owner whether this device is in it (latchkey members list, there), or for a new invite."
        ))
    }
    for alarm in round.alarms { warn(Warning(alarm)) }
    for flawed in round.flawed { warn(Warning(flawed)) }
    for claim in round.refusedClaims { warn(Warning(code: "claim-refused", message: "\(claim).")) }
    if round.isProvisional {
      warn(
        Warning(
          code: "provisional",
          message:
            "Nobody has admitted this device yet: what it writes counts once one of the household's devices has synced."
        ))
    }
    warnings = seen
  }

  mutating func add(_ counts: RequestCounts.Snapshot) {
    requests.put += counts.puts
    requests.get += counts.gets
    requests.list += counts.lists
    requests.head += counts.heads
    requests.delete += counts.deletes
    bytesUp += counts.bytesUp
    bytesDown += counts.bytesDown
  }
}
