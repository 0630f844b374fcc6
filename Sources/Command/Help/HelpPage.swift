/// What `--help` and `latchkey help` answer.
struct HelpPage {
  private let page: Page

  /// - Parameter path: a verb and its action; the whole command if it is empty.
  init(path: [Verb]) { page = Page(verb: path) }

  init(topic: Topic) { page = Page(title: topic.title, sections: [Page.Section(topic.title, topic.blocks)]) }

  var outcome: Outcome {
    Outcome("Help for \(page.title).", .text(page.text), data: ["text": .text(page.text)])
  }
}
