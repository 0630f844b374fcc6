public import LatchkeyStorage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What this device has set up for S3: the `AWS_*` variables, and the files that the tools of Amazon Web Services share.
///
/// Keys are looked for in this order, and the first place that has them is used alone:
/// 1. the profile that the store's URL names (`profile=`), if it names one;
/// 2. `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, for temporary keys, `AWS_SESSION_TOKEN`;
/// 3. the profile in `AWS_PROFILE`, or `default`.
///
/// A profile is a section of `~/.aws/credentials` (`AWS_SHARED_CREDENTIALS_FILE`) or `~/.aws/config`
/// (`AWS_CONFIG_FILE`). Endpoints are not taken from here: a store's URL goes to other people, and has to mean the same
/// place everywhere.
///
/// Source: the "AWS SDKs and Tools Reference Guide", Shared config and credentials files.
public struct AWSEnvironment: Sendable {
  private let variable: @Sendable (String) -> String?
  private let file: @Sendable (String) -> String?

  /// - Parameters:
  ///   - variable: an environment variable's value; nil if it is not set.
  ///   - file: a file's text; nil if there is none.
  public init(
    variable: @escaping @Sendable (String) -> String? = AWSEnvironment.environmentVariable,
    file: @escaping @Sendable (String) -> String? = AWSEnvironment.textOfFile
  ) {
    self.variable = variable
    self.file = file
  }

  /// The keys.
  ///
  /// - Throws: ``StorageError``; `.unauthorized` that says where they were looked for.
  public func credentials(profile: String?) throws(StorageError) -> S3Credentials {
    if profile == nil, let accessKey = value("AWS_ACCESS_KEY_ID") {
      guard let secretKey = value("AWS_SECRET_ACCESS_KEY") else {
        throw missing("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not; set both")
      }
      return S3Credentials(accessKey: accessKey, secretKey: secretKey, sessionToken: value("AWS_SESSION_TOKEN"))
    }
    let name = profile ?? value("AWS_PROFILE") ?? "default"
    let entries = entries(of: name)
    if let accessKey = entries["aws_access_key_id"], let secretKey = entries["aws_secret_access_key"] {
      return S3Credentials(accessKey: accessKey, secretKey: secretKey, sessionToken: entries["aws_session_token"])
    }
    let indirect = ["role_arn", "credential_process", "sso_session", "sso_start_url", "web_identity_token_file"]
    if let kind = indirect.first(where: { entries[$0] != nil }) {
      throw missing(
        "profile \(name) gets its keys by \(kind), which this program does not do: "
          + "put the keys into AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN")
    }
    if profile != nil || value("AWS_PROFILE") != nil {
      throw missing("there are no keys in profile \(name) of \(credentialsFile) or \(configFile)")
    }
    throw missing("no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them into \(credentialsFile)")
  }

  /// The region set up for a profile; nil if none is.
  public func region(profile: String?) -> String? {
    value("AWS_REGION") ?? value("AWS_DEFAULT_REGION")
      ?? entries(of: profile ?? value("AWS_PROFILE") ?? "default")["region"]
  }

  /// The file of certificate authorities in `AWS_CA_BUNDLE`.
  public var caFile: String? { value("AWS_CA_BUNDLE") }

  private var credentialsFile: String { value("AWS_SHARED_CREDENTIALS_FILE") ?? "\(home)/.aws/credentials" }
  private var configFile: String { value("AWS_CONFIG_FILE") ?? "\(home)/.aws/config" }
  private var home: String { value("HOME") ?? "" }

  /// Empty counts as not set.
  private func value(_ name: String) -> String? {
    guard let value = variable(name), !value.isEmpty else { return nil }
    return value
  }

  private func missing(_ detail: String) -> StorageError { StorageError(.unauthorized, .open, detail: detail) }

  /// A profile's entries; those of the credentials file come first.
  private func entries(of profile: String) -> [String: String] {
    let sections = profile == "default" ? ["default", "profile default"] : ["profile \(profile)"]
    var entries = file(configFile).map { Self.section(sections, of: $0) } ?? [:]
    if let text = file(credentialsFile) {
      entries.merge(Self.section([profile], of: text)) { _, first in first }
    }
    return entries
  }

  /// The entries below the headings `[name]`. Indented lines belong to the entry above them and are passed over.
  private static func section(_ names: [String], of text: String) -> [String: String] {
    var entries: [String: String] = [:]
    var isInside = false
    for line in text.split(whereSeparator: \.isNewline) {
      let trimmed = trim(line)
      if trimmed.isEmpty || trimmed.hasPrefix("#") || trimmed.hasPrefix(";") { continue }
      if trimmed.hasPrefix("[") {
        let name = trimmed.dropFirst().prefix { $0 != "]" }.split(whereSeparator: \.isWhitespace)
        isInside = names.contains(name.joined(separator: " "))
      } else if isInside, line.first?.isWhitespace == false, let equals = trimmed.firstIndex(of: "=") {
        entries[trim(trimmed[..<equals]).lowercased()] = trim(trimmed[trimmed.index(after: equals)...])
      }
    }
    return entries.filter { !$0.value.isEmpty }
  }

  private static func trim(_ text: some StringProtocol) -> String {
    var rest = Substring(text).drop(while: \.isWhitespace)
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return String(rest)
  }

  /// The process's own environment.
  public static func environmentVariable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  /// A file of up to a mebibyte; nil where there is none, or it cannot be read.
  public static func textOfFile(_ path: String) -> String? {
    guard let stream = fopen(path, "r") else { return nil }
    defer { fclose(stream) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, stream)
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}
