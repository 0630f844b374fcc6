public import LatchkeyKeys

extension HouseholdState {
  /// Puts into the outbox what a recovery kit finds this household by, with its words alone (format §8, *Kit*): behind the
  /// entries that brought the kit in. Keep the state before it is sent.
  ///
  /// - Parameters:
  ///   - kit: the public keys on the paper.
  ///   - place: where the kit's blobs lie.
  ///   - random: a nonce.
  /// - Throws: ``EngineError/noKey(_:)``, or ``EngineError/damagedState(_:)`` for keys that nothing can be sealed to.
  public mutating func enqueueBlob(
    of kit: DevicePublicKeys, at place: KitPlace, random: inout some RandomSource
  ) throws(EngineError) {
    let keys = try currentKeys()
    guard let seal = keys.key.seal(to: kit.box), let genesis = roster.state.genesis else {
      throw .damagedState("a kit that nothing can be sealed to")
    }
    let blob = KitBlob(
      household: household, epoch: keys.epoch, seal: seal, rosterHeads: roster.heads,
      householdName: genesis.householdName, isPrivate: genesis.isPrivate)
    let below = blob.name(place)
    do {
      enqueueApart(
        RosterObject(
          name: place.objectName(below),
          bytes: try Envelope.seal(
            blob.encoded, at: place.place(below), key: place.key, nonce: EnvelopeNonce(&random))))
    } catch { throw .tooLarge }
  }
}
