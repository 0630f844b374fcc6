#!/usr/bin/env python3
"""Reads a household's rows from a folder store: a second implementation of reading, written from docs/format.md.

    reader.py DIR (--kit FILE | --key-json FILE) [--household NAME|ID] [--zone NAME|ID] [--ascii | --digest]
    reader.py --evidence FILE

Prints what `latchkey export` prints for a database of that zone (its lines: `latchkey help records`). FILE holds 24 words, or
{"household": hex, "epoch": hex, "key": hex}, to which "device" and "box" (its X25519 secret key) may be added: with them epochs that
began later are found, too, as they are from a kit. With --digest the zone's digest is printed instead of rows.
With --evidence it verifies what `latchkey fsck --evidence` wrote, without any key or store, and prints what it proves.
Whatever is set aside is told on standard error.
Ends with 0; 3 printed, but something was set aside; 11 no store; 14 a key or words that open nothing; 16 damage; 17 newer; 64 usage.
Needs PyNaCl and zstandard (Tests/Vectors/requirements.txt).
"""
import argparse
import base64
import json
import os
import struct
import sys
import time
import uuid

from nacl import bindings as sodium

import evidence
from latchkeyformat import (
    INT64, ROSTER, Damaged, Entry, Epoch, Head, Kit, Newer, Tag, decode, encode, fields, h, is_name, need, segment_entries, sharded, versioned)
from readroster import Roster


class Store:
    """The objects in a folder (section 3). What does not follow the grammar of names is not ours."""

    def __init__(self, folder):
        self.folder, self.names = folder, set()
        for path, _, files in os.walk(folder):
            for file in files:
                full = os.path.join(path, file)
                name = os.path.relpath(full, folder).replace(os.sep, "/")
                if is_name(name) and os.path.isfile(full) and not os.path.islink(full):
                    self.names.add(name)

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def below(self, prefix, kind):
        """Names below a prefix, of one kind."""
        start = f"{prefix}/{kind}/"
        return sorted(name[len(prefix) + 1:] for name in self.names if name.startswith(start))

    def check_marker(self):
        need("latchkey-store" in self.names, "there is no marker: not a store")
        marker = decode(self.read("latchkey-store"))
        need(isinstance(marker, list) and marker[:1] == ["latchkey-store"], "the marker is not one")
        if marker[1:2] != [1]:
            raise Newer("the store's marker")
        fields(marker, str, int, 16, what="marker")


class Findings:
    """What was set aside, and why (section 10)."""

    def __init__(self):
        self.count, self.damaged, self.newer, self.told = 0, False, False, set()

    def add(self, what, why):
        if (what, str(why)) in self.told:
            return
        self.told.add((what, str(why)))
        self.count += 1
        self.damaged |= isinstance(why, Damaged)
        self.newer |= isinstance(why, Newer)
        print(f"set aside: {what}: {why}", file=sys.stderr)


# ---- logs (sections 6, 7, 10) ---------------------------------------------------------------------------------------
class Part:
    """What one epoch holds of a log, as its newest head tells: the head and all entries that it reaches."""

    def __init__(self, name, head, entries):
        self.name, self.head, self.entries = name, head, entries


def read_parts(store, epoch, zone, findings):
    """The parts of all logs in one epoch of a zone. Signatures are not checked yet."""
    prefix, newest = epoch.prefix(zone), {}
    for name in store.below(prefix, "h"):
        tag, _, number = name.rpartition("-")
        newest[tag] = max(newest.get(tag, ""), number)
    for tag, number in sorted(newest.items()):
        at = name = f"{tag}-{number}"
        try:
            head = Head(epoch.open(store.read(f"{prefix}/{name}"), zone, name))
            need((head.household, head.epoch, head.zone) == (epoch.household, epoch.id, zone)
                 and epoch.head(zone, *head.origin, head.counter) == name, "a head that belongs elsewhere")
            if head.base is not None:
                raise Newer("a log with a base")
            entries = []
            for index in range(head.first_segment, head.last_segment + 1) if head.last_segment else ():
                at = epoch.segment(zone, *head.origin, index)
                need(f"{prefix}/{at}" in store.names, "a segment that is not there")
                content = epoch.open(store.read(f"{prefix}/{at}"), zone, at)
                entries += segment_entries(content, *head.origin, zone, index)
            at = name
            need(not head.last_segment or entries[-1].sequence == head.in_segments, "segments that end elsewhere")
            need([e.sequence for e in head.tail] == list(range(head.in_segments + 1, head.last + 1)), "a tail's sequence")
            entries += head.tail
            need(all(e.origin == head.origin and e.zone == zone for e in entries), "an entry that belongs elsewhere")
            yield Part(f"{prefix}/{name}", head, entries)
        except (Damaged, Newer) as problem:
            findings.add(f"{prefix}/{at}", problem)


