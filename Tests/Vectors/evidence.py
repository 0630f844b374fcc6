"""Verifies what `latchkey fsck --evidence FILE` wrote: docs/format.md section 13. Needs no key, and sees no row."""
import json

from latchkeyformat import Damaged, decode, fields, h, need, verifies, versioned


class Statement:
    """What a device has signed, and which entries of its log it says there are: {sequence: hash}."""

    def __init__(self, item, sign, device):
        purpose, self.body = item["purpose"], bytes.fromhex(item["body"])
        need(purpose in ("entry", "head"), "a purpose")
        need(verifies(sign, purpose, self.body, bytes.fromhex(item["signature"])), "a signature that is not the device's")
        body = versioned(decode(self.body), purpose)
        if purpose == "entry":
            self.zone, author, incarnation, sequence, previous = fields(body[1:6], 16, 16, 8, int, None, what="entry")
            self.says = {sequence: h(32, "entry", self.body)}
            if previous is not None:
                self.says[sequence - 1] = previous
        else:
            self.zone, author, incarnation = fields(body[2:5], 16, 16, 8, what="head")
            self.says = {body[9]: body[10]}
        need(author == device, "another device's statement")
        self.log = (self.zone, incarnation)


def verify(path):
    """Lines that say what the file proves; Damaged if something in it proves nothing."""
    with open(path, encoding="utf-8") as file:
        given = json.load(file)
    need(isinstance(given, dict) and given.get("latchkey-evidence") == 1, "not a file of evidence of this version")
    lines = []
    for item in given["contradictions"]:
        sign, box = bytes.fromhex(item["sign"]), bytes.fromhex(item["box"])
        device = h(16, "device", sign, box)
        one, two = (Statement(x, sign, device) for x in item["statements"])
        need(one.log == two.log, "statements about different logs")
        parted = [at for at in sorted(one.says) if at in two.says and one.says[at] != two.says[at]]
        need(parted, "statements that do not contradict each other")
        lines.append(f"device {device.hex()} signed two histories of zone {one.zone.hex()} that part at entry {parted[0]}")
    need(lines, "no contradiction")
    return lines
