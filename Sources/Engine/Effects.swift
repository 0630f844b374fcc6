public import LatchkeyEncoding
public import LatchkeyLog

/// What the engine asks the world to do. One effect is under way at a time; the next event answers it.
///
/// An effect that fails for a reason the engine cannot act on (no network, disk full) ends the round: whoever performs
/// it throws, and the next round begins from what was kept. So every effect may be the last one, and what must survive is
/// kept before the effect that depends on it.
public enum Effect: Sendable {
  /// Read whole objects; absent ones are left out of the answer. They may be fetched at the same time.
  case get([ObjectName])
  /// Everything below a prefix that ends with `/`.
  case list(String)
  /// Create an object. Success means it is durable with exactly these bytes.
  case put(ObjectName, [UInt8])
  /// The same, for an object of the database's outbox, under this name in the store.
  case send(ObjectName, OutboxItem)
  /// Delete; absent is success.
  case delete([ObjectName])
  /// Make the household's state durable, beside the keyring.
  case keep(HouseholdState)
  /// One transaction on the attached database.
  case database(DatabaseRequest)
  /// The round is over.
  case finish(RoundReport)
}

/// What answers an effect.
public enum Event: Sendable {
  case start
  case got([ObjectName: [UInt8]])
  case listed([ObjectName])
  /// Answers ``Effect/put(_:_:)`` and ``Effect/send(_:_:)``.
  case put
  /// Answers them too: the store holds other bytes under that name.
  case collided
  case deleted
  case kept
  case database(DatabaseReply)
}

/// One transaction of the attached database. Whoever performs it stamps what was captured before it merges anything.
public enum DatabaseRequest: Sendable {
  /// What the database knows of its zone, after its log has gone on into the household's present epoch if it `enters`: what the store has not
  /// confirmed is repeated there, as it was signed.
  case load(enters: Bool)
  /// Merge groups of one log, in order, and advance the belief of its author: one transaction, both or neither.
  case apply(groups: [LogGroup], origin: Origin, author: Belief.Author)
  /// Stamp what was captured, seal it, put it in the outbox. Repeated while there is more. `isComplete`: every log that the store
  /// shows was read to its end, so that a file that comes into the zone with rows of its own can be compared with it.
  case seal(isComplete: Bool)
  /// Objects that wait to be sent, in order, by their names below the zone's prefix.
  case outbox
  /// The store has confirmed an object.
  case acknowledge(OutboxItem)
  /// This file's log was gone on with elsewhere (a restored backup, a copy): go on under a new incarnation, and publish again whatever
  /// the file holds. Answered by ``DatabaseReply/loaded(belief:own:)``.
  case renew
  /// The store has lost this log's newest head, and nothing else of it: seal another. Answered by ``DatabaseReply/loaded(belief:own:)``.
  case announce
  /// The store has lost entries of this log: go on as after ``renew``.
  case republish
  /// Publish again what this file holds of a log beyond what counts of it since its author was removed (format §8, *Limits*).
  case carry(Origin)
  /// What the database amounts to now, to compare with what others say of themselves.
  case facts
  /// Epochs that were left were looked through.
  case probed([EpochID])
  /// Own heads that may be deleted from the store.
  case supersededHeads
  /// They were deleted.
  case forgetHeads([ObjectName])
}

/// An object that waits in the database's outbox.
public struct OutboxItem: Hashable, Sendable {
  public let id: Int64
  /// Below the zone's prefix.
  public let name: ObjectName
  public init(id: Int64, name: ObjectName) { (self.id, self.name) = (id, name) }
}

public enum DatabaseReply: Sendable {
  /// What is believed, and the own log, empty if this file has written nothing yet.
  case loaded(belief: Belief, own: OwnLog)
  /// How many rows came in, and what stopped the log before its end.
  case applied(rows: Int, refused: Finding?)
  /// How far every log is merged, the own one included, and what the rows come to.
  case facts(ZoneFacts)
  /// How many rows were sealed, and whether more wait.
  case sealed(rows: Int, released: Int, more: Bool)
  case outbox([OutboxItem])
  /// How many rows that object made safe.
  case acknowledged(rows: Int)
  case superseded([ObjectName])
  case done
}
