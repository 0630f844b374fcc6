"""A second reading of docs/format.md section 8: what a set of roster entries amounts to, without any cryptography.

Keys are left out: a `Next` that its key would show to be wrong says so itself (`flaw`). A device is named "person.number",
or by a text that has its person as `person`; a kit is a device. An entry's ancestors are the heads it cites and its author's
previous entry. Kinds that say nothing about who is in are judged and kept, no more.
"""

LEVEL = {"mine": 0, "reader": 1, "member": 2, "owner": 3}
ROLES = ("none", "reader", "member", "owner")


def person(device):
    return getattr(device, "person", None) or device.split(".")[0]


class Entry:
    def __init__(self, id, kind, author, seq, prev, heads, **body):
        self.id, self.kind, self.author, self.seq, self.prev = id, kind, author, seq, prev
        self.origin = body.pop("origin", author)  # a device's log: the device has one unless told otherwise
        self.heads, self.body = sorted(heads), body

    def json(self):
        return {"id": self.id, "kind": self.kind, "author": self.author, "seq": self.seq, "prev": self.prev,
                "heads": self.heads, **self.body}


class State:
    """Facts of a set of entries."""

    def __init__(self):
        self.came = {}                      # device -> [(depth, id, kit rank, introducers)]
        self.settings, self.offers = {}, {}  # person -> [(entry, role)]
        self.zones, self.closed_zones, self.invites, self.leaves = set(), {}, {}, {}
        self.accepted, self.void, self.fallen = [], [], []
        self.removed, self.given = set(), {}

    def devices(self):
        return sorted(d for d in self.came if d not in self.removed)

    def people(self):
        return sorted({person(d) for d in self.devices()})

    def level(self, who):
        if not any(person(d) == who for d in self.devices()):
            return 0
        last = self.settings.get(who) or self.offers.get(who) or []
        return min((r for _, r in last), default=0)

    def owners(self):
        return {p for p in self.people() if self.level(p) == 3}

    def leavers(self):
        asked = {p for p in self.leaves if self.leaves[p] and self.level(p)}
        return asked - self.owners() if self.owners() <= asked else asked

    def leaving(self):
        return {d for d in self.devices() if person(d) in self.leavers()}

    def introduced(self, gone):
        out = set(gone)
        while True:
            more = {d for d in self.devices() if d not in out and any(by & out for _, _, _, by in self.came[d])}
            if not more:
                return out - set(gone)
            out |= more


class Invite:
    def __init__(self, e):
        self.id, self.by, self.author = e.id, person(e.author), e.author
        self.role, self.uses, self.confirm = LEVEL[e.body["role"]], e.body["uses"], e.body["confirm"]
        self.closed, self.admitted = False, set()

    def open(self):
        return not self.closed and len(self.admitted) < self.uses


