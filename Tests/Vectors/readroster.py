"""Keys and membership of a household: docs/format.md section 8, as far as a reader needs it.

Checks what is cryptography here (certificates, claims, seals, boxes, commitments) and leaves the judging to rostermodel.py.
"""
from rostermodel import Entry as Judged
from rostermodel import Roster as Model
from rostermodel import person

from latchkeyformat import (
    ROSTER, Damaged, Epoch, Newer, ascending, certificate, chain, commitment, decode, each, fields, need, open_box, open_seal,
    seal, verifies, versioned, vouched)

ROLES = ("mine", "reader", "member", "owner")


class Device(str):
    """A device id in hexadecimal, which knows its person: what rostermodel calls a device."""

    def __new__(cls, device, person):
        out = super().__new__(cls, device.hex())
        out.person = person.hex()
        return out


class Operation:
    """What an entry of the roster says: its kind and the content, each element of the stated kind."""

    KINDS = {
        1: ("Genesis", str, bool, list, str, str, 32, 80, 16), 2: ("Zone", 16, str), 3: ("CloseZone", 16, int, None),
        4: ("AddDevice", list, str, bool), 5: ("OpenInvite", 16, 32, 32, int, int, int, bool), 6: ("RevokeInvite", 16),
        7: ("Admit", bytes), 8: ("Leave",), 9: ("Profile", str, str), 10: ("Seal", 16, 32, 80),
        11: ("Next", list, int, 32, list, list, list, list, list, None), 12: ("Household", 32, str, 32, 32, str, list),
        13: ("CarryKey", 32, 32, 24, 48), 14: ("Deny", 32)}

    def __init__(self, payload):
        content = versioned(decode(payload), "operation")
        need(content and type(content[0]) is int, "an operation without a kind")
        self.kind, *kinds = self.KINDS.get(content[0], ("Unknown",))
        if self.kind == "Unknown":
            return
        kit = content[9:] if self.kind == "Genesis" else []
        need(len(kit) <= 1, "Genesis: more than a kit")
        self.content = fields(content[1:len(content) - len(kit)], *kinds, what=self.kind)
        read = getattr(self, self.kind.lower(), None)
        if read:
            read(*self.content, *kit)

    def genesis(self, name, private, certs, person_name, device_name, committed, sealed, salt, kit=None):
        self.name, self.private, self.commitment, self.parents = name, private, committed, []
        self.chain = chain(certs)
        self.kit = kit and self.kit_of(kit)

    def kit_of(self, item):
        kit = certificate(item)
        need(any(vouched(kit, cert) for cert in self.chain), "a kit that nobody in its chain vouches for")
        return kit

    def adddevice(self, cert, name, is_kit):
        self.certificate, self.is_kit = certificate(cert), is_kit

    def openinvite(self, invite, claim_key, box, role, expiry, uses, confirm):
        need(role < len(ROLES), "OpenInvite: a role")
        self.invite, self.claim_key, self.box, self.role, self.uses, self.confirm = (
            invite, claim_key, box, ROLES[role], uses, confirm)

    def admit(self, claim):
        self.body, self.by_link, by_device = fields(decode(claim), bytes, 64, 64, what="claim")
        self.household, self.invite, certs, _, _, _, kit = fields(
            versioned(decode(self.body), "claim"), 32, 16, list, str, str, 32, None, what="claim")
        self.chain = chain(certs)
        need(verifies(self.chain[-1].sign, "claim", self.body, by_device), "a claim that its device did not sign")
        self.kit = kit and self.kit_of(kit)

    def answers(self, claim_key):
        purpose = "directed-claim" if claim_key == self.chain[-1].sign else "claim"
        return verifies(claim_key, purpose, self.body, self.by_link)

    def next(self, parents, form, committed, recipients, formers, removals, roles, confirmed, store):
        need(form <= 1, "Next: its form")
        self.parents, self.closed, self.commitment, self.store = ascending(each(parents, 32, "parents"), "parents"), form == 1, committed, store
        self.recipients = [tuple(fields(r, int, 16, 80, what="recipient")) for r in recipients]
        self.formers = [tuple(fields(f, 32, 24, 48, what="former key")) for f in formers]
        self.removals = {}
        for item in removals:
            device, limits = fields(item, 16, list, what="removal")
            limits = [tuple(fields(x, 16, 8, int, 32, what="limit")) for x in limits]
            ascending([x[:2] for x in limits], "limits")
            self.removals[device] = limits
        self.roles = dict(fields(r, 16, int, what="role") for r in roles)
        need(all(1 <= r <= 3 for r in self.roles.values()), "Next: a role")
        self.confirmed = each(confirmed, 16, "confirmed devices")
        need(store is None or isinstance(store, str), "Next: its store")
        for items in ([r[:2] for r in self.recipients], [f[0] for f in self.formers], [r[0] for r in removals],
                      [r[0] for r in roles], confirmed):
            ascending(items, "the parts of a Next")
        if self.closed:
            need(committed == bytes(32) and not (recipients or formers or removals or roles or confirmed or store),
                 "a closing Next that says more")


