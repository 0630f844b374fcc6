#!/usr/bin/env python3
"""Writes histories.json: random rosters, and what rostermodel.py makes of them.

Devices that have each heard something else invite, let in, remove, leave and rotate; some turn malicious: they write what
they may not, backdate, fork, forget recipients, seal garbage. The same entries with real keys are judged by the tests.

    make-histories.py [--seeds N] [--start N] > histories.json
"""
import argparse
import json
import random

from rostermodel import Entry, Roster, person


class World:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.R, self.n, self.count = Roster(), 0, {}
        self.known = {}                     # device -> set of entry ids (closed under ancestors)
        self.bad = set()
        self.wild = self.r.choice((0, .05, .2))
        self.deaf = self.r.choice((.1, .4, .7))
        kit = "a.0" if self.r.random() < .6 else None
        self.count["a"] = 1
        self.write("Genesis", "a.1", [], kit=kit)

    def id(self):
        self.n += 1
        return f"{self.r.getrandbits(24):06x}{self.n:04x}"

    def mask(self, ids):
        out = 0
        for i in ids:
            out |= self.R.past[self.R.at[i]]
        return out

    def ends(self, ids):
        es = [self.R.entries[self.R.at[i]] for i in ids]
        covered = 0
        for e in es:
            covered |= self.R.strict(e)
        return [e.id for e in es if not covered >> self.R.at[e.id] & 1]

    def write(self, kind, author, known, at=None, **body):
        """The author's next entry, or one beside an older one of its own; adds it to what the author knows."""
        own = [e for e in self.R.entries if e.author == author and e.id in known]
        prev = at if at is not None else max(own, key=lambda e: e.seq, default=None)
        heads = [h for h in self.ends(known) if prev is None or h != prev.id]
        e = Entry(self.id(), kind, author, prev.seq + 1 if prev else 1, prev.id if prev else None, heads, **body)
        self.R.add(e)
        self.known.setdefault(author, set()).update({e.id, *known})
        return e

    def hear(self, d):
        mine = self.known.setdefault(d, set())
        for e in self.R.entries:
            if e.id not in mine and self.r.random() > self.deaf:
                mine |= {q.id for q in self.R.members(self.R.past[self.R.at[e.id]])}
        return mine

    def next_body(self, st, mine, removes=(), confirms=(), roles=None, closed=False):
        gone = set() if closed else set(removes) | st.leaving()
        if not closed:
            more = st.introduced(set(removes) - st.leaving()) - set(confirms)
            gone |= more if st.level(person(mine)) == 3 else {d for d in more if person(d) == person(mine)}
        stay = [d for d in st.devices() if d not in gone]
        inv = [] if gone else [i.id for i in st.invites.values() if i.open() and not i.confirm and self.r.random() < .9]
        return {"parents": self.R.heads(st), "recipients": [] if closed else sorted(stay + inv), "removes": sorted(gone),
                "confirms": sorted(confirms), "roles": roles or {}, "closed": closed, "store": None, "flaw": None,
                "formers": []}

    def step(self):
        r = self.r
        everyone = sorted(self.known)
        d = r.choice(everyone)
        known = self.hear(d)
        at, view = None, known
        evil = d in self.bad
        if evil:
            own = [e for e in self.R.entries if e.author == d]
            tips = [e for e in own if not any(q.prev == e.id for q in own)]
            if own:
                at = r.choice(tips if r.random() < .7 else own)
            mine = self.R.past[self.R.at[at.id]] if at else 0
            view = {e.id for e in self.R.members(mine)}
            for i in sorted(known):                      # as much of the rest as does not show the other branches
                e = self.R.entries[self.R.at[i]]
                past = self.R.members(self.R.past[self.R.at[i]])
                if r.random() < .5 and not any(q.author == d and q.id not in view for q in past):
                    view |= {q.id for q in past}
        st = self.R.state(self.mask(view)) if view else None
        if st is None or d not in st.devices() and r.random() < .8 or evil and r.random() < .3:
            return
        if not evil and r.random() < .04 and len(self.bad) < 2 and len(st.devices()) > 2:
            self.bad.add(d)
        level, mine = st.level(person(d)), person(d)
        kinds = ["Next"] * 5 + ["Zone"] + ["AddDevice"] * 3 + ["OpenInvite"] * 4 + ["Admit"] * 7 + ["RevokeInvite", "Leave", "Seal"]
        kind = r.choice(kinds)
        if kind == "Leave" and r.random() < .6:
            return
        body = self.body(kind, d, st, level, mine, evil)
        if body is None:
            return
        mine_known = [e for e in self.R.entries if e.author == d and e.id in view]
        last = at or max(mine_known, key=lambda e: e.seq, default=None)
        probe = Entry("~", kind, d, 0, last.id if last else None, [], **body)
        if not evil or r.random() < .6:
            # Honest devices, and cautious ones, write what counts.
            if self.R.forked(probe, self.mask(view)) or self.R.closed(st) or d not in st.devices() or not level:
                return
            need = self.R.authority(probe, body, st, mine, self.mask(view))
            if not need or level < need:
                return
        e = self.write(kind, d, view, at, **body)
        self.known[d] |= known
        if kind in ("Admit", "AddDevice"):
            p, number = body["device"].split(".")
            self.count[p] = max(self.count.get(p, 1), int(number))
        if kind == "Admit":
            self.known.setdefault(body["device"], set()).update(view)
        if kind == "AddDevice":
            self.known.setdefault(body["device"], set()).update(view)
        return e

    def body(self, kind, d, st, level, mine, evil):
        r = self.r
        if kind == "Zone":
            return {"zone": self.n}
        if kind == "AddDevice":
            number = self.count.get(mine, 1) + 1
            by = r.choice([x for x in st.devices() if person(x) == mine] or [d])
            if evil and r.random() < .2:
                by = r.choice(sorted(self.known))
            p = person(by) if evil else mine
            return {"device": f"{p}.{max(number, self.count.get(p, 1) + 1)}", "by": by, "kit": r.random() < .25}
        if kind == "OpenInvite":
            role = r.choice(("owner", "member", "member", "reader")) if level == 3 or evil else "reader"
            return {"role": role, "uses": r.choice((1, 1, 1, 2)), "confirm": r.random() < .15}
        if kind == "RevokeInvite":
            return {"invite": r.choice(sorted(st.invites))} if st.invites and r.random() < .5 else None
        if kind == "Admit":
            if not st.invites:
                return None
            inv = r.choice(sorted(st.invites))
            people = len(self.count)
            again = [x for x in self.known if not st.came.get(x)] if r.random() < .15 else []
            if again and person(again[0]) != "a" and again[0].endswith(".1"):
                return {"invite": inv, "device": again[0], "kit": None}
            if people > 6:
                return None
            p = chr(ord("a") + people)
            return {"invite": inv, "device": f"{p}.1", "kit": f"{p}.0" if r.random() < .4 else None}
        if kind == "Leave":
            return {}
        if kind == "Seal":
            epochs = [e.id for e in self.R.entries if e.kind == "Genesis" or e.kind == "Next" and not e.body["closed"]]
            return {"epoch": r.choice(epochs), "to": r.choice(st.devices() or ["a.1"]), "wrong": evil and r.random() < .5}
        if not st.devices():
            return None
        x = r.random()
        if x < .35:
            b = self.next_body(st, d)
        elif x < .75:
            own = [q for q in st.devices() if person(q) == mine and q != d]
            pool = own if level < 3 or r.random() < .3 else [q for q in st.devices() if person(q) != mine]
            if not pool:
                return None
            t = r.choice(sorted(pool))
            whole = r.random() < .6
            targets = {q for q in st.devices() if person(q) == person(t)} if whole and person(t) != mine else {t}
            maybe = sorted(st.introduced(targets))
            b = self.next_body(st, d, targets, [q for q in maybe if level == 3 and r.random() < .4])
        elif x < .95:
            ps = st.people()
            roles = {r.choice(ps): r.choice(("reader", "member", "owner"))}
            b = self.next_body(st, d, roles=roles) if level == 3 or evil else None
        else:
            b = self.next_body(st, d, closed=True) if r.random() < .15 else None
        if b and not b["closed"] and evil and r.random() < self.wild * 3:
            trick = r.randrange(5)
            if trick == 0 and b["recipients"]:
                b["flaw"] = r.choice(("seal", "commitment", "former"))
            elif trick == 1 and len(b["recipients"]) > 1:
                b["recipients"].remove(r.choice(b["recipients"]))
            elif trick == 2:
                ghost = r.choice(sorted(self.known))
                b["recipients"] = sorted(set(b["recipients"]) | {ghost})
            elif trick == 3 and b["removes"]:
                b["removes"].remove(r.choice(b["removes"]))
            elif trick == 4:
                b["parents"] = b["parents"][:-1] if len(b["parents"]) > 1 else sorted(b["parents"] + [self.R.entries[0].id])[:1]
        if b and not b["closed"]:
            begun = [e.id for e in self.R.entries if (e.kind == "Genesis" or e.kind == "Next" and not e.body["closed"] and not e.body["flaw"])]
            b["formers"] = sorted(f for f in begun if self.mask(self.known[d]) >> self.R.at[f] & 1 and r.random() < .5)
        return b


def history(seed):
    w = World(seed)
    size = w.r.choice((12, 25, 45))
    for _ in range(size * 6):
        if len(w.R.entries) >= size:
            break
        w.step()
    return {"seed": seed, "entries": [e.json() for e in w.R.entries], "expected": w.R.summary()}


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seeds", type=int, default=120)
    p.add_argument("--start", type=int, default=0)
    a = p.parse_args()
    out = [history(s) for s in range(a.start, a.start + a.seeds)]
    print("[" + ",\n".join(json.dumps(h, sort_keys=True, separators=(",", ":")) for h in out) + "]")
