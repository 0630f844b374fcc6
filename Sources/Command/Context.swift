import Latchkey
import LatchkeyFolder
import LatchkeyKeyring
import LatchkeyS3
import LatchkeyStorage
import LatchkeyWebDAV

/// What a verb works with besides its arguments.
struct Context: Sendable {
  let globals: Globals
  let home: HomeDirectories
  let terminal: Terminal
  /// The library, on this device's keys and state.
  let library: Home

  init(globals: Globals, home: HomeDirectories, terminal: Terminal) {
    self.globals = globals
    self.home = home
    self.terminal = terminal
    var stores = StoreRegistry()
    stores.registerFolders()
    stores.registerS3()
    stores.registerWebDAV()
    let keyring = FileKeyring(home: home.state) {
      do throws(CommandError) { return try terminal.passphrase() } catch { throw Unsaid(description: error.message) }
    }
    library = Home(directory: home.state, stores: stores, keyring: keyring)
  }

  /// Why a passphrase could not be read, as the keyring hands it on.
  private struct Unsaid: Error, CustomStringConvertible {
    let description: String
  }

  /// For verbs whose effect cannot be told without having it.
  func refuseDryRun(_ verb: String, _ why: String) throws(CommandError) {
    guard globals.dryRun else { return }
    throw .usage("no-dry-run", "\"latchkey \(verb)\" cannot say beforehand what it would do: \(why).", next: [])
  }
}