class Roster:
    """Entries of a household's roster in any order, the keys that they yield, and what they amount to."""

    def __init__(self, household):
        self.household = household
        self.entries, self.operations = {}, {}   # by hash; an operation is None where it is malformed
        self.identities, self.kits = {}, set()   # device -> certificate: a device's id is the hash of its keys
        self.keys = {}                           # epoch -> key
        self.boxes = {}                          # device -> (box public key, secret) of those that we are
        self.newer = set()

    # ---- entries and who signed them ----
    def add(self, entry):
        """Takes in an entry of an opened object, before its signature can be checked."""
        if entry.hash in self.entries:
            return False
        genesis = entry.hash == self.household
        need(entry.zone == ROSTER and entry.household == (bytes(32) if genesis else self.household),
             "an entry that belongs elsewhere")
        try:
            op = Operation(entry.payload())
        except Damaged as damage:
            op, entry.why = None, str(damage)
        if op and op.kind == "Genesis" and not genesis:
            op, entry.why = None, "a second Genesis"
        self.entries[entry.hash], self.operations[entry.hash] = entry, op
        kit = getattr(op, "kit", None)
        for cert in [*getattr(op, "chain", []), getattr(op, "certificate", None), kit]:
            if cert:
                self.identities.setdefault(cert.device, cert)
        if kit:
            self.kits.add(kit.device)
        if op and op.kind == "AddDevice" and op.is_kit:
            self.kits.add(op.certificate.device)
        return True

    def of_kind(self, *kinds):
        return [(self.entries[x], op) for x, op in sorted(self.operations.items()) if op and op.kind in kinds]

    # ---- walking: every key that can be opened, whether or not the entry that holds it counts ----
    def walk(self):
        """Opens boxes and seals until nothing new opens; returns the epochs whose keys came to light."""
        found = set()
        while True:
            opened = {}
            for entry, op in self.of_kind("Next", "Seal", "CarryKey"):
                if op.kind == "Next":
                    for former, nonce, box in op.formers:
                        if entry.hash in self.keys:
                            opened.setdefault(former, []).append(open_box(box, nonce, former, self.keys[entry.hash]))
                    for _, device, sealed in op.recipients:
                        if device in self.boxes:
                            opened.setdefault(entry.hash, []).append(open_seal(sealed, *self.boxes[device]))
                elif op.kind == "Seal":
                    device, epoch, sealed = op.content
                    if device in self.boxes:
                        opened.setdefault(epoch, []).append(open_seal(sealed, *self.boxes[device]))
                else:
                    epoch, outer, nonce, box = op.content
                    if outer in self.keys:
                        opened.setdefault(epoch, []).append(open_box(box, nonce, epoch, self.keys[outer]))
            new = {epoch: key for epoch, keys in opened.items() for key in keys
                   if key and epoch not in self.keys and self.fits(epoch, key)}
            if not new:
                return found
            self.keys.update(new)
            found |= set(new)

    def fits(self, epoch, key):
        """Whether the entry that began the epoch committed to this key. Nothing is known of one that was not seen."""
        op = self.operations.get(epoch)
        return op is not None and op.kind in ("Genesis", "Next") and commitment(key, op.parents) == op.commitment

    def epoch(self, epoch):
        return Epoch(self.household, epoch, self.keys[epoch])

    def flaw(self, entry, op):
        """Why a Next counts for nothing, to whoever holds its key, or was sealed something else; None if it seems right."""
        if op.closed:
            return None
        key = self.keys.get(entry.hash)
        if key:
            if not self.fits(entry.hash, key):
                return "commitment"
            for kind, who, sealed in op.recipients:
                boxes = [i.box for _, i in self.of_kind("OpenInvite") if i.invite == who] if kind == 2 else [
                    self.identities[who].box] if who in self.identities else []
                if boxes and sealed not in [seal(key, box) for box in boxes]:
                    return "seal"
            for former, nonce, box in op.formers:
                opened = open_box(box, nonce, former, key)
                if opened is None or not self.fits(former, opened):
                    return "former key"
            return None
        if any(who in self.boxes for _, who, _ in op.recipients):
            return "seal"  # ours, and it gave no key that fits
        given = {who for _, who, _ in op.recipients} - {entry.device}
        denied = any(d.content[0] == entry.hash and e.device in given for e, d in self.of_kind("Deny"))
        vouchers = [e for e, n in self.of_kind("Next") if entry.hash in n.parents]
        vouchers += [e for e, s in self.of_kind("Seal") if s.content[1] == entry.hash]
        return "denied" if denied and not any(e.device in given for e in vouchers) else None

    # ---- judging ----
    def judge(self, report):
        """Judges all entries, ancestors first. `report(entry, why)` is told of those that are set aside."""
        self.model = Model()
        waiting = {}
        for entry in self.entries.values():
            try:
                entry.verify(self.identities)
                waiting[entry.hash] = entry
            except Damaged as damage:
                report(entry, str(damage))
        if self.household not in waiting:
            raise Damaged("the roster's first entry is not there, or its author did not sign it")
        self.people = {}
        self.bad = set()
        while True:
            known = {bytes.fromhex(x) for x in self.model.at} | self.newer
            ready = [e for e in waiting.values() if all(x in known for x in self.ancestors(e))]
            if not ready:
                break
            for entry in sorted(ready, key=lambda e: e.hash):
                del waiting[entry.hash]
                if self.newer & set(self.ancestors(entry)):
                    self.newer.add(entry.hash)
                else:
                    self.take(entry, self.operations[entry.hash])
        for entry in waiting.values():
            report(entry, "its ancestors are not there")
        for entry in self.entries.values():
            if self.operations[entry.hash] is None:
                report(entry, entry.why)
        self.state = self.model.state(self.model.all())
        self.devices = {bytes.fromhex(d): self.state.level(person(d)) for d in self.state.devices()}
        self.removed = {bytes.fromhex(d) for d in self.state.removed}
        self.counting = {bytes.fromhex(e.id) for e in self.state.counting}

    def ancestors(self, entry):
        return entry.heads + ([entry.previous] if entry.previous else [])

    def device(self, device):
        return self.people.get(device) or Device(device, b"?")

    def take(self, entry, op):
        kind, body = ("Malformed", {}) if op is None else (op.kind, self.body(entry, op))
        if kind == "Unknown":
            mask = 0
            for ancestor in self.ancestors(entry):
                mask |= self.model.past[self.model.at[ancestor.hex()]]
            if self.device(entry.device) in self.model.state(mask).devices():
                self.newer.add(entry.hash)
                return
            kind = "Malformed"
        if body is None:
            kind, body = "Malformed", {}
        self.model.add(Judged(
            entry.hash.hex(), kind, self.device(entry.device), entry.sequence, entry.previous and entry.previous.hex(),
            [x.hex() for x in entry.heads], origin=entry.origin, **body))

    def past(self, entry):
        """Hashes of all ancestors."""
        mask = 0
        for ancestor in self.ancestors(entry):
            mask |= self.model.past[self.model.at[ancestor.hex()]]
        return {bytes.fromhex(e.id) for e in self.model.members(mask)}

    def enrol(self, cert):
        return self.people.setdefault(cert.device, Device(cert.device, cert.person))

    def body(self, entry, op):
        """What rostermodel wants to know of an operation; None if it cannot count."""
        if op.kind == "Genesis":
            if op.chain[-1].device != entry.device or entry.heads or entry.previous:
                return None
            key = self.keys.get(self.household)
            need(key is None or self.fits(self.household, key), "the first epoch's key is not the one that Genesis commits to")
            self.enrol(op.chain[-1])
            return {"kit": op.kit and self.enrol(op.kit), "private": op.private}
        if op.kind == "Zone":
            return None if op.content[0] == ROSTER else {"zone": op.content[0]}
        if op.kind == "CloseZone":
            return {"zone": op.content[0]}
        if op.kind == "AddDevice":
            cert, signer = op.certificate, self.identities.get(op.certificate.signer)
            if not signer or not vouched(cert, signer):
                return None
            return {"device": self.enrol(cert), "by": self.device(cert.signer), "kit": op.is_kit}
        if op.kind == "OpenInvite":
            return {"role": op.role, "uses": op.uses, "confirm": op.confirm}
        if op.kind == "RevokeInvite":
            past = self.past(entry)
            return {"invites": [e.hash.hex() for e, i in self.of_kind("OpenInvite")
                                if e.hash in past and i.invite == op.content[0]]}
        if op.kind == "Admit":
            past = self.past(entry)
            answered = [(ROLES.index(i.role), e.hash.hex()) for e, i in self.of_kind("OpenInvite")
                        if e.hash in past and i.invite == op.invite and op.answers(i.claim_key)]
            if not answered or op.household != self.household:
                return None
            return {"invite": min(answered)[1], "device": self.enrol(op.chain[-1]), "kit": op.kit and self.enrol(op.kit)}
        if op.kind == "Seal":
            device, epoch, sealed = op.content
            key, cert = self.keys.get(epoch), self.identities.get(device)
            wrong = bool(key and cert) and seal(key, cert.box) != sealed
            return {"to": self.device(device), "epoch": epoch.hex(), "wrong": wrong}
        if op.kind in ("CarryKey", "Deny"):
            return {"epochs": [x.hex() for x in op.content[:2 if op.kind == "CarryKey" else 1]]}
        if op.kind == "Next":
            return self.next_body(entry, op)
        return {}

    def next_body(self, entry, op):
        past = self.past(entry)

        def recipient(kind, who):
            if kind == 2:
                opened = [(self.model.depth[self.model.at[e.hash.hex()]], e.hash.hex())
                          for e, i in self.of_kind("OpenInvite") if e.hash in past and i.invite == who]
                return min(opened)[1] if opened else "no invite"
            return self.device(who) if (kind == 1) == (who in self.kits) else "a device of another kind"

        return {
            "parents": [p.hex() for p in op.parents], "recipients": [recipient(kind, who) for kind, who, _ in op.recipients],
            "removes": [self.device(d) for d in op.removals], "confirms": [self.device(d) for d in op.confirmed],
            "roles": {p.hex(): ROLES[r] for p, r in op.roles.items()}, "closed": op.closed, "store": op.store,
            "flaw": self.flaw(entry, op), "formers": [f.hex() for f, _, _ in op.formers]}

    # ---- what rows need ----
    def might_write(self, device, heads):
        """Whether a row's author might write it by the roster heads that it cites; of somebody not yet in there, by what let it in."""
        mask = 0
        for head in heads:
            mask |= self.model.past[self.model.at[head.hex()]] if head.hex() in self.model.at else 0
        then = self.model.state(mask)
        if self.device(device) in then.devices():
            return then.level(person(self.device(device))) >= 2
        came = self.state.came.get(self.device(device))
        if not came:
            return False
        let_in = self.model.state(self.model.past[self.model.at[min(x[:2] for x in came)[1]]])
        return let_in.level(person(self.device(device))) >= 2

    def limit(self, zone, origin):
        """How far the rows of a removed or narrowed device count in one log: (sequence, hash). None: as far as it goes."""
        limits = [(0, b"")]
        if self.devices.get(origin[0], 0) >= 2:
            return None
        for judged, _, _ in self.state.accepted:
            op = self.operations[bytes.fromhex(judged.id)]
            limits += [(sequence, at) for z, incarnation, sequence, at in op.removals.get(origin[0], [])
                       if (z, incarnation) == (zone, origin[1])]
        return max(limits)

    def zones(self):
        """Zone id -> (name, whether it is closed)."""
        named = sorted((e.hlc, e.hash, *op.content) for e, op in self.of_kind("Zone") if e.hash in self.counting)
        return {zone: (name, zone in self.state.closed_zones) for _, _, zone, name in named}

    def households(self):
        """Other households whose keys a private one hands on: (hlc, hash, household, name, epoch, key)."""
        return sorted((e.hlc, e.hash, *op.content[:4]) for e, op in self.of_kind("Household") if e.hash in self.counting)
