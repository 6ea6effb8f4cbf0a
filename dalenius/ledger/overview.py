"""`Overview`: an account at a glance — what is left, who spent it and for what, the newest entries.

What is *left* is the ε of the largest single release that the account would take next, as a share of the
budget's ε: the figure that receipts and `Account.left` state. The *share* of a charge is the part that its
measure takes of the limit on the gauge with most left. Shares of analysts add up to what is used of that
limit, or to more where cells of a division are charged in parallel. *Alone* is the ε at which the charges of
one analyst, or for one purpose, would just be held if there were no others; these do not add up, as privacy
loss composes better than by sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.ledger import balances
from dalenius.ledger.account import Account
from dalenius.ledger.balances import Cell
from dalenius.ledger.budget import stated
from dalenius.ledger.chain_state import ChainState
from dalenius.ledger.clock import seen_at
from dalenius.ledger.entry import Entry
from dalenius.ledger.rules import window_of
from dalenius.ledger.spelling import spelled
from dalenius.ledger.store import Snapshot
from dalenius.ledger.terms import Terms
from dalenius.ledger.texts import LONGEST_NAME, LONGEST_NOTE, shortened
from dalenius.losses.cost import Cost
from dalenius.losses.filters import Filter
from dalenius.losses.loss import Loss
from dalenius.losses.shrinking import shrunk
from dalenius.release.digits import upward

if TYPE_CHECKING:
    from rich.console import Group

CHARGES = ("reserve", "record")
FEW = 1000
"""Entries that are all read to say who spent what; with more, only when asked to."""
LISTED = 20
"""Open reservations that are listed; more are counted."""


@dataclass(frozen=True)
class Spender:
    """An analyst or a purpose: the share of the budget, the ε alone, and how many charges."""

    name: str
    share: float
    alone: float
    charges: int


@dataclass(frozen=True)
class Spending:
    """Who spent what and for what, the largest first; how many charges, and how many were forfeited."""

    charges: int
    forfeited: int
    analysts: tuple[Spender, ...]
    purposes: tuple[Spender, ...]


@dataclass(frozen=True)
class Line:
    """An entry: its loss as an expression and its share where it is a charge."""

    number: int
    at: str
    event: str
    by: str
    purpose: str
    note: str
    cell: str | None
    loss: str | None
    share: float | None
    reservation: int | None
    """The entry that a commit or a forfeit ends."""


@dataclass(frozen=True)
class Allowed:
    """An allowance, and the share of its ε that the largest next release may have, in this window."""

    number: int
    by: str | None
    purpose: str | None
    window: str | None
    budget: str
    left: float


@dataclass(frozen=True)
class Overview:
    """An account at a glance.

    `left` is the ε of the largest next release that the account holds, as a share of the budget's ε; `next`
    is the ε of the largest that is accepted from everyone: an allowance for everyone may make it smaller.
    """

    account: str
    unit: str
    budget: str
    left: float
    spent: float
    next: float
    next_loss: str | None
    spending: Spending | None
    """None where the entries were not gone through."""
    allowances: tuple[Allowed, ...]
    reserved: int
    """How many reservations are open; the first of them are listed."""
    reservations: tuple[Line, ...]
    newest: tuple[Line, ...]
    older: int | None
    """What to pass as `before` for the page of entries before these; None where there are none."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the keys are stable."""
        return asdict(self)

    def __rich__(self) -> Group:
        from dalenius.ledger.show import view

        return view(self)


def overview(
    account: Account, *, newest: int = 5, brief: bool | None = None, before: int | None = None
) -> Overview:
    """Return an account at a glance.

    Args:
        account: The account.
        newest: How many entries to list.
        brief: Whether to leave out who spent what, for which all entries are read; by itself, on accounts
            with more than `FEW` entries.
        before: List entries with a smaller number than this one: the page after an earlier `older`.

    Returns:
        The overview. Unless all entries are read, it takes no longer on a long ledger than on a short one.
    """
    terms, left = account.terms, account.left
    with account.ledger.store.read() as snapshot:
        state = ChainState(snapshot)
        total = balances.total(state, terms.name, terms.limit)
        ruler = Ruler(terms.limit, total)
        if brief is None:
            brief = snapshot.count(terms.name, FEW + 1) > FEW
        page = list(snapshot.entries(account=terms.name, newest=newest, before=before))
        reserved = snapshot.reservations(terms.name)
        tally = None if brief else Tally(terms, snapshot.entries(account=terms.name))
        return Overview(
            account=terms.name,
            unit=str(terms.unit),
            budget=account.budget,
            left=terms.limit.left_share(total),
            spent=upward(terms.limit.spent(total)),
            next=left.epsilon,
            next_loss=None if left.loss is None else spelled(shrunk(left.loss, Fraction(1)) or left.loss),
            spending=None if tally is None else tally.measured(ruler),
            allowances=tuple(_allowances(state, terms, seen_at(state.head, snapshot.witness().now))),
            reserved=len(reserved),
            reservations=tuple(map(ruler.line, _reserved(snapshot, [one.number for one in reserved]))),
            newest=tuple(map(ruler.line, page)),
            older=page[0].number if page and page[0].event != "open" else None,
        )


