import LatchkeyHTTP
import LatchkeyStorage
import Testing

@testable import LatchkeyS3

@Suite("S3: URLs, profiles and variables")
struct S3ConfigurationTests {
  private func read(_ text: String, _ variables: [String: String] = [:], files: [String: String] = [:]) throws
    -> S3Configuration
  {
    var stores = StoreRegistry()
    stores.registerS3()
    return try S3Configuration(try stores.locator(text, relativeTo: ""), environment(variables, files))
  }

  private func environment(_ variables: [String: String], _ files: [String: String] = [:]) -> AWSEnvironment {
    AWSEnvironment(variable: { variables[$0] }, file: { files[$0] })
  }

  @Test("a bucket of Amazon's is addressed by its name in the host, in the region that the URL or the device names")
  func amazon() throws {
    let plain = try read("s3://home-bucket/a/b%20c")
    #expect(plain.url("k/x").text == "https://home-bucket.s3.us-east-1.amazonaws.com/k/x")
    #expect(plain.key("h/1") == "a/b c/h/1")
    #expect(plain.url(plain.key("h/1")).path == "/a/b%20c/h/1")
    #expect(plain.url(nil).text == "https://home-bucket.s3.us-east-1.amazonaws.com/")
    #expect(try read("s3://b?region=eu-west-1").url(nil).host == "b.s3.eu-west-1.amazonaws.com")
    #expect(try read("s3://b?region=cn-north-1").url(nil).host == "b.s3.cn-north-1.amazonaws.com.cn")
    #expect(try read("s3://b", ["AWS_REGION": "eu-central-1"]).region == "eu-central-1")
    #expect(try read("s3://b", ["AWS_DEFAULT_REGION": "x-1", "AWS_REGION": ""]).region == "x-1")
    #expect(try read("s3://b?region=eu-west-1", ["AWS_REGION": "eu-central-1"]).region == "eu-west-1")
    let config = ["/h/.aws/config": "[default]\nregion = d-1\n[profile p]\nregion=p-1\n"]
    #expect(try read("s3://b", ["HOME": "/h"], files: config).region == "d-1")
    #expect(try read("s3://b?profile=p", ["HOME": "/h"], files: config).region == "p-1")
  }

  @Test("a bucket with dots, an address or a loopback goes into the path, and so does what the URL says")
  func styles() throws {
    #expect(try read("s3://my.bucket").url("k").text == "https://s3.us-east-1.amazonaws.com/my.bucket/k")
    #expect(try read("s3://b?endpoint=http://127.0.0.1:9").url("k").text == "http://127.0.0.1:9/b/k")
    #expect(try read("s3://b?endpoint=https://[::1]:9/").url(nil).text == "https://[::1]:9/b")
    #expect(try read("s3://b?endpoint=https://h/s3/").url("k").text == "https://b.h/s3/k")
    #expect(try read("s3://b?endpoint=https://h/s3&path-style=1").url("k").text == "https://h/s3/b/k")
    #expect(try read("s3://b?endpoint=https://h&path-style").url(nil).text == "https://h/b")
    #expect(try read("s3://b?endpoint=http://localhost&path-style=0").url("k").text == "http://b.localhost/k")
  }

  @Test("what cannot be is refused, and the message says what to write")
  func refusals() throws {
    for (text, hint) in [
      ("s3://b?endpoint=http://store.lan", "endpoint=https"), ("s3://b?endpoint=store", "https://s3.example.org"),
      ("s3://b?endpoint=ftp://store", "https://"), ("s3://b?path-style=maybe", "1 or 0"),
      ("s3://b?ca=ca.pem", "whole path"),
      ("s3://host:9000/b", "endpoint="), ("s3://b?endpoint=http://store&insecure=1&sign-payload=0", "https"),
      ("s3://b?region=a/b", "region"), ("s3://b?proxy=socks", "http://HOST:PORT"),
    ] {
      let error = #expect(throws: StorageError.self) { _ = try read(text) }
      #expect(error?.cause == .config)
      #expect(error?.description.contains(hint) == true, "\(text): \(error.map { "\($0)" } ?? "")")
    }
    #expect(try read("s3://b?endpoint=http://store.lan&insecure=1").signsPayload)
    #expect(!(try read("s3://b?endpoint=https://store&sign-payload=0").signsPayload))
    #expect(!(try read("s3://b?endpoint=http://127.0.0.1:9&sign-payload=0").signsPayload))
    #expect(try read("s3://b?ca=/etc/ca.pem", ["AWS_CA_BUNDLE": "/x"]).http.caFile == "/etc/ca.pem")
    #expect(try read("s3://b", ["AWS_CA_BUNDLE": "/x"]).http.caFile == "/x")
    var stores = StoreRegistry()
    stores.registerS3()
    #expect(throws: LocatorError.self) { _ = try stores.locator("s3://b?access-key=x", relativeTo: "") }
    #expect(throws: LocatorError.self) { _ = try stores.locator("s3://b?endpoint=https://u:p@h", relativeTo: "") }
  }

  @Test("keys come from the profile of the URL, else the variables, else the device's profile")
  func credentials() throws {
    let file = """
      # comment
      [default]
      aws_access_key_id = D
      aws_secret_access_key = DS=/+
      ; [other]
      [other]
      aws_access_key_id=O
        nested = aws_access_key_id
      aws_secret_access_key=OS
      aws_session_token=OT
      [half]
      aws_access_key_id=H
      [role]
      role_arn=arn
      """
    let files = [
      "/h/.aws/credentials": file,
      "/h/.aws/config":
        "[profile inconfig]\naws_access_key_id=C\naws_secret_access_key=CS\n[default]\naws_access_key_id=no\n",
    ]
    let keys = ["HOME": "/h", "AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "ES"]
    func found(_ variables: [String: String], _ profile: String?) throws -> [String?] {
      let found = try environment(variables, files).credentials(profile: profile)
      return [found.accessKey, found.secretKey, found.sessionToken]
    }
    #expect(try found(keys, nil) == ["E", "ES", nil])
    #expect(try found(keys.merging(["AWS_SESSION_TOKEN": "T"]) { $1 }, nil) == ["E", "ES", "T"])
    #expect(try found(keys, "other") == ["O", "OS", "OT"])
    #expect(try found(["HOME": "/h"], nil) == ["D", "DS=/+", nil])
    #expect(try found(["HOME": "/h", "AWS_PROFILE": "other"], nil) == ["O", "OS", "OT"])
    #expect(try found(["HOME": "/h"], "inconfig") == ["C", "CS", nil])
    #expect(try found(["AWS_SHARED_CREDENTIALS_FILE": "/h/.aws/credentials"], nil) == ["D", "DS=/+", nil])

    for (variables, profile, hint) in [
      (["HOME": "/h"], "nobody", "profile nobody"), (["HOME": "/h"], "half", "profile half"),
      (["HOME": "/h"], "role", "role_arn"), (["AWS_ACCESS_KEY_ID": "E"], nil, "AWS_SECRET_ACCESS_KEY"),
      (["HOME": "/x"], nil, "/x/.aws/credentials"),
    ] as [([String: String], String?, String)] {
      let error = #expect(throws: StorageError.self) { _ = try found(variables, profile) }
      #expect(error?.cause == .unauthorized)
      #expect(error?.description.contains(hint) == true)
    }
  }
}
