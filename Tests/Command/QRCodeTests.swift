import Foundation
import Testing

@testable import LatchkeyCommand

@Suite struct QRCodeTests {
  /// Three modules: a black corner, and a black row at the bottom.
  private let code = QRCode(
    width: 3,
    modules: [
      true, false, false,
      false, false, false,
      true, true, true,
    ])

  @Test("half a character is a module, with a border of four, and what is white is drawn")
  func halfBlocks() {
    #expect(
      code.lines(ascii: false) == [
        "███████████", "███████████", "████▄██████", "████▄▄▄████", "███████████", "▀▀▀▀▀▀▀▀▀▀▀",
      ])
  }

  @Test("without blocks it is two characters a module")
  func plain() {
    let lines = code.lines(ascii: true)
    #expect(lines.count == 11 && lines.allSatisfy { $0.count == 22 })
    let white = String(repeating: "##", count: 11)
    #expect(lines[3] == white)
    #expect(lines[4] == "########  ############")
    #expect(lines[6] == "########      ########")
  }

  @Test("on a terminal with colours it is black and white")
  func colours() {
    let lines = code.shown(ascii: false, coloured: true).split(separator: "\n")
    #expect(lines.count == 6 && lines.allSatisfy { $0.hasPrefix("\u{1B}[97;40m") && $0.hasSuffix("\u{1B}[0m") })
    #expect(!code.shown(ascii: false, coloured: false).contains("\u{1B}"))
  }

  @Test("without the library nothing is made, and the package is named")
  func missing() throws {
    do throws(CommandError) {
      _ = try QREncoder(["libqrencode-that-is-nowhere.so"])
      Issue.record("there is such a library")
    } catch {
      #expect(error.code == "qr-unavailable" && error.message.contains("libqrencode4"))
    }
  }

  @Test("invite --qr shows the link's code where the library is, and changes nothing where it is not")
  func invite() throws {
    let world = try World(.shared)
    let isInstalled = (try? QREncoder()) != nil
    let before = try world.files()
    let (reply, exit) = try world.ask("invite --home ana --qr")
    guard isInstalled else {
      #expect(exit == 1 && reply.code == "qr-unavailable")
      #expect(try world.files() == before)
      return
    }
    let lines = try #require(reply.data["qr"] as? [String])
    // A square with its border, and the three corners that every code has.
    #expect(lines.count * 2 == lines[0].count && lines.count > 29)
    let corner = String(repeating: " ", count: 14)
    #expect(lines[4].dropFirst(8).hasPrefix(corner) && lines[4].dropLast(8).hasSuffix(corner))
    #expect(lines[lines.count - 5].dropFirst(8).hasPrefix(corner))
    let shown = try world.shell("latchkey invite --home ana --qr 2> /dev/null")
    #expect(shown.hasPrefix("latchkey://join#") && shown.contains("▀"))
    let plain = try world.shell("latchkey invite --home ana --qr --ascii --out i.txt 2> /dev/null")
    #expect(plain.hasPrefix("####") && !plain.contains("latchkey://"))
  }
}