@dataclass
class Sum:
    """Charges added up by themselves, those about cells in parallel."""

    terms: Terms
    charges: int = 0
    whole: Cost = field(init=False)
    kept: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.whole = self.terms.limit.nothing

    def total(self, account: str) -> str:
        """Of all of them."""
        return self.whole.to_json()

    def balance(self, account: str, scope: str) -> str | None:
        """That of one scope."""
        return self.kept.get(scope)

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """Those of all scopes that begin with a prefix."""
        return {scope: text for scope, text in self.kept.items() if scope.startswith(prefix)}

    def add(self, cost: Cost, cell: Cell | None) -> None:
        """One charge more."""
        self.charges += 1
        if cell is None:
            self.whole = self.whole + cost
            return
        terms = self.terms
        self.whole, fresh = balances.raised(self, terms.name, cost, cell, terms.limit)
        self.kept.update(fresh)


class Tally:
    """Charges by analyst and by purpose, added up in one pass that holds no history."""

    def __init__(self, terms: Terms, entries: Iterator[Entry]) -> None:
        self.analysts: defaultdict[str, Sum] = defaultdict(lambda: Sum(terms))
        self.purposes: defaultdict[str, Sum] = defaultdict(lambda: Sum(terms))
        self.charges = self.forfeited = 0
        for entry in entries:
            self.forfeited += entry.event == "forfeit"
            if entry.event in CHARGES:
                self._charged(entry.fields)

    def _charged(self, fields: Mapping[str, Any]) -> None:
        cost = Cost.from_json(fields["cost"])
        cell = None if fields["cell"] is None else Cell(**fields["cell"])
        self.charges += 1
        self.analysts[fields["by"]].add(cost, cell)
        self.purposes[fields["purpose"]].add(cost, cell)

    def measured(self, ruler: Ruler) -> Spending:
        """As shares of the budget."""
        people, causes = ruler.spenders(self.analysts), ruler.spenders(self.purposes)
        return Spending(self.charges, self.forfeited, people, causes)


class Ruler:
    """Measures charges on the gauge that has most left of an account."""

    def __init__(self, limit: Filter, total: Cost) -> None:
        self.limit = limit
        self.gauge = limit.emptiest(total)

    def share(self, cost: Cost) -> float:
        """The share of the budget that a cost takes."""
        held = self.gauge is not None and self.gauge in cost.amounts
        return float(self.limit.share(self.gauge or "", cost)) if held else 1.0

    def spenders(self, sums: dict[str, Sum]) -> tuple[Spender, ...]:
        """The largest first."""
        found = ((name, one.whole, one.charges) for name, one in sums.items())
        rows = [Spender(name, self.share(t), upward(self.limit.spent(t)), n) for name, t, n in found]
        return tuple(sorted(rows, key=lambda row: (-row.share, row.name)))

    def line(self, entry: Entry) -> Line:
        """An entry, its share measured where it is a charge."""
        fields, charge = entry.fields, entry.event in CHARGES
        cell = fields.get("cell")
        return Line(
            number=entry.number,
            at=entry.at,
            event=entry.event,
            by=shortened(fields.get("by", ""), LONGEST_NAME),
            purpose=shortened(fields.get("purpose", ""), LONGEST_NAME),
            note=shortened(fields.get("note", ""), LONGEST_NOTE),
            cell=cell and f"{cell['division']}={cell['name']}",
            loss=shortened(spelled(Loss.from_json(fields["loss"])), LONGEST_NOTE) if charge else None,
            share=self.share(Cost.from_json(fields["cost"])) if charge else None,
            reservation=fields.get("reservation"),
        )


def _reserved(snapshot: Snapshot, numbers: Sequence[int]) -> list[Entry]:
    found = (snapshot.entry(number) for number in numbers[:LISTED])
    return [entry for entry in found if entry is not None]


def _allowances(state: ChainState, terms: Terms, at: str) -> Iterator[Allowed]:
    for one in balances.allowances(state, terms.name):
        total = balances.part(state, terms.name, one.scope(at), one.limit)
        window = one.window and f"{one.window} {window_of(at, one.window)}"
        left = one.limit.left_share(total)
        yield Allowed(one.number, one.by, one.purpose, window, stated(one.limit), left)
