public import LatchkeyStorage

extension StoreRegistry {
  /// Makes `s3://BUCKET/PREFIX?…` known.
  ///
  /// - Parameter environment: where keys and region come from besides the URL, unless keys are given.
  public mutating func registerS3(_ environment: AWSEnvironment = AWSEnvironment()) {
    register(
      scheme: "s3", form: S3Configuration.form, options: S3Configuration.options, credential: S3Credentials.names
    ) { locator, mode, credential throws(StorageError) in
      let configuration = try S3Configuration(locator, environment)
      if let credential {
        let keys = try S3Credentials(credential)
        return try await S3Store.open(configuration, credentials: { () throws(StorageError) in keys }, mode)
      }
      let profile = locator.option("profile")
      return try await S3Store.open(
        configuration, credentials: { () throws(StorageError) in try environment.credentials(profile: profile) }, mode)
    }
  }
}
