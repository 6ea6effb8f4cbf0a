"""Which account a table is charged to: a given one, one in a given ledger, or one beside its file.

    visits.parquet      visits.ledger, account "visits"

An account belongs to the data, so it is opened under their name as its `source`: the name of the file, or the
pattern of the files, where it lies beside the ledger, its path elsewhere, and the column of time where units
are windows of time. The first charge opens it; the same words, or fewer, find it then, and other words are
refused, as a budget that can be changed is none. Nor is a second account opened on files of which some belong
to another one already, whatever they are called.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.ledger import Account, Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.tables.arguments import A_UNIT, a_budget
from dalenius.tables.sources.identity import file_names, matches
from dalenius.tables.unopened import Unopened
from dalenius.tables.window_column import BY, check_time, time_of

ENDINGS = {
    ".gz",
    ".zst",
    ".csv",
    ".tsv",
    ".txt",
    ".xlsx",
    ".xlsm",
    ".parquet",
    ".pq",
    ".duckdb",
    ".ddb",
    ".db",
}
"""What is not part of a table's name."""
Where = str | os.PathLike[str] | Ledger
"""A ledger, or where it is."""
_ANY = "account/"
"""What the name of data that are in no file begins with, before the name of their account: no file's does."""


def stem(path: Path) -> str:
    """The name of the table in a file: that of the file without its endings."""
    while path.suffix.lower() in ENDINGS:
        path = path.with_suffix("")
    return path.name


def find_account(
    name: str,
    file: Path | None,
    *,
    unit: Unit | None,
    budget: Budget | None = None,
    account: Account | str | None = None,
    ledger: Where | None = None,
    time: str | None = None,
    pattern: Path | None = None,
    files: Collection[object] = (),
) -> Account:
    """Return the account that a table is charged to; where it is new, its first charge opens it.

    Args:
        name: That of the table.
        file: The one file that the data are in, if they are.
        unit: Who is protected; that of the account where left out.
        budget: What a new account is opened with.
        account: An account, or the name of one; that of the file or of the table where left out.
        ledger: Where the account is; beside the file where left out.
        time: The column of time, where units have windows.
        pattern: The pattern that the files match, where the data are in several.
        files: What tells the files apart that the data are in, as `file_names` has it.
    """
    if isinstance(account, Account):
        return _given(account, unit, budget, ledger, time)
    where = _where(file, ledger)
    named = account or (name if file is None else stem(file))
    wanted = _Wanted(
        named, _label(where, file or pattern), unit, budget, time, frozenset(files), _folder(where)
    )
    if not isinstance(where, Ledger) and not _there(where):
        return _unopened(wanted, where)
    opened = where if isinstance(where, Ledger) else Ledger(where)
    try:
        return _found(opened, wanted)
    except BaseException:
        if opened is not ledger:
            opened.close()
        raise


@dataclass(frozen=True)
class _Wanted:
    """The account that is meant: its name, the name of the data, and what it is to be opened with."""

    name: str
    label: str | None
    unit: Unit | None
    budget: Budget | None
    time: str | None
    files: frozenset[object]
    folder: Path | None
    """That of the ledger, where it is a file."""

    def terms(self, missing: str) -> tuple[Unit, Budget]:
        """Whom it protects and how much; refused where one is not said."""
        if self.unit is None:
            raise InvalidArgument(
                f"There is no {missing} yet, and who is protected is not said.",
                remedy=Message("Pass ", A_UNIT, "."),
            )
        if self.budget is None:
            raise InvalidArgument(
                f"There is no {missing} yet, and no budget to open one with.",
                remedy=Message("Pass ", a_budget("3"), ", the most that may ever be learned of one."),
            )
        return self.unit, self.budget

    @property
    def source(self) -> str | None:
        """What it is opened under."""
        if self.unit is None or self.unit.window is None:
            return self.label
        return f"{self.label or _ANY + self.name}{BY}{self.time}"

    def like(self, account: Account) -> _Wanted:
        """With what is not said taken from an account that is open."""
        unit = self.unit or account.unit
        return replace(self, unit=unit, time=self.time or time_of(account))

    def owns(self, account: Account) -> bool:
        """Whether an account of the same name was opened for these data.

        One without a name of its data was opened before patterns had names, or by hand.
        """
        known = _label_of(account)
        return known == self.label or (known is None and self.label is not None and has_magic(self.label))

    def meets(self, account: Account) -> bool:
        """Whether some of the files belong to an account."""
        label = _label_of(account)
        if label is None or not self.files:
            return False
        path = label if self.folder is None else os.path.join(self.folder, label)
        # A name with such letters in it may be that of a file, or a pattern.
        return not self.files.isdisjoint(file_names({*matches(path), *glob(path, recursive=True)}))


