import Latchkey

/// What `invite` and `device add` answer: the link on standard output, or in a file, and nowhere else.
struct InviteAnswer {
  /// Makes an invite, with a place for its link ready before.
  ///
  /// - Parameters:
  ///   - out: the new file for the link; nil shows it.
  ///   - qr: makes a QR code of the link, to be shown too; nil for none.
  ///   - joining: the command that uses the invite, without where the link is.
  static func make(
    out: String?, qr: QREncoder? = nil, joining: String, _ context: Context,
    _ open: () async throws(LatchkeyError) -> Invite
  ) async throws(CommandError) -> Outcome {
    var file: SmallFile.Reserved?
    if let out { file = try SmallFile.Reserved(out) }
    let invite: Invite
    do { invite = try await open() } catch {
      file?.discard()
      throw CommandError(error)
    }
    try file?.fill(invite.link + "\n")
    var answer = InviteAnswer(invite: invite, file: out, joining: joining)
    answer.code = qr?.code(of: invite.link)
    answer.lacksCode = qr != nil && answer.code == nil
    answer.isASCII = context.globals.ascii
    return answer.outcome
  }

  let invite: Invite
  let file: String?
  let joining: String
  var code: QRCode?
  /// A code was asked for, and the link is too long for one.
  var lacksCode = false
  var isASCII = false

  private var isOwnDevice: Bool { invite.role == "mine" }

  private var outcome: Outcome {
    var members = [
      JSON.Member(name: "id", value: .text(invite.id)),
      file.map { JSON.Member(name: "file", value: .text($0)) }
        ?? JSON.Member(name: "link", value: .text(invite.link)),
      JSON.Member(name: "household", value: .text(invite.household)),
      JSON.Member(name: "role", value: .text(invite.role)),
      JSON.Member(name: "expires", value: .moment(invite.expires)),
    ]
    if let code { members.append(JSON.Member(name: "qr", value: .array(code.lines(ascii: true).map(JSON.text)))) }
    var outcome = Outcome(message, body, data: .object(members))
    outcome.notes = [
      Line(
        .warning,
        isOwnDevice
          ? "Whoever has this link becomes you: keep it to yourself. It is good once, until \(Moment(invite.expires).shown)."
          : "Whoever has this link can join \(invite.household) as \(invite.role), once, until "
            + "\(Moment(invite.expires).shown): send it over a channel you trust.")
    ]
    if lacksCode { outcome.notes.append(Line(.warning, "The link is too long for a QR code.")) }
    outcome.next = ["\(joining) --invite-file \(file?.quotedForShell ?? "FILE")   (on the other device)"]
    return outcome
  }

  private var message: String {
    "An invite to \(isOwnDevice ? "your devices" : invite.household) was made"
      + (file.map { " and written to \($0)" } ?? "") + "."
  }

  private var body: Outcome.Body {
    let style = Style(for: .output, ascii: isASCII)
    let shown = code?.shown(ascii: isASCII, coloured: style.isColoured) ?? ""
    if file == nil { return .text(invite.link + "\n" + shown) }
    return code == nil ? .lines([Line(.done, message)]) : .text(shown)
  }
}
