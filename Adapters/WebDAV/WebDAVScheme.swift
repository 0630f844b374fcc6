public import LatchkeyStorage

extension StoreRegistry {
  /// Makes `webdav+https://HOST/PATH` known, and `webdav+http` for this machine and where it is insisted on.
  ///
  /// - Parameter environment: where user and password come from.
  public mutating func registerWebDAV(_ environment: WebDAVEnvironment = WebDAVEnvironment()) {
    for scheme in [WebDAVConfiguration.secureScheme, WebDAVConfiguration.plainScheme] {
      let isSecure = scheme == WebDAVConfiguration.secureScheme
      register(
        scheme: scheme, form: isSecure ? WebDAVConfiguration.form : "\(scheme)://HOST/PATH?insecure=1",
        options: WebDAVConfiguration.options
      ) { locator, mode throws(StorageError) in
        let configuration = try WebDAVConfiguration(locator)
        let server = configuration.root
        return try await WebDAVStore.open(
          configuration, credential: { () throws(StorageError) in try environment.credential(for: server) }, mode)
      }
    }
  }
}
