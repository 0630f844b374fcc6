"""A book as GnuCash itself makes, edits and reads it: book.py make|empty|add|account|rename|amount|delete|check FILE …"""
import sys
from datetime import date
from fractions import Fraction

from gnucash import Account, GncNumeric, Session, SessionOpenMode, Split, Transaction
import gnucash.gnucash_core_c as core


def accounts(account):
    for child in account.get_children():
        yield child
        yield from accounts(child)


def money(cents):
    return GncNumeric(int(cents), 100)


class Book:
    def __init__(self, path, mode):
        if mode == SessionOpenMode.SESSION_NEW_STORE:
            # A new book is saved whole once; from the next opening on each commit writes what it changed.
            new = Session("sqlite3://" + path, mode)
            new.save()
            new.end()
            new.destroy()
            mode = SessionOpenMode.SESSION_NORMAL_OPEN
        self.session = Session("sqlite3://" + path, mode)
        self.book = self.session.book
        self.root = self.book.get_root_account()
        self.euro = self.book.get_table().lookup("CURRENCY", "EUR")

    def account(self, name):
        return next(a for a in accounts(self.root) if a.GetName() == name)

    def add_account(self, name, kind, parent):
        account = Account(self.book)
        account.BeginEdit()
        account.SetName(name)
        account.SetType(kind)
        account.SetCommodity(self.euro)
        parent.append_child(account)
        account.CommitEdit()
        return account

    def transactions(self):
        found = {}
        for account in accounts(self.root):
            for split in account.GetSplitList():
                transaction = split.GetParent()
                found[transaction.GetGUID().to_string()] = transaction
        return list(found.values())

    def transaction(self, text):
        return next(t for t in self.transactions() if t.GetDescription() == text)

    def add(self, text, parts):
        """A transaction with one split for each of [(account, cents)]."""
        transaction = Transaction(self.book)
        transaction.BeginEdit()
        transaction.SetCurrency(self.euro)
        transaction.SetDescription(text)
        transaction.SetDate(3, 12, 2026)
        for name, cents in parts:
            split = Split(self.book)
            split.SetParent(transaction)
            split.SetAccount(self.account(name))
            split.SetValue(money(cents))
            split.SetAmount(money(cents))
        transaction.CommitEdit()

    def close(self):
        if self.book.session_not_saved():
            self.session.save()
        self.session.end()
        self.session.destroy()


def parts(words):
    return [(w.split("=")[0], int(w.split("=")[1])) for w in words]


verb, path, *rest = sys.argv[1:]
if verb == "empty":
    Book(path, SessionOpenMode.SESSION_NEW_STORE).close()
elif verb == "make":
    book = Book(path, SessionOpenMode.SESSION_NEW_STORE)
    assets = book.add_account("Assets", core.ACCT_TYPE_ASSET, book.root)
    book.add_account("Bank", core.ACCT_TYPE_BANK, assets)
    book.add_account("Cash", core.ACCT_TYPE_CASH, assets)
    for name in ["Food", "Rent", "Fun"]:
        book.add_account(name, core.ACCT_TYPE_EXPENSE, book.root)
    book.add("Groceries", [("Food", 2500), ("Bank", -2500)])
    book.add("December", [("Rent", 80000), ("Bank", -80000)])
    book.close()
elif verb == "check":
    book = Book(path, SessionOpenMode.SESSION_READ_ONLY)
    for transaction in sorted(book.transactions(), key=lambda t: t.GetDescription()):
        splits = transaction.GetSplitList()
        total = sum(Fraction(s.GetValue().num(), s.GetValue().denom()) for s in splits)
        shown = sorted(f"{s.GetAccount().GetName()}={s.GetValue().num() * 100 // s.GetValue().denom()}" for s in splits)
        balanced = "balanced" if total == 0 and transaction.IsBalanced() else f"off by {total}"
        print(transaction.GetDescription(), " ".join(shown), balanced, sep="|")
    book.session.end()
    book.session.destroy()
else:
    book = Book(path, SessionOpenMode.SESSION_NORMAL_OPEN)
    if verb == "add":
        book.add(rest[0], parts(rest[1:]))
    elif verb == "account":
        book.add_account(rest[0], core.ACCT_TYPE_EXPENSE, book.root)
    elif verb == "rename":
        transaction = book.transaction(rest[0])
        transaction.BeginEdit()
        transaction.SetDescription(rest[1])
        transaction.CommitEdit()
    elif verb == "amount":
        transaction = book.transaction(rest[0])
        transaction.BeginEdit()
        wanted = dict(parts(rest[1:]))
        for split in transaction.GetSplitList():
            name = split.GetAccount().GetName()
            if name in wanted:
                split.SetValue(money(wanted[name]))
                split.SetAmount(money(wanted[name]))
        transaction.CommitEdit()
    elif verb == "delete":
        transaction = book.transaction(rest[0])
        transaction.BeginEdit()
        transaction.Destroy()
        transaction.CommitEdit()
    else:
        sys.exit("unknown: " + verb)
    book.close()
