internal import LatchkeyHTTP
public import LatchkeyStorage

extension StoreRegistry {
  /// Makes `webdav+https://HOST/PATH` known, and `webdav+http` for this machine and where it is insisted on.
  ///
  /// - Parameter environment: where user and password come from, unless they are given.
  public mutating func registerWebDAV(_ environment: WebDAVEnvironment = WebDAVEnvironment()) {
    for scheme in [WebDAVConfiguration.secureScheme, WebDAVConfiguration.plainScheme] {
      let isSecure = scheme == WebDAVConfiguration.secureScheme
      register(
        scheme: scheme, form: isSecure ? WebDAVConfiguration.form : "\(scheme)://HOST/PATH?insecure=1",
        options: WebDAVConfiguration.options, credential: HTTPCredential.names
      ) { locator, mode, credential throws(StorageError) in
        let configuration = try WebDAVConfiguration(locator)
        if let credential {
          let user = try HTTPCredential(credential)
          return try await WebDAVStore.open(configuration, credential: { () throws(StorageError) in user }, mode)
        }
        let server = configuration.root
        return try await WebDAVStore.open(
          configuration, credential: { () throws(StorageError) in try environment.credential(for: server) }, mode)
      }
    }
  }
}

extension HTTPCredential {
  /// What a credential may hold.
  static let names = ["user", "password"]

  /// - Throws: ``StorageError`` `.unauthorized` that names what is missing.
  init(_ credential: StoreCredential) throws(StorageError) {
    guard let user = credential["user"], let password = credential["password"] else {
      throw StorageError(
        .unauthorized, .open, detail: "the credential needs lines \"user = …\" and \"password = …\"")
    }
    self.init(user: user, password: password)
  }
}
