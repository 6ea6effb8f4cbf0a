"""Which account a table is charged to: a given one, one in a given ledger, or one beside its file.

    visits.parquet      visits.ledger, account "visits"

An account belongs to the data, so it is opened under their name as its `source`: the file's name where it
lies beside the ledger, its path elsewhere, and the column of time where units are windows of time. The first
charge opens it; the same words, or fewer, find it then, and other words are refused, as a budget that can be
changed is none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dalenius.errors import InvalidArgument
from dalenius.ledger import Account, Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.tables.unopened import Unopened

ENDINGS = {".gz", ".zst", ".csv", ".tsv", ".txt", ".parquet", ".pq", ".duckdb", ".ddb", ".db"}
"""What is not part of a table's name."""
Where = str | os.PathLike[str] | Ledger
"""A ledger, or where it is."""
_PATTERN = set("*?[")
_BY = ", time "
"""Between the name of the data and the column of time, where units are windows."""


def stem(path: Path) -> str:
    """The name of the table in a file: that of the file without its endings."""
    while path.suffix.lower() in ENDINGS:
        path = path.with_suffix("")
    return path.name


def file_of(source: object) -> Path | None:
    """The one file that holds a source; None for frames, servers, connections, patterns of several files."""
    if not isinstance(source, str | os.PathLike):
        return None
    if "://" in os.fspath(source) or _PATTERN & set(os.fspath(source)):
        return None
    # A link and what it leads to have one account.
    return Path(source).resolve()


def find_account(
    name: str,
    file: Path | None,
    *,
    unit: Unit | None,
    budget: Budget | None = None,
    account: Account | str | None = None,
    ledger: Where | None = None,
    time: str | None = None,
) -> Account:
    """The account that answers about a table are charged to; where it is new, its first charge opens it."""
    if isinstance(account, Account):
        return _given(account, unit, budget, ledger, time)
    where = _where(file, ledger)
    named = account or (name if file is None else stem(file))
    wanted = _Wanted(named, _label(where, file), unit, budget, time)
    if not isinstance(where, Ledger) and not _there(where):
        return _unopened(wanted, where)
    opened = where if isinstance(where, Ledger) else Ledger(where)
    try:
        return _found(opened, wanted)
    except BaseException:
        if opened is not ledger:
            opened.close()
        raise


def time_of(account: Account) -> str | None:
    """The column of time by which the windows of an account's units are cut, where it was opened for one."""
    return (account.terms.source or "").partition(_BY)[2] or None


@dataclass(frozen=True)
class _Wanted:
    """The account that is meant: its name, the name of the data, and what it is to be opened with."""

    name: str
    label: str | None
    unit: Unit | None
    budget: Budget | None
    time: str | None

    def terms(self, missing: str) -> tuple[Unit, Budget]:
        """Whom it protects and how much; refused where one is not said."""
        if self.unit is None:
            raise InvalidArgument(
                f"There is no {missing} yet, and who is protected is not said.",
                remedy='Pass unit=Unit("patient", column="patient_id").',
            )
        if self.budget is None:
            raise InvalidArgument(
                f"There is no {missing} yet, and no budget to open one with.",
                remedy="Pass budget=Budget(epsilon=3, delta=1e-9), the most that may ever be learned of one.",
            )
        return self.unit, self.budget

    @property
    def source(self) -> str | None:
        """What it is opened under."""
        windows = self.unit is not None and self.unit.window is not None
        return f"{self.label}{_BY}{self.time}" if windows and self.label is not None else self.label

    def like(self, account: Account) -> _Wanted:
        """With what is not said taken from an account that is open."""
        unit = self.unit or account.unit
        return replace(self, unit=unit, time=self.time or time_of(account))