def _given(
    account: Account, unit: Unit | None, budget: Budget | None, ledger: Where | None, time: str | None
) -> Account:
    if budget is not None or ledger is not None:
        raise InvalidArgument(
            "An account has its own ledger and budget.",
            remedy=Message(
                "Leave out ", Argument("budget", "budget"), " and ", Argument("ledger", "ledger"), "."
            ),
        )
    _check_unit(account, unit)
    check_time(account, time)
    return account


def _check_unit(account: Account, unit: Unit | None) -> None:
    if unit is not None and replace(unit, relation=account.unit.relation) != account.unit:
        raise InvalidArgument(
            f"The account {account.name} is for each {account.unit}, not for each {unit}.",
            remedy=Message(
                "Leave out ", Argument("unit", "unit"), ", or pass an account that was opened for it."
            ),
        )


def _where(file: Path | None, ledger: Where | None) -> Where:
    if ledger is not None:
        if isinstance(ledger, Ledger) or "://" in os.fspath(ledger):
            return ledger
        return Path(ledger).absolute()
    if file is None:
        raise InvalidArgument(
            "These data are not in one file beside which a ledger could be kept.",
            remedy=Message(
                "Pass ",
                Argument(
                    "ledger",
                    'ledger="people.ledger", or account=ledger.account("people")',
                    ("people.ledger",),
                ),
                ".",
            ),
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


def _folder(where: Where) -> Path | None:
    path = _path(where)
    return None if path is None else path.resolve().parent


def _label(where: Where, path: Path | None) -> str | None:
    """The name of the data: that of the file or pattern where it lies beside the ledger, else its path."""
    if path is None:
        return None
    return path.name if _folder(where) == path.parent else str(path)


def _label_of(account: Account) -> str | None:
    """The name of the data that an account was opened for, without the column of time."""
    source = account.terms.source
    if source is None:
        return None
    label = source.rpartition(BY)[0] if account.unit.window is not None and BY in source else source
    return None if label.startswith(_ANY) else label


def _found(ledger: Ledger, wanted: _Wanted) -> Account:
    known = {account.name: account for account in ledger.accounts()}
    own = known.get(wanted.name)
    if own is None:
        _check_new(wanted, known.values())
        return _unopened(wanted, ledger, tuple(known.values()))
    _check_own(own, wanted.like(own))
    wanted = wanted.like(own)
    for other in known.values():
        _check_other(other, wanted)
    if wanted.budget is None:
        _check_unit(own, wanted.unit)
        return own
    unit, budget = wanted.terms(f"account {wanted.name}")
    return ledger.open(wanted.name, unit=unit, budget=budget, source=own.terms.source)


def _unopened(wanted: _Wanted, where: Where, others: tuple[Account, ...] = ()) -> Unopened:
    missing = f"account {wanted.name}" if isinstance(where, Ledger) else "ledger"
    unit, budget = wanted.terms(missing)
    terms: Any = {"unit": unit, "budget": budget, "source": wanted.source}

    def opening(profile: str | None) -> Account:
        ledger = where if isinstance(where, Ledger) else Ledger(where)
        _check_new(wanted, ledger.accounts())
        return ledger.open(wanted.name, **terms, profile=profile)

    def exists() -> bool:
        if isinstance(where, Ledger):
            return any(account.name == wanted.name for account in where.accounts())
        if not _there(where):
            return False
        with Ledger(where) as ledger:
            return any(account.name == wanted.name for account in ledger.accounts())

    return Unopened(opening, exists, name=wanted.name, path=_path(where), others=others, **terms)


def _check_new(wanted: _Wanted, accounts: Iterable[Account]) -> None:
    """Refuse data of which some have an account already; somebody may have opened this one meanwhile."""
    for account in accounts:
        if account.name == wanted.name:
            _check_own(account, wanted)
            continue
        _check_other(account, wanted)
        if wanted.meets(account):
            raise InvalidArgument(
                f"Some of these data have an account already: {account.name}.",
                remedy=Message("Pass ", _shared(account), ", which is for all of them."),
            )


def _shared(account: Account) -> Argument:
    """An account that is open, to be charged for these data too."""
    return Argument("account.shared", f"account=ledger.account({account.name!r})", (account.name,))


def _check_own(account: Account, wanted: _Wanted) -> None:
    """Refuse an account of other data, or of windows by another column."""
    if not wanted.owns(account):
        raise InvalidArgument(
            f"The account {account.name} belongs to {_label_of(account) or 'other data'}, not to "
            f"{wanted.label or 'these'}.",
            remedy=Message("Pass ", _shared(account), " where they are about the same units."),
        )
    check_time(account, wanted.time)


def _check_other(account: Account, wanted: _Wanted) -> None:
    """Refuse data that have an account of another name."""
    if account.name != wanted.name and wanted.label is not None and _label_of(account) == wanted.label:
        raise InvalidArgument(
            f"These data have an account already: {account.name}.",
            remedy=Message("Pass ", Argument.of("account", account.name), "."),
        )