def read_logs(store, epochs, zone, identities, findings, copies=()):
    """Origin -> the entries of its log over all epochs, chained and signed, as far as that holds.

    What no head reaches may lie in copies: an epoch's part of a roster log may begin after them.
    """
    found = {}
    for epoch in epochs:
        for part in read_parts(store, epoch, zone, findings):
            found.setdefault(part.head.origin, []).append(part)
    logs = {}
    for origin, parts in sorted(found.items()):
        log, by_sequence = [], {}
        try:
            for part in parts:
                part.head.verify(identities)
                for entry in part.entries:
                    known = by_sequence.setdefault(entry.sequence, entry)
                    need(known.hash == entry.hash, f"two entries {entry.sequence}: a fork")
            for entry in copies:
                if entry.origin == origin:
                    by_sequence.setdefault(entry.sequence, entry)
            logs[origin] = log
            for sequence in range(1, max(by_sequence) + 1):
                need(sequence in by_sequence, f"entry {sequence} is not there")
                entry = by_sequence[sequence]
                need(entry.previous == (log[-1].hash if log else None), f"entry {sequence} does not continue the log")
                entry.verify(identities)
                log.append(entry)
            for part in parts:
                ends = [(part.head.last, part.head.last_hash)] + ([part.head.former[2:]] if part.head.former else [])
                need(all(by_sequence[at].hash == end for at, end in ends), "a log that begins or ends elsewhere than its head says")
        except Damaged as problem:
            findings.add(f"{parts[-1].name} (log of {origin[0].hex()})", problem)
    return logs


def groups(log):
    """The push groups of a log, each a list of entries; what is not whole at its end is left out."""
    clock, group = 0, []
    for entry in log:
        first = group[0] if group else entry
        need(entry.part == len(group) and (entry.hlc, entry.tie, entry.parts) == (first.hlc, first.tie, first.parts),
             "parts of a group that do not follow each other")
        need(group or entry.hlc > clock, "a group's clock that does not rise")
        group.append(entry)
        if len(group) == entry.parts:
            tie = h(32, "group", entry.zone, *entry.origin, entry.hlc, [e.payload_hash for e in group])[:8]
            need(tie == entry.tie, "a tie that is not made from its group")
            yield group
            clock, group = entry.hlc, []
    need(not group, "a group that is not whole")


# ---- records (section 5) --------------------------------------------------------------------------------------------
BORN, TOMBSTONE = encode(0), encode(1)


def check_value(value):
    """A value of section 5, or a kind from a newer version."""
    if isinstance(value, Tag):
        if value.number == 8:
            need(isinstance(value.value, bytes) and not is_utf8(value.value), "a text in the wrong form")
        elif value.number == 9:
            need(isinstance(value.value, bytes) and len(value.value) == 16, "a reference")
        elif value.number == 11:
            need(isinstance(value.value, list), "together-columns")
            for part in value.value:
                need(not (isinstance(part, Tag) and part.number == 11), "together-columns within such")
                check_value(part)
        return
    need(value is None or isinstance(value, (float, str, bytes)) or type(value) is int and value in INT64, "no value")


def is_utf8(data):
    try:
        return data.decode() is not None
    except UnicodeDecodeError:
        return False


def number(key):
    """The number that a register's key is, or with which it begins; None for a column's name."""
    if isinstance(key, str):
        need(key, "a column without a name")
        return None
    is_array = isinstance(key, list)
    first = key[0] if is_array and key else key
    need(type(first) is int and first >= 0 and (first > 6 or is_array == (first in (5, 6))), "no register")
    return first