class Roster:
    def __init__(self):
        self.entries, self.at, self.past, self.depth = [], {}, [], []
        self.verdicts, self.states = {}, {}

    def add(self, e):
        """The ancestors must be there."""
        past, depth = 0, 0
        for h in set(e.heads) | ({e.prev} if e.prev else set()):
            i = self.at[h]
            past |= self.past[i]
            depth = max(depth, self.depth[i] + 1)
        self.at[e.id] = len(self.entries)
        self.entries.append(e)
        self.past.append(past | 1 << self.at[e.id])
        self.depth.append(depth)

    def strict(self, e):
        return self.past[self.at[e.id]] & ~(1 << self.at[e.id])

    def before(self, a, b):
        return a is not b and self.past[self.at[b.id]] >> self.at[a.id] & 1

    def all(self):
        return (1 << len(self.entries)) - 1

    def members(self, mask):
        return [e for i, e in enumerate(self.entries) if mask >> i & 1]

    # ---- one entry, in the state of its ancestors ----
    def counts_at_birth(self, e):
        if e.id not in self.verdicts:
            self.verdicts[e.id] = self.judge(e, self.strict(e))
        return self.verdicts[e.id] is not None

    def need(self, e):
        """The least level that the act needed."""
        self.counts_at_birth(e)
        return self.verdicts[e.id]

    def continues(self, e):
        if not e.prev:
            return e.seq == 1
        p = self.entries[self.at[e.prev]]
        return p.origin == e.origin and p.seq + 1 == e.seq and self.continues(p)

    def forked(self, e, mask):
        own, p = set(), e
        while p.prev:
            p = self.entries[self.at[p.prev]]
            own.add(p.id)
        return any(q.origin == e.origin and q.id not in own for q in self.members(mask))

    def judge(self, e, mask):
        """The level needed, or None."""
        b = e.body
        if not self.continues(e):
            return None
        if e.kind == "Genesis":
            return 1 if mask == 0 and self.entries[0] is e else None
        if self.forked(e, mask):
            return None
        st = self.state(mask)
        if e.author not in st.devices() or self.closed(st):
            return None
        mine = person(e.author)
        level = st.level(mine)
        if not level:
            return None
        need = self.authority(e, b, st, mine, mask)
        return need if need and level >= need else None

    def authority(self, e, b, st, mine, mask):
        private = self.entries[0].body.get("private", False)
        if e.kind == "Zone":
            return 2
        if e.kind == "CloseZone":
            return 3 if b["zone"] in st.zones else None
        if e.kind == "Profile":
            return 1
        if e.kind == "Household":
            return 1 if private else None
        if e.kind in ("CarryKey", "Deny"):
            if any(x not in self.at or not mask >> self.at[x] & 1 for x in b["epochs"]):
                return None
            return 1 if e.kind == "CarryKey" or e.author in self.entries[self.at[b["epochs"][0]]].body["recipients"] else None
        if e.kind == "Malformed":
            return None
        if e.kind == "AddDevice":
            d = b["device"]
            fits = person(d) == person(b["by"]) == mine and b["by"] in st.devices()
            full = sum(person(x) == mine for x in st.devices()) >= 16
            return 1 if fits and d not in st.devices() and d not in st.removed and not full else None
        if e.kind == "OpenInvite":
            if private and b["role"] != "mine":
                return None
            return {"mine": 1, "reader": 2}.get(b["role"], 3)
        if e.kind == "RevokeInvite":
            return min((1 if i.by == mine else 3 for i in self.named(e, st)), default=None)
        if e.kind == "Admit":
            i = st.invites.get(b["invite"])
            d = b["device"]
            if private or i is None or not i.role or not i.open() or d in st.devices() or d in st.removed:
                return None
            return 3 if i.confirm else 2
        if e.kind == "Leave":
            others = st.owners() - st.leavers() - {mine}
            return None if st.level(mine) == 3 and not others else 1
        if e.kind == "Seal":
            known = b["epoch"] in self.at and mask >> self.at[b["epoch"]] & 1
            return 1 if known and b["to"] in st.devices() else None
        return self.judge_next(e, b, st, mine, mask)

    def named(self, e, st):
        """The invites that a RevokeInvite means: several may have been given one name."""
        return [st.invites[i] for i in e.body.get("invites", [e.body.get("invite")]) if i in st.invites]

    def removes(self, e):
        """A listed device whose person gets a role stays: only limits on its rows are stated."""
        return {d for d in e.body["removes"] if person(d) not in e.body["roles"]}

    def judge_next(self, e, b, st, mine, mask):
        removes, leaving = self.removes(e), st.leaving()
        others = [d for d in removes if person(d) != mine and d not in leaving]
        need = 3 if b["closed"] or b["roles"] or b["store"] or others else 2
        if st.level(mine) < need or not set(b["removes"]) <= set(st.devices()) or sorted(b["parents"]) != self.heads(st):
            return None
        if b["closed"]:
            return None if b["removes"] or b["roles"] or b["store"] or b["recipients"] else need
        if any(not st.level(p) for p in b["roles"]) or not leaving <= removes:
            return None
        stay = [d for d in st.devices() if d not in removes]
        after = {p: LEVEL[r] for p, r in b["roles"].items()}
        if not any(after.get(person(d), st.level(person(d))) == 3 for d in stay):
            return None
        for d in st.introduced(removes - leaving):
            if d not in removes and d not in b["confirms"] and (st.level(mine) == 3 or person(d) == mine):
                return None
        may = set() if removes else {i.id for i in st.invites.values() if i.open() and not i.confirm}
        to = set(b["recipients"])
        if not set(stay) <= to or not to - set(stay) <= may or b["flaw"]:
            return None
        if any(not (f in self.at and mask >> self.at[f] & 1) for f in b["formers"]):
            return None
        return need

    def rank(self, e):
        st = self.state(self.strict(e))
        depth, _, kit, _ = min(st.came[e.author])
        owner = st.level(person(e.author)) == 3
        return (0 if kit == 2 else 1) + (0 if owner else 2), depth, e.author, e.id

    def brings(self, e):
        """(device, kit rank): 2 a kit that ranks as one."""
        if e.kind == "Genesis":
            return [(e.author, 0)] + ([(e.body["kit"], 2)] if e.body["kit"] else [])
        if e.kind == "Admit":
            return [(e.body["device"], 0)] + ([(e.body["kit"], 2)] if e.body["kit"] else [])
        if e.kind == "AddDevice":
            signer = min(self.state(self.strict(e)).came[e.body["by"]])[2]
            return [(e.body["device"], 0 if not e.body["kit"] else 2 if signer == 2 else 1)]
        return []

    # ---- a set ----
    def heads(self, st):
        ends = [n for n, _, _ in st.accepted if not any(self.before(n, m) for m, _, _ in st.accepted)]
        return sorted(n.id for n in ends) or [self.entries[0].id]

    def closed(self, st):
        ends = [self.entries[self.at[h]] for h in self.heads(st)]
        return all(n.kind == "Next" and n.body["closed"] for n in ends)

    def current(self, st):
        ends = [self.entries[self.at[h]] for h in self.heads(st)]
        live = [n for n in ends if n.kind == "Genesis" or not n.body["closed"]]
        return min(live, key=lambda n: self.rank(n) if n.kind == "Next" else ()).id if live else None

    def state(self, mask):
        if mask not in self.states:
            self.states[mask] = self.evaluate(mask)
        return self.states[mask]

    def evaluate(self, mask):
        valid = [e for e in self.members(mask) if self.counts_at_birth(e)]
        valid.sort(key=lambda e: (self.depth[self.at[e.id]], e.id))
        nexts = sorted((e for e in valid if e.kind == "Next"), key=self.rank)
        order = []

        def take(n):
            for m in nexts:
                if self.before(m, n) and m not in order:
                    take(m)
            order.append(n)

        for n in nexts:
            if n not in order:
                take(n)
        acc, void = [], []
        for n in order:
            if n not in self.counting(valid, acc):
                void.append(n)
                continue
            removes, roles = self.removes(n), {p: LEVEL[r] for p, r in n.body["roles"].items()}
            if (removes or roles) and not self.fold(valid, acc + [(n, removes, roles)]).owners():
                keep = self.fold(valid, acc).owners()
                removes = {d for d in removes if person(d) not in keep}
                roles = {p: r for p, r in roles.items() if p not in keep}
            acc.append((n, removes, roles))
        st = self.fold(valid, acc)
        st.void = void
        return st

    def cut(self, e, acc):
        removed = saved = False
        for n, removes, roles in acc:
            if n is e or self.before(n, e):
                continue
            if e.author in removes:
                removed, saved = removed or not self.before(e, n), saved or self.before(e, n)
            if person(e.author) in roles and not self.before(e, n) and roles[person(e.author)] < self.need(e):
                return True
        return removed and not saved

    def counting(self, valid, acc):
        out, devices, opened = [], set(), set()
        left = [e for e in valid if not self.cut(e, acc)]
        while True:
            ready = [e for e in left if (e.kind == "Genesis" or e.author in devices)
                     and (e.kind != "Admit" or e.body["invite"] in opened)]
            if not ready:
                return out
            e = ready[0]
            left.remove(e)
            out.append(e)
            devices |= {d for d, _ in self.brings(e)}
            opened |= {e.id} if e.kind == "OpenInvite" else set()

    def fold(self, valid, acc):
        st = State()
        st.counting = counting = self.counting(valid, acc)

        def note(table, p, e, role):
            last = [(q, r) for q, r in table.get(p, []) if not self.before(q, e)]
            if not any(self.before(e, q) for q, _ in last):
                table[p] = last + [(e, role)]

        for e in valid:
            if e.kind in ("Genesis", "Next"):
                to = e.body["recipients"] if e.kind == "Next" else [e.body["kit"]] if e.body["kit"] else []
                st.given.setdefault(e.id, set()).update({e.author, *to})
            if e.kind == "Seal" and not e.body["wrong"]:
                st.given.setdefault(e.body["epoch"], set()).add(e.body["to"])
            if e not in counting:
                st.fallen.append(e)
                continue
            b, by = e.body, set()
            if e.kind == "AddDevice":
                by = {b["by"], e.author}
            if e.kind == "Admit":
                by = {st.invites[b["invite"]].author, e.author}
            for d, kit in self.brings(e):
                st.came.setdefault(d, []).append((self.depth[self.at[e.id]], e.id, kit, frozenset(by)))
            if e.kind == "Genesis":
                note(st.settings, person(e.author), e, 3)
            elif e.kind == "Zone":
                st.zones.add(b["zone"])
            elif e.kind == "OpenInvite":
                st.invites[e.id] = Invite(e)
            elif e.kind == "CloseZone":
                st.closed_zones.setdefault(b["zone"], e.id)
            elif e.kind == "RevokeInvite":
                owner = self.state(self.strict(e)).level(person(e.author)) == 3
                for i in self.named(e, st):
                    i.closed = i.closed or owner or i.by == person(e.author)
            elif e.kind == "Admit":
                i, p = st.invites[b["invite"]], person(b["device"])
                i.admitted.add(b["device"])
                note(st.offers, p, e, i.role)
                if not self.state(self.strict(e)).level(p):
                    note(st.settings, p, e, i.role)
            elif e.kind == "Leave":
                st.leaves.setdefault(person(e.author), []).append(e)
        for n, removes, roles in acc:
            st.accepted.append((n, removes, roles))
            st.removed |= removes
            for p, r in roles.items():
                note(st.settings, p, n, r)
            if self.removes(n):
                for i in st.invites.values():
                    i.closed = i.closed or bool(self.before(self.entries[self.at[i.id]], n))
            if not n.body["closed"]:
                for p in st.leaves:
                    st.leaves[p] = [e for e in st.leaves[p] if not self.before(e, n)]
        return st

    def dirt(self, st):
        """Holders of the current key who must not have it, and invites that closed since it was made."""
        e = self.current(st)
        if e is None:
            return [], []
        open_invites = {i.id for i in st.invites.values() if i.open()}
        ok = set(st.devices()) - st.leaving() | open_invites
        strangers = st.given.get(e, set()) - ok
        made = self.entries[self.at[e]]
        base = self.state(self.strict(made)) if made.kind == "Next" else State()
        shut = {k for k, i in base.invites.items() if not i.open() or self.removes(made)} if made.kind == "Next" else set()
        since = {k for k, i in st.invites.items() if not i.confirm and not i.open() and k not in shut}
        invites = since | {s for s in strangers if s in st.invites}
        return sorted(s for s in strangers if s not in st.invites), sorted(invites)

    def summary(self):
        st = self.state(self.all())
        strangers, invites = self.dirt(st)
        return {
            "devices": {d: [ROLES[st.level(person(d))], min(st.came[d])[0], min(st.came[d])[2]] for d in st.devices()},
            "removed": sorted(st.removed), "leaving": sorted(st.leaving()),
            "invites": {i.id: [sorted(i.admitted), i.open()] for i in st.invites.values()},
            "zones": sorted(st.zones), "void": sorted(n.id for n in st.void),
            "fallen": sorted(e.id for e in st.fallen), "ends": self.heads(st), "current": self.current(st),
            "closed": self.closed(st), "strangers": strangers, "closedInvites": invites,
            "refused": sorted(e.id for e in self.entries if not self.counts_at_birth(e)),
        }
