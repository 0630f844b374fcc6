// swift-tools-version: 6.2
import PackageDescription

// Measured against other programs by Benchmarks/run; not part of the library's build.
let package = Package(
  name: "Benchmarks",
  dependencies: [.package(name: "latchkey", path: "..")],
  targets: [
    .executableTarget(
      name: "store-benchmark",
      dependencies: [
        .product(name: "LatchkeyStorage", package: "latchkey"), .product(name: "LatchkeyS3", package: "latchkey"),
        .product(name: "LatchkeyWebDAV", package: "latchkey"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