def check_fixed(kind, key, value):
    """The values of the registers from 0 to 5."""
    unit = lambda x: fields(x, 16, int, what="unit")
    name = lambda x: need(isinstance(x, bytes) and len(x) == 16, "16 bytes")
    if kind == 5:
        need(len(key) == 2 and (key[1] is None or isinstance(key[1], str) and key[1]), "no register")
    if kind == 3:
        fields(value, 16, 16, bool, what="alias")
    elif kind == 2 or value is not None:
        (unit if kind < 2 else name)(value)


class Rows:
    """The rows of one zone: records with their registers, merged as they come."""

    def __init__(self):
        self.records = {}  # (table, name) -> {register: (order, stamp, value)}

    def take(self, group):
        """Takes in a push group's payloads; raises before anything is changed."""
        out = []
        for entry in group:
            stamps, sources, blocks, notes = fields(
                versioned(decode(entry.payload()), "payload"), list, list, list, list, what="payload")
            own = (entry.hlc, True, *entry.origin, entry.tie)
            listed = [own] + [self.stamp(item, own) for item in stamps]
            for block in blocks:
                out += self.block(block, listed)
        for record, register, value in out:
            registers = self.records.setdefault(record, {})
            if register not in registers or registers[register] < value:
                registers[register] = value

    @staticmethod
    def stamp(item, own):
        """(HLC, real before filled-in, device, incarnation, tie): compared in this order."""
        hlc, filled, device, incarnation, tie = fields(item, int, bool, None, None, None, what="stamp")
        need((device is None) == (incarnation is None) and not (device and tie is None), "half a stamp's origin")
        fields([device or own[2], incarnation or own[3], tie or own[4]], 16, 8, 8, what="stamp")
        return (hlc, not filled, device or own[2], incarnation or own[3], tie or own[4])

    def block(self, block, stamps):
        table, names, columns = fields(block, str, bytes, list, what="block")
        need(table and names and len(names) % 16 == 0 and columns, "an empty block")
        rows = [names[at:at + 16] for at in range(0, len(names), 16)]
        last = b""
        for column in columns:
            key, index, packed = fields(column, None, None, list, what="column")
            form, values = fields(packed, int, None, what="values")
            register = encode(key)
            need(last < register, "columns that are not ascending")
            last = register
            indexes = index if isinstance(index, list) else [index] * len(rows)
            need(len(indexes) == len(rows) and all(type(i) is int and 0 <= i < len(stamps) for i in indexes), "stamp indexes")
            for row, i, value in zip(rows, indexes, self.values(key, form, values, len(rows))):
                yield (table, row), register, self.entry(key, stamps[i], value, stamps)

    @staticmethod
    def values(key, form, values, count):
        if form == 0:
            need(isinstance(values, list) and len(values) == count, "one value a row")
            return values
        if form == 4:
            return [values] * count
        # 1 to 3 are for cells and for registers that this version does not know.
        need(form in (1, 2, 3) and (number(key) is None or number(key) > 6), "a form of values")
        need(isinstance(values, bytes) and len(values) == 16 * count, "16 bytes a row")
        unpack = {1: lambda x: Tag(9, x), 2: lambda x: str(uuid.UUID(bytes=x)), 3: bytes.hex}[form]
        return [unpack(values[at:at + 16]) for at in range(0, len(values), 16)]

    @staticmethod
    def entry(key, stamp, value, stamps):
        """What a register holds, ordered: a contribution first by the life that it counts from."""
        kind = number(key)
        if kind is None:
            check_value(value)
        elif kind < 6:
            check_fixed(kind, key, value)
        elif kind == 6:
            fields(key, int, str, 16, 8, what="register")
            born, amount = fields(value, int, None, what="contribution")
            need(born < len(stamps) and type(amount) in (int, float), "a contribution")
            return (stamps[born], stamp, encode(amount)), amount
        return ((), stamp, encode(value)), value

    def live(self):
        """(table, record, {column: value}, {column: sum}) of every record that exists, in byte order of table and name."""
        for (table, record), registers in sorted(self.records.items(), key=lambda x: (x[0][0].encode(), x[0][1])):
            born, tombstone = (registers.get(k, ((), None))[0] for k in (BORN, TOMBSTONE))
            if not born or tombstone and tombstone[1] > born[1]:
                continue
            floor = max(x[1][0] for x in (born, tombstone) if x)
            values, sums = {}, {}
            for register, (order, value) in sorted(registers.items()):
                key = decode(register)
                if isinstance(key, str) and order[1][0] >= floor:
                    values[key] = value
                elif isinstance(key, list) and key[0] == 6 and order[0] == born[1]:
                    sums.setdefault(key[1], []).append(value)
            yield table, record, values, {column: total(amounts) for column, amounts in sums.items()}


