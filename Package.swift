// swift-tools-version: 6.2
import PackageDescription

/// Warnings are errors in CI (`scripts/test` passes `-warnings-as-errors`); Swift 6 mode everywhere.
let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

func room(_ name: String, _ path: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, path: path, swiftSettings: settings)
}

func claims(_ name: String, _ path: String, _ dependencies: [Target.Dependency], data: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, path: path, exclude: data, swiftSettings: settings)
}

let package = Package(
  name: "latchkey",
  products: [
    .library(name: "Latchkey", targets: ["Latchkey"]),
    // With the names of objects, which are of the format.
    .library(name: "LatchkeyStorage", targets: ["LatchkeyStorage", "LatchkeyEncoding"]),
    .library(name: "LatchkeyFolder", targets: ["LatchkeyFolder"]),
    .library(name: "LatchkeyS3", targets: ["LatchkeyS3", "LatchkeyHTTP"]),
    .library(name: "LatchkeyWebDAV", targets: ["LatchkeyWebDAV", "LatchkeyHTTP"]),
    .library(name: "LatchkeyMirror", targets: ["LatchkeyMirror"]),
    .library(name: "LatchkeyConformance", targets: ["LatchkeyConformance"]),
    .executable(name: "latchkey", targets: ["LatchkeyCommand"]),
    .executable(name: "latchkey-simulation", targets: ["LatchkeySimulation"]),
  ],
  targets: [
    // The system's C libraries.
    .systemLibrary(
      name: "CLatchkeySodium", path: "Sources/CSodium", pkgConfig: "libsodium",
      providers: [.apt(["libsodium-dev"]), .brew(["libsodium"])]),
    .systemLibrary(
      name: "CLatchkeySQLite", path: "Sources/CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "CLatchkeyZstd", path: "Sources/CZstd", pkgConfig: "libzstd",
      providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(
      name: "CLatchkeyCurl", path: "Sources/CCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),

    // Pure rooms: no clock, no randomness, no files.
    room("LatchkeyEncoding", "Sources/Encoding", ["CLatchkeySodium"]),
    room("LatchkeyRecords", "Sources/Records", ["LatchkeyEncoding"]),
    room("LatchkeyKeys", "Keys/Household", ["LatchkeyEncoding", "CLatchkeySodium"]),
    room("LatchkeyLog", "Sources/Log", ["LatchkeyEncoding", "LatchkeyKeys", "CLatchkeyZstd"]),
    room("LatchkeyEngine", "Sources/Engine", ["LatchkeyEncoding", "LatchkeyRecords", "LatchkeyKeys", "LatchkeyLog"]),

    // Rooms that touch the world.
    room("LatchkeyKeyring", "Keys/Keyring", ["LatchkeyEncoding", "LatchkeyKeys", "CLatchkeySodium"]),
    room("LatchkeySQLite", "Sources/SQLite", ["CLatchkeySQLite"]),
    room("LatchkeyTables", "Sources/Tables", ["LatchkeyEncoding", "LatchkeyRecords", "LatchkeySQLite"]),
    room("LatchkeyStorage", "Adapters/Storage", ["LatchkeyEncoding"]),
    room("LatchkeyFolder", "Adapters/Folder", ["LatchkeyStorage", "LatchkeyEncoding"]),
    room("LatchkeyHTTP", "Adapters/HTTP", ["LatchkeyStorage", "LatchkeyEncoding", "CLatchkeyCurl"]),
    room("LatchkeyS3", "Adapters/S3", ["LatchkeyHTTP", "LatchkeyStorage", "LatchkeyEncoding", "CLatchkeySodium"]),
    room("LatchkeyWebDAV", "Adapters/WebDAV", ["LatchkeyHTTP", "LatchkeyStorage", "LatchkeyEncoding"]),
    room("LatchkeyMirror", "Adapters/Mirror", ["LatchkeyStorage", "LatchkeyEncoding"]),
    room("LatchkeyConformance", "Adapters/Conformance", ["LatchkeyStorage", "LatchkeyEncoding"]),
    room(
      "Latchkey", "Sources/Latchkey",
      [
        "LatchkeyEncoding", "LatchkeyRecords", "LatchkeyKeys", "LatchkeyLog", "LatchkeyEngine",
        "LatchkeyKeyring", "LatchkeySQLite", "LatchkeyTables", "LatchkeyStorage", "LatchkeyMirror",
        "LatchkeyConformance",
      ]),
    .executableTarget(
      name: "LatchkeyCommand",
      dependencies: [
        "Latchkey", "LatchkeyFolder", "LatchkeyS3", "LatchkeyWebDAV", "LatchkeyStorage", "LatchkeyConformance",
        "LatchkeyEncoding", "LatchkeyKeyring", "LatchkeyKeys", "LatchkeyRecords",
        "LatchkeySQLite", "LatchkeyTables",
      ],
      path: "Sources/Command", swiftSettings: settings),

    // The simulated world: a program of its own, so that a seed can be run by hand.
    .executableTarget(
      name: "LatchkeySimulation",
      dependencies: [
        "Latchkey", "LatchkeyEncoding", "LatchkeyRecords", "LatchkeyKeys", "LatchkeyLog", "LatchkeyEngine",
        "LatchkeySQLite", "LatchkeyTables", "LatchkeyStorage",
      ],
      path: "Tests/Simulation", swiftSettings: settings),

    // Claims.
    claims("EncodingTests", "Tests/Encoding", ["LatchkeyEncoding"]),
    claims("RecordsTests", "Tests/Records", ["LatchkeyRecords", "LatchkeyEncoding"]),
    claims("KeysTests", "Tests/Keys", ["LatchkeyKeys", "LatchkeyEncoding"]),
    claims("KeyringTests", "Tests/Keyring", ["LatchkeyKeyring", "LatchkeyKeys", "LatchkeyEncoding"]),
    claims("LogTests", "Tests/Log", ["LatchkeyLog", "LatchkeyKeys", "LatchkeyEncoding"]),
    claims(
      "EngineTests", "Tests/Engine",
      ["LatchkeyEngine", "LatchkeyLog", "LatchkeyKeys", "LatchkeyRecords", "LatchkeyEncoding"]),
    claims("SQLiteTests", "Tests/SQLite", ["LatchkeySQLite"]),
    claims("TablesTests", "Tests/Tables", ["LatchkeyTables", "LatchkeySQLite", "LatchkeyRecords", "LatchkeyEncoding"]),
    claims("StorageTests", "Tests/Storage", ["LatchkeyStorage", "LatchkeyConformance", "LatchkeyEncoding"]),
    claims(
      "FolderTests", "Tests/Folder", ["LatchkeyFolder", "LatchkeyStorage", "LatchkeyConformance", "LatchkeyEncoding"]),
    // A server that misbehaves on demand, for the adapters that speak HTTP.
    room("LatchkeyScriptedServer", "Tests/ScriptedServer", []),
    claims(
      "HTTPTests", "Tests/HTTP", ["LatchkeyHTTP", "LatchkeyStorage", "LatchkeyEncoding", "LatchkeyScriptedServer"]),
    claims(
      "S3Tests", "Tests/S3",
      [
        "LatchkeyS3", "LatchkeyHTTP", "LatchkeyStorage", "LatchkeyEncoding", "LatchkeyConformance",
        "LatchkeyScriptedServer",
      ]),
    claims(
      "MirrorTests", "Tests/Mirror", ["LatchkeyMirror", "LatchkeyStorage", "LatchkeyConformance", "LatchkeyEncoding"]),
    claims(
      "WebDAVTests", "Tests/WebDAV",
      [
        "LatchkeyWebDAV", "LatchkeyHTTP", "LatchkeyStorage", "LatchkeyEncoding", "LatchkeyConformance",
        "LatchkeyScriptedServer",
      ]),
    // On servers that `scripts/test servers` starts.
    claims(
      "RealServersTests", "Tests/RealServers",
      [
        "Latchkey", "LatchkeySQLite", "LatchkeyS3", "LatchkeyWebDAV", "LatchkeyHTTP", "LatchkeyStorage",
        "LatchkeyEncoding", "LatchkeyConformance",
        "LatchkeyScriptedServer",
      ]),
    claims(
      "LatchkeyTests", "Tests/Latchkey",
      [
        "LatchkeyEncoding", "Latchkey", "LatchkeyKeys", "LatchkeyKeyring", "LatchkeyTables", "LatchkeyFolder",
        "LatchkeyStorage", "LatchkeySQLite",
      ]),
    // The numbered attacks on a household, and every byte of every kind of object.
    claims(
      "HostileStoreTests", "Tests/HostileStore",
      [
        "Latchkey", "LatchkeyEngine", "LatchkeyLog", "LatchkeyKeyring", "LatchkeyKeys", "LatchkeyRecords",
        "LatchkeyTables", "LatchkeySQLite", "LatchkeyStorage", "LatchkeyEncoding",
      ]),
    claims(
      "CommandTests", "Tests/Command",
      [
        "LatchkeyCommand", "Latchkey", "LatchkeyFolder", "LatchkeyStorage", "LatchkeyEncoding", "LatchkeyRecords",
        "LatchkeySQLite", "LatchkeyTables", "LatchkeyScriptedServer",
      ], data: ["Transcripts", "RealPrograms/book.py"]),
  ],
  swiftLanguageModes: [.v6]
)
