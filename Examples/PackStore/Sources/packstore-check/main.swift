import LatchkeyConformance
import LatchkeyStorage
import PackStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

// The whole proof of an adapter: every promise of the contract, through two connections. Ends with 1 if one is broken.
let path = CommandLine.arguments.dropFirst().first ?? "/tmp/example.pack"
var stores = StoreRegistry()
stores.registerPacks()
let registry = stores
let locator = try registry.locator("pack:\(path)", relativeTo: "")
_ = try await registry.open(locator, .create)
let report = await runConformance(ConformanceFactory(extent: .short) { try await registry.open(locator) })
print(report)
exit(report.passed ? 0 : 1)
