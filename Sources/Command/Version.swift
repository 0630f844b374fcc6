/// The version of the command and the library, which are released together.
let version = "0.1.0"
