// swift-tools-version: 6.2
import PackageDescription

// An adapter of one's own, in a package of its own: see docs/adapters.md.
let package = Package(
  name: "PackStore",
  products: [.library(name: "PackStore", targets: ["PackStore"])],
  dependencies: [.package(name: "latchkey", path: "../..")],
  targets: [
    .target(name: "PackStore", dependencies: [.product(name: "LatchkeyStorage", package: "latchkey")]),
    .executableTarget(
      name: "packstore-check",
      dependencies: ["PackStore", .product(name: "LatchkeyConformance", package: "latchkey")]),
  ],
  swiftLanguageModes: [.v6]
)