def fingerprint(value):
    if type(value) is int:
        kind, data = 1, struct.pack(">q", value)
    elif isinstance(value, float):
        kind, data = 2, struct.pack(">d", value)
    elif isinstance(value, str):
        kind, data = 3, value.encode()
    elif isinstance(value, bytes):
        kind, data = 4, value
    else:
        kind, data = {8: (3, value.value), 9: (5, value.value)}.get(value.number, (6, encode(value)))
    return int.from_bytes(sodium.crypto_shorthash_siphash24(data, bytes([kind]) + bytes(15)), "little") or 1


def digest(key, rows):
    """The sum of all live records' hashes (section 9)."""
    out = 0
    for table, record, values, sums in rows:
        merged = [(column, value) for column, value in values.items() if value is not None]
        merged += [([6, column], value) for column, value in sums.items()]
        listed = [[register, fingerprint(value)] for register, value in sorted(merged, key=lambda x: encode(x[0]))]
        out += int.from_bytes(h(32, "record", record, table, listed, key=key), "big")
    return (out % 2**256).to_bytes(32, "big")


def total(amounts):
    """Integers while they fit, else doubles."""
    if all(type(x) is int for x in amounts) and sum(amounts) in INT64:
        return sum(amounts)
    out = 0
    for amount in amounts:
        out = out + amount if type(out) is int and type(amount) is int and out + amount in INT64 else float(out) + float(amount)
    return out


# ---- a household ----------------------------------------------------------------------------------------------------
class Household:
    def __init__(self, store, household, keys, boxes, findings):
        self.store, self.id, self.findings = store, household, findings
        self.roster = Roster(household)
        self.roster.keys.update(keys)
        self.roster.boxes.update(boxes)
        self.read_roster()
        op = self.roster.operations.get(household)
        self.name, self.private = (op.name, op.private) if op else ("", False)

    def read_roster(self):
        """Walks: a key shows entries, which hold keys. Only then all of them are judged."""
        roster, done = self.roster, set()
        while True:
            for epoch in sorted(set(roster.keys) - done):
                done.add(epoch)
                self.read_epoch(roster.epoch(epoch))
            roster.walk()
            if done == set(roster.keys):
                break
        for epoch, key in roster.keys.items():
            need(roster.fits(epoch, key), "a key that its epoch does not commit to, or an epoch that nobody began")
        roster.judge(lambda entry, why: self.findings.add(f"roster entry {entry.hash.hex()}", Damaged(why)))
        if roster.newer:
            self.findings.add("the roster", Newer("operations that this version does not know"))
        # The logs themselves are checked as any other: chains, heads, groups.
        for log in read_logs(self.store, self.epochs(), ROSTER, roster.identities, self.findings,
                             roster.entries.values()).values():
            try:
                list(groups(log))
            except Damaged as problem:
                self.findings.add(f"roster log of {log[0].device.hex()}", problem)

    def read_epoch(self, epoch):
        for part in read_parts(self.store, epoch, ROSTER, self.findings):
            for entry in part.entries:
                self.add(entry, part.name)
        for kind in "nr":
            prefix = epoch.prefix(ROSTER)
            for name in self.store.below(prefix, kind):
                try:
                    for entry in copied(epoch.open(self.store.read(f"{prefix}/{name}"), ROSTER, name), epoch, name):
                        self.add(entry, f"{prefix}/{name}")
                except (Damaged, Newer) as problem:
                    self.findings.add(f"{prefix}/{name}", problem)

    def add(self, entry, where):
        try:
            self.roster.add(entry)
        except (Damaged, Newer) as problem:
            self.findings.add(where, problem)

    def epochs(self):
        return [self.roster.epoch(epoch) for epoch in sorted(self.roster.keys)]

    def digest(self, zone):
        """A zone's digest, keyed by the first epoch's key."""
        need(self.id in self.roster.keys, "the first epoch's key is not to be found")
        return digest(h(32, "digest-key", self.id, zone, key=self.roster.keys[self.id]), self.rows(zone).live())

    def rows(self, zone):
        """The rows of a zone: every log of somebody who may write, over all epochs."""
        rows, known = Rows(), self.roster.counting | set(self.roster.entries)
        soon = (int(time.time() * 1000) + 600_000) << 16
        for origin, log in read_logs(self.store, self.epochs(), zone, self.roster.identities, self.findings).items():
            log_name = f"log of {origin[0].hex()}"
            if origin[0] not in self.roster.devices and origin[0] not in self.roster.removed:
                self.findings.add(log_name, "its author is not in the roster")
                continue
            limit = self.roster.limit(zone, origin)
            try:
                if limit and len(log) >= limit[0] > 0:
                    need(log[limit[0] - 1].hash == limit[1], "a limit on another branch")
                for group in groups(log):
                    if limit and group[-1].sequence > limit[0]:
                        self.findings.add(log_name, f"entries from {group[0].sequence} on: behind what counts of a device that may not write any more")
                        break
                    if any(x not in known for entry in group for x in entry.heads):
                        raise Damaged("it cites roster entries that are not there")
                    if not all(self.roster.might_write(origin[0], entry.heads) for entry in group):
                        self.findings.add(log_name, f"entry {group[0].sequence}: its author might not write")
                        continue
                    if group[0].hlc > soon:
                        self.findings.add(log_name, "a group from the future")
                        continue
                    need(all(entry.household == self.id for entry in group), "an entry of another household")
                    rows.take(group)
            except (Damaged, Newer) as problem:
                self.findings.add(log_name, problem)
        return rows


