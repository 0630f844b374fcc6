#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The command: reads the command line, runs the verb, answers, and ends with the verb's exit code.
@main
enum Main {
  static func main() async {
    let words = Array(CommandLine.arguments.dropFirst())
    let parsed = Result { () throws(CommandError) in try Parser(verbs: Verbs.all).parse(words) }
    switch parsed {
    case .success((let globals, let request)): await run(request, globals)
    case .failure(let error):
      let answer = Answer(isJSON: Parser.asksForJSON(words), isQuiet: false, isASCII: false)
      end(answer, .failure(error))
    }
  }

  private static func run(_ request: Request, _ globals: Globals) async -> Never {
    let answer = Answer(isJSON: globals.json, isQuiet: globals.quiet, isASCII: globals.ascii)
    switch request {
    case .version:
      end(
        answer,
        .success(Outcome("latchkey \(version)", .text("latchkey \(version)\n"), data: ["version": .text(version)])))
    case .help(let path): end(answer, .success(HelpPage(path: path).outcome))
    case .run(let runner, let arguments): await run(runner, arguments, globals, answer)
    }
  }

  private static func run(
    _ runner: @escaping Runner, _ arguments: ParsedArguments, _ globals: Globals, _ answer: Answer
  ) async -> Never {
    let progress = Progress(isQuiet: globals.quiet, ascii: globals.ascii)
    // Nothing begins before a signal finds somebody who listens.
    let (ready, begin) = AsyncStream<Never>.makeStream()
    let work = Task { () async -> Result<Outcome, CommandError> in
      for await _ in ready {}
      do throws(CommandError) {
        let context = Context(
          globals: globals, home: try HomeDirectories(option: globals.home),
          terminal: Terminal(globals: globals, progress: progress))
        return .success(try await runner(arguments, context))
      } catch {
        return .failure(error)
      }
    }
    let interrupt = Interrupt(
      cancel: { work.cancel() },
      end: {
        Echo.restore()
        progress.finish()
        if Interrupt.isAsking.load(ordering: .relaxed) { Descriptor.error.write("\n") }
        end(answer, .failure(.interrupted))
      })
    interrupt.whenReady { begin.finish() }
    let result = await work.value
    progress.finish()
    // The sources must live until here.
    withExtendedLifetime(interrupt) { end(answer, result) }
  }

  /// Answers and ends the process. Whoever comes second waits for the end the first one brings.
  private static func end(_ answer: Answer, _ result: Result<Outcome, CommandError>) -> Never {
    guard let code = answer.give(result) else {
      while true { pause() }
    }
    exit(code.rawValue)
  }
}
