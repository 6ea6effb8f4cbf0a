"""`Reservation`: a charge on disk, before its release exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument, ReservationLost
from dalenius.ledger.chain_state import WritableState
from dalenius.ledger.clock import seen_at
from dalenius.ledger.closing import check_outside
from dalenius.ledger.entry import Entry
from dalenius.losses.loss import Loss
from dalenius.release import Release
from dalenius.release.receipt import Entry as Line

if TYPE_CHECKING:
    from dalenius.ledger.account import Account


class Reservation:
    """Charged in full. `commit` lets one release out; leaving the block any other way forfeits it."""

    def __init__(self, account: Account, loss: Loss, entry: Entry, *, same_unit: bool = True) -> None:
        self.account, self.loss, self.entry, self._same_unit = account, loss, entry, same_unit
        self._open = True

    @property
    def number(self) -> int:
        """The number of its entry."""
        return self.entry.number

    def commit(self, release: Release, *, digest: str | None = None) -> Release:
        """Let a release out, its receipt naming the entry. Refused where its loss is not the reserved one.

        With a digest of what is released the entry says so, and the release can be told from others later.
        """
        self.check(release)
        charged = release.charged(self.line())
        self.end("commit", {} if digest is None else {"digest": digest})
        return self.account.signed(charged)

    def check(self, release: Release) -> None:
        """Refuse a release of another loss, or one that claims to protect whom it was not charged for."""
        receipt = release.receipt
        if receipt.loss != self.loss:
            raise InvalidArgument(
                "The loss of this release is not the one that was reserved.",
                remedy="Reserve the loss that release.receipt.loss states.",
            )
        unit, own = receipt.unit, self.account.unit
        if unit is not None and unit.relation != receipt.loss.relation:
            raise InvalidArgument(
                f"This release says {unit.relation}, and its loss is for {receipt.loss.relation}.",
                remedy="Make the release with a unit of the relation that its loss has.",
            )
        same = unit is not None and replace(unit, relation=own.relation) == own
        if self._same_unit and unit is not None and not same:
            raise InvalidArgument(
                f"This release protects {unit}; the account is for {own}.",
                remedy="Make the release with the account's unit.",
            )
        if not self._same_unit and (unit is None or same):
            raise InvalidArgument(
                f"This release was charged for smaller units and names {unit or 'no unit'}.",
                remedy="Make the release with the smaller unit that its loss is stated for.",
            )

    def line(self) -> Line:
        """Its entry, as a receipt states it."""
        return line_of(self.account, self.entry)

    def forfeit(self) -> None:
        """Give it up: it stays charged, and nothing is released."""
        self.end("forfeit")

    def end(self, event: str, more: Mapping[str, str] | None = None) -> None:
        """Write that it ended, and what more there is to say; refused where it ended before."""
        check_outside()
        self._open = False
        end_reservation(self.account, self.entry.number, event, more)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open:
            self.forfeit()

    def __repr__(self) -> str:
        return f"Reservation({self.account.name!r}, entry {self.entry.number})"


def end_reservation(account: Account, number: int, event: str, more: Mapping[str, str] | None = None) -> None:
    """Append the entry that ends a reservation; lost in a power cut, it is forfeited later."""
    with account.ledger.store.write(durable=False) as transaction:
        if not transaction.drop_reservation(number):
            raise ReservationLost(
                f"Entry {number} of {account.name} is not reserved any more.",
                remedy="Reserve again; what was charged stays charged.",
            )
        state = WritableState(transaction)
        at = seen_at(state.head, state.witness.now)
        fields = {"reservation": number, **(more or {})}
        state.write(account=account.name, event=event, at=at, fields=fields)


def line_of(account: Account, entry: Entry) -> Line:
    """The entry of a charge, as a receipt states it."""
    left = account.left_after(entry)
    return Line(account=account.name, number=entry.number, hash=entry.hash, left=left)


def committed(account: Account, number: int, digest: str) -> Entry | None:
    """The entry of that number, where it is a charge and was committed for what has this digest."""
    with account.ledger.store.read() as snapshot:
        entries = snapshot.entries(after=number - 1, account=account.name)
        charge = next(entries, None)
        if charge is None or (charge.number, charge.event) != (number, "reserve"):
            return None
        end = next((entry for entry in entries if entry.fields.get("reservation") == number), None)
    said = None if end is None else (end.event, end.fields.get("digest"))
    return charge if said == ("commit", digest) else None
