public import LatchkeyStorage

extension StoreRegistry {
  /// Makes `s3://BUCKET/PREFIX?…` known.
  ///
  /// - Parameter environment: where keys and region come from besides the URL.
  public mutating func registerS3(_ environment: AWSEnvironment = AWSEnvironment()) {
    register(scheme: "s3", form: S3Configuration.form, options: S3Configuration.options) {
      locator, mode throws(StorageError) in
      let configuration = try S3Configuration(locator, environment)
      let profile = locator.option("profile")
      return try await S3Store.open(
        configuration, credentials: { () throws(StorageError) in try environment.credentials(profile: profile) }, mode)
    }
  }
}
