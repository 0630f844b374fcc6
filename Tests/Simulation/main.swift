import Glibc
import LatchkeyEncoding
import LatchkeySQLite

// The simulated world of Latchkey, from the command line:
//
//   latchkey-simulation --seeds N [--seed S] [--bug NAME] [--verbose] [--shrink] [--all] [--saved]
//
// Exit 0: every seed held, and every situation was reached. 1: the last line reproduces the failure. 64: wrong arguments.
exit(SimulationCommand(CommandLine.arguments).run())