def _given(
    account: Account, unit: Unit | None, budget: Budget | None, ledger: Where | None, time: str | None
) -> Account:
    if budget is not None or ledger is not None:
        raise InvalidArgument(
            "An account has its own ledger and budget.", remedy="Leave out budget and ledger."
        )
    _check_unit(account, unit)
    by = time_of(account)
    if by and time not in (None, by):
        raise InvalidArgument(
            f"The account {account.name} is for windows by {by}.", remedy=f"Pass time={by!r}."
        )
    return account


def _check_unit(account: Account, unit: Unit | None) -> None:
    if unit is not None and replace(unit, relation=account.unit.relation) != account.unit:
        raise InvalidArgument(
            f"The account {account.name} is for each {account.unit}, not for each {unit}.",
            remedy="Leave out unit, or pass an account that was opened for it.",
        )


def _where(file: Path | None, ledger: Where | None) -> Where:
    if ledger is not None:
        if isinstance(ledger, Ledger) or "://" in os.fspath(ledger):
            return ledger
        return Path(ledger).absolute()
    if file is None:
        raise InvalidArgument(
            "These data are not in one file beside which a ledger could be kept.",
            remedy='Pass ledger="people.ledger", or account=ledger.account("people").',
        )
    return file.with_name(f"{stem(file)}.ledger")


def _there(where: str | os.PathLike[str]) -> bool:
    """Whether there is a ledger, or a server that may have one."""
    return "://" in os.fspath(where) or Path(where).exists()


def _path(where: Where) -> Path | None:
    if isinstance(where, Ledger):
        found: Path | None = getattr(where.store, "path", None)
        return found
    return None if "://" in os.fspath(where) else Path(where)


def _label(where: Where, file: Path | None) -> str | None:
    """The name of the data: that of the file where it lies beside the ledger, else its path."""
    if file is None:
        return None
    path = _path(where)
    return file.name if path is not None and path.resolve().parent == file.parent else str(file)


def _found(ledger: Ledger, wanted: _Wanted) -> Account:
    known = {account.name: account for account in ledger.accounts()}
    own = known.get(wanted.name)
    wanted = wanted if own is None else wanted.like(own)
    for other in known.values():
        _check_source(other, wanted)
    if own is None:
        return _unopened(wanted, ledger, tuple(known.values()))
    if wanted.budget is None:
        _check_unit(own, wanted.unit)
        return own
    unit, budget = wanted.terms(f"account {wanted.name}")
    return ledger.open(wanted.name, unit=unit, budget=budget, source=wanted.source)


def _unopened(wanted: _Wanted, where: Where, others: tuple[Account, ...] = ()) -> Unopened:
    missing = f"account {wanted.name}" if isinstance(where, Ledger) else "ledger"
    unit, budget = wanted.terms(missing)
    terms: Any = {"unit": unit, "budget": budget, "source": wanted.source}

    def opening() -> Account:
        ledger = where if isinstance(where, Ledger) else Ledger(where)
        for other in ledger.accounts():
            _check_source(other, wanted)
        return ledger.open(wanted.name, **terms)

    def exists() -> bool:
        if isinstance(where, Ledger):
            return any(account.name == wanted.name for account in where.accounts())
        if not _there(where):
            return False
        with Ledger(where) as ledger:
            return any(account.name == wanted.name for account in ledger.accounts())

    return Unopened(opening, exists, name=wanted.name, path=_path(where), others=others, **terms)


def _check_source(account: Account, wanted: _Wanted) -> None:
    """One account for the same data, and the same data for one account."""
    name, known, source = wanted.name, account.terms.source, wanted.source
    if account.name == name and known != source:
        raise InvalidArgument(
            f"The account {name} belongs to {known or 'other data'}, not to {source or 'these'}.",
            remedy=f"Pass account=ledger.account({name!r}) where they are about the same units.",
        )
    if account.name != name and known is not None and known.split(_BY)[0] == wanted.label:
        raise InvalidArgument(
            f"These data have an account already: {account.name}.", remedy=f"Pass account={account.name!r}."
        )