def copied(content, epoch, name):
    """The entries in an object of kind `n`, whose name is made from them, or `r`."""
    item = decode(content)
    if name[0] == "n":
        entry = Entry(item)
        need(epoch.next(entry.device, entry.incarnation, entry.sequence) == name, "a Next under another's name")
        return [entry]
    need(name == sharded("r", h(20, "roster-copy-tag", content, key=epoch.names)), "a copy under another's name")
    entries, = fields(versioned(item, "roster copy"), list, what="roster copy")
    return [Entry(x) for x in entries]


# ---- printing -------------------------------------------------------------------------------------------------------
ESCAPED = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
HIDDEN = {*range(0x20), *range(0x7f, 0xa0), 0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2066, 0x206a)}
for code in HIDDEN - set(ESCAPED):
    ESCAPED[code] = f"\\u{code:04x}"


def quote(text, ascii):
    text = text.translate(ESCAPED)
    return '"' + ("".join(c if ord(c) < 128 else escape(c) for c in text) if ascii else text) + '"'


def escape(character):
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def text64(data):
    return base64.b64encode(data).decode()


def shown(value, ascii):
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        return repr(value) if value - value == 0 else f'{{"real":"{value}"}}'
    if isinstance(value, str):
        return quote(value, ascii)
    if isinstance(value, bytes):
        return f'{{"blob":"{text64(value)}"}}'
    if value.number == 8:
        return f'{{"text":"{text64(value.value)}"}}'
    if value.number == 9:
        return f'{{"ref":"{value.value.hex()}"}}'
    if value.number == 11:
        return f'{{"together":[{",".join(shown(x, ascii) for x in value.value)}]}}'
    return f'{{"unknown":"{text64(encode(value))}"}}'


def line(table, record, values, sums, ascii):
    values = {**values, **sums}
    members = ",".join(f"{quote(c, ascii)}:{shown(values[c], ascii)}" for c in sorted(values, key=str.encode))
    return f'{{"table":{quote(table, ascii)},"record":"{record.hex()}","values":{{{members}}}}}\n'


# ---- the command ----------------------------------------------------------------------------------------------------
class Usage(Exception):
    pass


