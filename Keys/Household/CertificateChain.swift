public import LatchkeyEncoding

/// Why certificates do not show that a device belongs to a person.
public enum CertificateError: Error, Hashable, Sendable {
  /// None, or more than a person may have devices.
  case length
  /// The first is not the self-signed one that the person's id is made of.
  case notFounded
  /// One names another person.
  case otherPerson
  /// One is signed by a device that does not stand before it, or by nobody.
  case unknownSigner
  /// A signature is wrong.
  case forged
  /// A device stands twice.
  case repeated
}

/// The certificates from a person's first device to one of its devices, verified (format §2).
///
/// A value of this type exists only if every signature in it holds.
public struct CertificateChain: Hashable, Sendable {
  /// 1 to 16; the last is the device in question.
  public let certificates: [Certificate]
  /// The device in question.
  public let keys: DevicePublicKeys
  public let person: PersonID

  /// A person's first device.
  public init(first keys: DeviceKeys) {
    let certificate = Certificate(first: keys)
    certificates = [certificate]
    self.keys = certificate.keys
    person = certificate.person
  }

  /// Verifies certificates that came from elsewhere.
  public init(verifying certificates: [Certificate]) throws(CertificateError) {
    guard let first = certificates.first, let last = certificates.last,
      certificates.count <= Limits.devicesPerPerson
    else { throw .length }
    guard first.isFirst else { throw .notFounded }
    var known: [DeviceID: DevicePublicKeys] = [first.keys.id: first.keys]
    for certificate in certificates.dropFirst() {
      guard certificate.person == first.person else { throw .otherPerson }
      guard known[certificate.keys.id] == nil else { throw .repeated }
      guard let signer = known[certificate.signer] else { throw .unknownSigner }
      guard certificate.isSigned(by: signer) else { throw .forged }
      known[certificate.keys.id] = certificate.keys
    }
    self.certificates = certificates
    keys = last.keys
    person = first.person
  }

  /// This chain and one device more.
  public func adding(_ certificate: Certificate) throws(CertificateError) -> CertificateChain {
    try CertificateChain(verifying: certificates + [certificate])
  }

  /// Reads and verifies what ``encoded`` wrote.
  public static func decode(_ bytes: [UInt8]) throws(FormatError) -> CertificateChain {
    let certificates = try decoding { () throws(CBORError) in
      var reader = CBORReader(bytes)
      let list = try readCertificates(&reader)
      try reader.finish()
      return list
    }
    do { return try CertificateChain(verifying: certificates) } catch {
      throw .malformed(.unexpected("certificate chain that verifies"))
    }
  }

  public var encoded: [UInt8] {
    var writer = CBORWriter()
    write(certificates: certificates, to: &writer)
    return writer.bytes
  }
}

func readCertificates(_ reader: inout CBORReader) throws(CBORError) -> [Certificate] {
  var out: [Certificate] = []
  for _ in 0..<(try reader.array(max: Limits.devicesPerPerson)) { out.append(try Certificate.read(&reader)) }
  return out
}

func write(certificates: [Certificate], to writer: inout CBORWriter) {
  writer.array(certificates.count)
  for certificate in certificates { certificate.write(to: &writer) }
}
