internal import LatchkeyEncoding
internal import LatchkeyKeyring
internal import LatchkeyKeys
internal import LatchkeyStorage

/// What lets this device into a household, whichever way it came.
struct Invitation {
  let blob: InviteBlob
  /// Signs the claim.
  let claimKey: SigningKey
  /// Opens the epoch's key.
  let boxKey: BoxKey
  /// The link's, to be kept until somebody has let this device in; nil where the invite was sent to the device's own keys.
  let secret: InviteSecret?
  /// Who must have opened it; nil for a link, which anybody may have handed on.
  let inviter: PersonID?

  init(_ blob: InviteBlob, of link: InviteSecret) {
    self.blob = blob
    (claimKey, boxKey) = (link.keys.claimKey, link.keys.boxKey)
    secret = link
    inviter = nil
  }

  init(_ message: InboxMessage, to device: DeviceKeys) {
    blob = message.blob
    (claimKey, boxKey) = (device.signing, device.box)
    secret = nil
    inviter = message.inviter.person
  }

  var joining: HouseholdKeys.Joining { HouseholdKeys.Joining(invite: blob.invite, secret: secret) }

  /// Whether these are the terms that this invitation is of: others may have copied its id.
  func isOpened(by invite: RosterState.Invite) -> Bool {
    invite.terms.id == blob.invite && invite.terms.claimKey == claimKey.publicKey && invite.terms.role == blob.role
      && (inviter == nil || invite.inviter == inviter)
  }
}

/// Where a device joins: checked and agreed to before anything is asked of the invite.
struct JoinPlace {
  /// The absolute path of the file for the rows; nil for none.
  let database: String?
  /// Whether an earlier call made the file already.
  let isFilled: Bool
  let access: StoreAccess
  /// What the store asks for, to be kept once the household is joined; nil where it asks for nothing, or it is kept already.
  let credential: StoreCredential?
}