def starts(arguments, store):
    """What there is to begin with: (household, {epoch: key}, {device: box keys}) of each household."""
    if arguments.key_json:
        with open(arguments.key_json) as file:
            given = json.load(file)
        household, epoch, key = (bytes.fromhex(given[name]) for name in ("household", "epoch", "key"))
        need((len(household), len(epoch), len(key)) == (32, 32, 32), "three times 32 bytes in hexadecimal")
        boxes = {}
        if "box" in given:
            secret = bytes.fromhex(given["box"])
            boxes[bytes.fromhex(given["device"])] = (sodium.crypto_scalarmult_base(secret), secret)
        return [(household, {epoch: key}, boxes)]
    words = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "words.txt")
    with open(arguments.kit) as file, open(words) as listed:
        kit = Kit(file.read(), listed.read().split())
    out = {}
    for name in store.below(kit.prefix, "k"):
        household, epoch, key, heads, _ = kit.open_blob(store.read(f"{kit.prefix}/{name}"), name)
        out.setdefault(household, {})[epoch] = key
    need(out, "nothing in this store is for this kit")
    return [(household, keys, {kit.device: (kit.box, kit.box_secret)}) for household, keys in sorted(out.items())]


def open_households(arguments, store, findings):
    """Every household that opens, those that a private one hands on included."""
    out, left = {}, starts(arguments, store)
    while left:
        household, keys, boxes = left.pop(0)
        if household in out:
            continue
        opened = Household(store, household, keys, boxes, findings)
        out[household] = opened
        for _, _, other, _, epoch, key in opened.roster.households():
            if store.below(Epoch(other, epoch, key).prefix(ROSTER), "h"):  # else it lies in another store
                left.append((other, {epoch: key}, boxes))
    return list(out.values())


def choose(arguments, households):
    """The one zone that was asked for."""
    wanted = lambda asked, name, id: asked is None or asked in (name, id.hex())
    found = [(household, zone, name, closed) for household in households
             if wanted(arguments.household, household.name, household.id)
             for zone, (name, closed) in sorted(household.roster.zones().items()) if wanted(arguments.zone, name, zone)]
    found = [x for x in found if not x[3]] or found
    if len(found) != 1:
        listed = "".join(f"\n  --household {x.name} --zone {name} ({zone.hex()})" for x, zone, name, _ in found)
        raise Usage(f"{len(found) or 'no'} zones fit{listed}")
    return found[0][:2]


def main():
    parser = argparse.ArgumentParser(description="Reads a household's rows from a folder store.")
    parser.add_argument("dir", metavar="DIR", nargs="?")
    key = parser.add_mutually_exclusive_group(required=True)
    key.add_argument("--evidence", metavar="FILE", help="verify signed contradictions instead")
    key.add_argument("--kit", metavar="FILE", help="24 words")
    key.add_argument("--key-json", metavar="FILE", help='{"household": hex, "epoch": hex, "key": hex}')
    parser.add_argument("--household", metavar="NAME|ID")
    parser.add_argument("--zone", metavar="NAME|ID")
    parser.add_argument("--ascii", action="store_true", help="escape everything outside ASCII")
    parser.add_argument("--digest", action="store_true", help="print the zone's digest instead")
    arguments = parser.parse_args()
    if arguments.evidence:
        try:
            print("\n".join(evidence.verify(arguments.evidence)))
        except (Damaged, Newer, KeyError, TypeError, ValueError) as problem:
            print(f"reader.py: {problem}", file=sys.stderr)
            sys.exit(17 if isinstance(problem, Newer) else 16)
        sys.exit(0)
    if arguments.dir is None:
        parser.error("the following arguments are required: DIR")
    store, findings = Store(arguments.dir), Findings()

    def stop(code, why):
        print(f"reader.py: {why}", file=sys.stderr)
        sys.exit(code)

    try:
        store.check_marker()
    except Damaged as problem:
        stop(11, problem)
    except Newer as problem:
        stop(17, problem)
    try:
        households = open_households(arguments, store, findings)
    except (Damaged, KeyError, ValueError) as problem:
        stop(16 if findings.damaged else 14, problem)
    except Newer as problem:
        stop(17, problem)
    try:
        household, zone = choose(arguments, households)
    except Usage as problem:
        stop(64, problem)
    if arguments.digest:
        print(household.digest(zone).hex())
    for record in () if arguments.digest else household.rows(zone).live():
        sys.stdout.buffer.write(line(*record, arguments.ascii).encode())
    sys.exit(17 if findings.newer else 16 if findings.damaged else 3 if findings.count else 0)


if __name__ == "__main__":
    main()
