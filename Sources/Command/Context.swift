/// What a verb works with besides its arguments.
struct Context: Sendable {
  let globals: Globals
  let home: HomeDirectories
  let terminal: Terminal
}
