"""What is handed to a table is checked before anything is opened or charged: wrong types have remedies."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.ledger import Account, Budget, Ledger
from dalenius.privacy import numbers
from dalenius.privacy.unit import Unit
from dalenius.tables.bounds import Bounds
from dalenius.tables.schema import folded

A_UNIT = Argument("unit", 'unit=Unit("patient", column="patient_id")', ("patient", "patient_id"))
"""An example of who may be protected."""


def a_budget(epsilon: str) -> Argument:
    """Return an example of a budget, with a δ that is small enough for most tables."""
    return Argument("budget", f"budget=Budget(epsilon={epsilon}, delta=1e-9)", (epsilon, "1e-9"))


def check_unit(unit: object) -> None:
    """A unit, or none."""
    if unit is not None and not isinstance(unit, Unit):
        raise InvalidArgument("unit says who is protected, by a Unit.", remedy=Message("Pass ", A_UNIT, "."))


def check_budget(budget: object) -> None:
    """A budget, or none."""
    if budget is not None and not isinstance(budget, Budget):
        known = isinstance(budget, int | float) and not isinstance(budget, bool) and budget > 0
        shown = f"{budget:g}" if known else "3"
        raise InvalidArgument(
            "budget must be a Budget, which has an epsilon and a delta.",
            remedy=Message("Pass ", a_budget(shown), "."),
        )


def check_account(account: object, ledger: object) -> None:
    """An account or its name, a ledger or where it is, or none."""
    if account is not None and (not isinstance(account, Account | str) or account == ""):
        raise InvalidArgument(
            Message(Argument("account", "account"), " must be an account, or the name of one."),
            remedy=Message(
                "Pass ", Argument("account", 'account=ledger.account("visits")', ("visits",)), "."
            ),
        )
    if ledger is not None and (not isinstance(ledger, str | os.PathLike | Ledger) or ledger == ""):
        raise InvalidArgument(
            Message(Argument("ledger", "ledger"), " must be a ledger, or where it is."),
            remedy=Message("Pass ", Argument.of("ledger", "people.ledger"), "."),
        )


def check_texts(**named: object) -> None:
    """Texts, or none; names are not empty."""
    for name, value in named.items():
        empty = value == "" and name not in ("by", "purpose")
        if value is not None and (empty or not isinstance(value, str)):
            raise InvalidArgument(
                Message(Argument(name, name), " must be a text."),
                remedy=Message("Pass ", Argument.of(name, "…"), ", or leave it out."),
            )


def check_counts(**named: object) -> None:
    """Whole numbers from 1, or none."""
    for name, value in named.items():
        if value is not None:
            numbers.count(value, name)


def check_facts(ranges: object, categories: object) -> None:
    """What is declared of columns, by their names."""
    by_name(ranges, "ranges", '{"age": (0, 120)}', _two_ends)
    by_name(categories, "categories", '{"ward": ["A", "B"]}', listed)


def by_name(given: object, name: str, example: str, check: Callable[[object, str], None]) -> None:
    """A mapping from names of columns, or none."""
    if given is None:
        return
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidArgument(
            f"{name} must be a mapping from names of columns.", remedy=f"Pass {name}={example}."
        )
    for key, value in given.items():
        check(value, f'{name}={{"{key}": …}}')


def _two_ends(ends: object, where: str) -> None:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidArgument(
            f"{where.split('=')[0]} must be two ends for each column.",
            remedy=f"Pass {where.replace('…', '(low, high)')}.",
        )


def listed(values: object, where: str) -> None:
    """A list with something in it: a text is none, though Python takes one for a list of letters."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgument(
            f"{where.split('=')[0]} must be a list of values.", remedy=f"Write {where.replace('…', '[…]')}."
        )
    if isinstance(values, Collection) and not len(values):
        raise InvalidArgument(
            f"{where.split('=')[0]} lists no group, so the answer would be empty.",
            remedy="List the groups, or leave it out to have them selected privately.",
        )


def check_keys(keys: object) -> None:
    """The groups that are listed, if any: a list, or lists by column."""
    if isinstance(keys, Mapping):
        by_name(keys, "keys", '{"ward": ["A", "B"]}', listed)
    elif keys is not None:
        listed(keys, "keys=…")


def check_bounds(bounds: object) -> None:
    """Bounds, or none."""
    if bounds is not None and not isinstance(bounds, Bounds):
        raise InvalidArgument(
            "bounds must be dp.Bounds.", remedy="Pass bounds=dp.Bounds(rows=5), or leave it out."
        )


def check_others(main: str, private: object, public: object) -> None:
    """Other tables: sources by name, or names in the same database, each a name of its own."""
    names = [main]
    for kind, others in (("private", private), ("public", public)):
        if others is None:
            continue
        if (
            not isinstance(others, Mapping | Sequence)
            or isinstance(others, str)
            or not all(isinstance(name, str) and name for name in others)
        ):
            raise InvalidArgument(
                f"{kind} must be sources by name, or a list of names of tables in the same database.",
                remedy=f'Pass {kind}={{"wards": "wards.csv"}}.',
            )
        names += [*others]
    for i, name in enumerate(names):
        if folded(name) in map(folded, names[:i]):
            raise InvalidArgument(
                f"Two tables are called {name}.",
                remedy=Message(
                    "Give each a name of its own; ", Argument("name", 'name="…"'), " is that of the first."
                ),
            )


def check_types(types: object) -> None:
    """Types of columns of a CSV, each one that DuckDB knows."""
    by_name(types, "types", '{"age": "BIGINT"}', _a_text)
    if not isinstance(types, Mapping) or not types:
        return
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for column, kind in types.items():
            _check_type(connection, column, kind)


def _a_text(value: object, where: str) -> None:
    if not isinstance(value, str):
        raise InvalidArgument(
            "types must be names of types.",
            remedy=f"Pass {where.replace('…', chr(34) + 'BIGINT' + chr(34))}.",
        )


def _check_type(connection: Any, column: str, kind: str) -> None:
    import duckdb

    plain = kind.replace("(", "").replace(")", "").replace(",", "").replace(" ", "").replace("_", "")
    try:
        if not plain.isalnum():
            raise ValueError
        connection.execute(f"SELECT CAST(NULL AS {kind})")
    except (duckdb.Error, ValueError):
        raise InvalidArgument(
            f"{kind} is no type for {column}.",
            remedy="Use a type of DuckDB, such as BIGINT, DOUBLE, DATE or VARCHAR.",
        ) from None
