"""Which account a table is charged to: a given one, one in a given ledger, or one beside its file.

    visits.parquet      visits.ledger, account "visits"

An account belongs to the data, so it is opened under their name as its `source`: the file's name where it
lies beside the ledger, its path elsewhere, and the column of time where units are windows of time. Opening it
again with the same words finds it; other words are refused, as a budget that can be changed is none.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from dalenius.errors import InvalidArgument
from dalenius.ledger import Account, Budget, Ledger
from dalenius.privacy.unit import Unit

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
    """The one file that holds a source; None for frames, connections and patterns of several files."""
    if not isinstance(source, str | os.PathLike) or _PATTERN & set(os.fspath(source)):
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
    """The account that answers about a table are charged to, opened where it is new."""
    if isinstance(account, Account):
        return _given(account, unit, budget, ledger, time)
    if unit is None:
        raise InvalidArgument(
            "Who is protected is not said.", remedy='Pass unit=Unit("patient", column="patient_id").'
        )
    opened = _ledger(file, ledger, budget)
    named = account or (name if file is None else stem(file))
    try:
        return _open(opened, named, _label(opened, file), unit, budget, time)
    except BaseException:
        if opened is not ledger:
            opened.close()
        raise


def _given(
    account: Account, unit: Unit | None, budget: Budget | None, ledger: Where | None, time: str | None
) -> Account:
    if budget is not None or ledger is not None:
        raise InvalidArgument(
            "An account has its own ledger and budget.", remedy="Leave out budget and ledger."
        )
    _check_unit(account, unit)
    by = (account.terms.source or "").partition(_BY)[2]
    if by and by != time:
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


def _ledger(file: Path | None, ledger: Where | None, budget: Budget | None) -> Ledger:
    if isinstance(ledger, Ledger):
        return ledger
    if ledger is not None:
        where = ledger
    elif file is not None:
        where = file.with_name(f"{stem(file)}.ledger")
    else:
        raise InvalidArgument(
            "These data are not in one file beside which a ledger could be kept.",
            remedy='Pass ledger="people.ledger", or account=ledger.account("people").',
        )
    if budget is None and "://" not in os.fspath(where) and not Path(where).exists():
        raise _no_budget("ledger")
    return Ledger(where)


def _label(ledger: Ledger, file: Path | None) -> str | None:
    """The name of the data: that of the file where it lies beside the ledger, else its path."""
    if file is None:
        return None
    path: Path | None = getattr(ledger.store, "path", None)
    return file.name if path is not None and path.resolve().parent == file.parent else str(file)


def _open(
    ledger: Ledger, name: str, label: str | None, unit: Unit, budget: Budget | None, time: str | None
) -> Account:
    source = label if label is None or unit.window is None else f"{label}{_BY}{time}"
    known = {account.name: account for account in ledger.accounts()}
    for other in known.values():
        _check_source(other, name, label, source)
    if budget is not None:
        return ledger.open(name, unit=unit, budget=budget, source=source)
    if name not in known:
        raise _no_budget(f"account {name}")
    _check_unit(known[name], unit)
    return known[name]


def _check_source(account: Account, name: str, label: str | None, source: str | None) -> None:
    """One account for the same data, and the same data for one account."""
    known = account.terms.source
    if account.name == name and known != source:
        raise InvalidArgument(
            f"The account {name} belongs to {known or 'other data'}, not to {source or 'these'}.",
            remedy=f"Pass account=ledger.account({name!r}) where they are about the same units.",
        )
    if account.name != name and known is not None and known.split(_BY)[0] == label:
        raise InvalidArgument(
            f"These data have an account already: {account.name}.", remedy=f"Pass account={account.name!r}."
        )


def _no_budget(missing: str) -> InvalidArgument:
    return InvalidArgument(
        f"There is no {missing} yet, and no budget to open one with.",
        remedy="Pass budget=Budget(epsilon=3, delta=1e-9), the most that may ever be learned of a unit.",
    )
