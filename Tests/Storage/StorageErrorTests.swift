import LatchkeyEncoding
import LatchkeyStorage
import Testing

@Suite struct StorageErrorTests {
  private let causes: [StorageError.Cause] = [
    .notFound, .storeMissing, .alreadyExists, .conflict, .unauthorized, .forbidden, .readOnly, .rateLimited(after: nil),
    .unavailable, .timeout, .truncated, .quotaExceeded, .tooLarge, .clockSkew, .tls, .config, .protocolViolation,
    .unsupported, .cancelled, .invalidRange, .invalidArgument,
  ]

  @Test("every cause has a word of its own, a reason and a next step")
  func words() {
    #expect(Set(causes.map { StorageError($0, .get).code }).count == causes.count)
    for cause in causes {
      let error = StorageError(cause, .get)
      #expect(!error.why.isEmpty && error.next.hasSuffix("."))
    }
  }

  @Test("the sentence says what, why and what next")
  func sentence() throws {
    let error = StorageError(.quotaExceeded, .put, try name("p/h/1"), detail: "fsync: No space left on device")
    #expect(
      error.description
        == "Object p/h/1 could not be written: the store is full (fsync: No space left on device). "
        + "Free some space there, then sync again; nothing is lost.")
    #expect(
      StorageError(.storeMissing, .list, prefix: "").description
        == "The store could not be listed: the store is not there. "
        + "Check that the disk is connected, the folder mounted and the address right; nothing is taken for deleted.")
  }
}
