"""`table`: from a source to a `Table`, with its schema and its account."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from dalenius.errors import InvalidArgument, MissingExtra, QueryFailed
from dalenius.ledger import Account, Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.tables.arguments import (
    check_account,
    check_budget,
    check_counts,
    check_facts,
    check_others,
    check_texts,
    check_types,
    check_unit,
)
from dalenius.tables.beside import Where, find_account, stem
from dalenius.tables.engines.engine import Engine
from dalenius.tables.engines.spark import is_spark, open_spark
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import End, Private, Public, Schema, folded
from dalenius.tables.sources.ibis_tables import behind, is_ibis
from dalenius.tables.sources.identity import file_of, pattern_of
from dalenius.tables.sources.servers import in_database, is_server, short
from dalenius.tables.table import Table
from dalenius.tables.window_column import time_of

Others = Mapping[str, Any] | Sequence[str]
"""Other tables: sources by name, or only the names of those in the same database."""


def table(
    source: Any,
    *,
    unit: Unit | None = None,
    budget: Budget | None = None,
    account: Account | str | None = None,
    ledger: Where | None = None,
    name: str | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    ranges: Mapping[str, tuple[End, End]] | None = None,
    categories: Mapping[str, Sequence[KeyPart]] | None = None,
    rows_per_unit: int | None = None,
    public: Others | None = None,
    private: Others | None = None,
    time: str | None = None,
    public_size: int | None = None,
    by: str = "",
) -> Table:
    """A private table, charged to an account: one in a ledger beside its source where none is given.

    `source` is a CSV, Parquet or DuckDB file, a frame of pandas or polars, an Arrow table, a DuckDB
    connection, the address of a PostgreSQL server or a connection of psycopg, a DataFrame or session of
    Spark, or a table of Ibis; `unit` says who is protected, and `time` by which column its windows are cut.
    The first charge opens the account; then `unit`, `time` and `budget` may be left out. What is publicly
    known is declared: `ranges`, `categories`, `rows_per_unit`, `public_size`. `public` names public tables to
    join with, `private` more tables of the same units. `by` is who asks, where no other is named. `table`
    chooses one of a database, `types` says how a CSV is read. See docs/tables.md and docs/engines.md.
    """
    check_unit(unit)
    check_budget(budget)
    check_account(account, ledger)
    check_texts(name=name, table=table, time=time, by=by)
    check_counts(rows_per_unit=rows_per_unit, public_size=public_size)
    check_facts(ranges, categories)
    check_types(types)
    if is_ibis(source):
        _check_alone(table)
        source, table = behind(source)
    file = file_of(source)
    served = is_server(source)
    within = short(table) if table and (served or is_spark(source)) else table
    named = name or within or ("data" if file is None else stem(file))
    check_others(named, private, public)
    others, seen = (_named(each, served) for each in (private, public))
    check_others(named, others, seen)
    elsewhere = {label: one for label, one in {**others, **seen}.items() if one is not None}
    engine = _opened(source, named, table, types, elsewhere)
    with ExitStack() as undo:
        undo.callback(engine.close)
        # A file that cannot be read is said to be so before anything is asked of whoever names it.
        _columns(engine, named, named)
        _check_apart(engine, [named, *others], seen)
        charged = find_account(
            named,
            file,
            unit=unit,
            budget=budget,
            account=account,
            ledger=ledger,
            time=time,
            pattern=pattern_of(source),
            files=_files(engine),
        )
        if not isinstance(account, Account) and not isinstance(ledger, Ledger):
            undo.callback(charged.ledger.close)
        who, by_time = unit or charged.unit, time or time_of(charged)
        facts = _Facts(named, {"ranges": ranges or {}, "categories": categories or {}})
        schema = _schema(engine, facts, who, by_time, rows_per_unit, others, seen)
        undo.pop_all()
    return Table(engine, schema, charged, unit=who, by=by, public_size=public_size)


def _files(engine: Engine) -> frozenset[object]:
    """The files that the data are in, as far as that is known."""
    from dalenius.tables.engines.duckdb import DuckdbEngine

    return engine.files() if isinstance(engine, DuckdbEngine) else frozenset()


def _check_apart(engine: Engine, private: Sequence[str], public: Collection[str]) -> None:
    """Refuse a public table that is a private one by another name: what it holds would be free."""
    for name in (*private, *public):
        # What cannot be opened is said to be so first.
        _columns(engine, name, private[0])
    for name in public:
        for other in private:
            if engine.same(other, name):
                raise InvalidArgument(
                    f"The public table {name} has the same data as the private table {other}.",
                    remedy="Leave it out of public, and name as public only what everybody may see.",
                )


@dataclass(frozen=True)
class _Facts:
    """What is declared of columns, to be told apart by table."""

    main: str
    declared: Mapping[str, Mapping[str, Any]]

    def of(self, table: str, others: Collection[str]) -> dict[str, dict[str, Any]]:
        """What is declared of one table: names without a table are about the main one."""
        found: dict[str, dict[str, Any]] = {kind: {} for kind in self.declared}
        for kind, facts in self.declared.items():
            for name, fact in facts.items():
                owner, mark, column = name.partition(".")
                named = (owner, column) if mark and owner in {self.main, *others} else (self.main, name)
                if named[0] == table:
                    found[kind][named[1]] = fact
        return found


def _schema(
    engine: Engine,
    facts: _Facts,
    unit: Unit,
    time: str | None,
    rows_per_unit: int | None,
    private: Collection[str],
    public: Collection[str],
) -> Schema:
    tables: list[Private | Public] = []
    for name in (facts.main, *private):
        most = rows_per_unit if name == facts.main else None
        declared: Any = facts.of(name, private)
        columns = _columns(engine, name, facts.main)
        _check_told(engine, columns, unit)
        tables.append(Private(name, columns, unit, time, rows_per_unit=most, **declared))
    tables += [Public(name, _columns(engine, name, facts.main)) for name in public]
    return Schema(tables, engine.public, engine.dialect)


def _check_told(engine: Engine, columns: Mapping[str, str], unit: Unit) -> None:
    """Refuse units by a column of another type than those that have a spelling for each value.

    Two values of such a type may count as one, and a single one may make every question fail, such as a
    duration that is longer than the engine can hold.
    """
    kinds = {folded(name): kind for name, kind in columns.items()}
    if unit.column and kinds.get(folded(unit.column)) == "other":
        raise InvalidArgument(
            f"A unit cannot be told by {unit.column}: of its type not all values can be told apart.",
            remedy="Name the unit by a column of numbers, texts or dates.",
        )
    if unit.missing == "each row":
        _check_numbered(engine, kinds.get(folded(unit.column or "")))


def _check_numbered(engine: Engine, kind: str | None) -> None:
    """Refuse rows as units of their own where an engine does not number them once and for all steps.

    DuckDB evaluates SQL with window functions once for a question. PostgreSQL and Spark evaluate a query
    again for each step, and may number the rows otherwise.
    """
    if engine.dialect != "duckdb" or kind == "moment":
        raise InvalidArgument(
            'missing="each row" needs a source that DuckDB reads, and ids that are no time stamps.',
            remedy="Give rows without an id one of their own in the source, such as "
            "COALESCE(patient_id, 'row ' || visit_id) in a view.",
        )


def _check_alone(table: str | None) -> None:
    if table is not None:
        raise InvalidArgument(
            "A table of Ibis is one table already.",
            remedy='Leave out table=; name="…" gives it another name.',
        )


def _named(others: Others | None, served: bool) -> dict[str, Any]:
    listed = dict(others) if isinstance(others, Mapping) else dict.fromkeys(others or ())
    return in_database(listed) if served else listed


def _opened(
    source: object, name: str, table: str | None, types: Mapping[str, str] | None, more: Mapping[str, object]
) -> Engine:
    if is_server(source):
        return _served(source, name, table, more)
    from dalenius.tables.sources.opening import open_source

    try:
        if is_spark(source):
            return open_spark(source, name, table=table, more=more)
        return open_source(source, name, table=table, types=types, more=more)
    except (InvalidArgument, MissingExtra):
        raise
    except Exception:
        # What an engine says of a file that it cannot read may repeat what is in it.
        raise _unreadable() from None


def _served(source: object, name: str, table: str | None, more: Mapping[str, object]) -> Engine:
    from dalenius.tables.sources.databases import open_server

    if table is None:
        raise InvalidArgument("Which table is meant is not said.", remedy='Pass table="visits".')
    return open_server(source, {name: table, **more})


def _columns(engine: Engine, name: str, main: str) -> Mapping[str, str]:
    try:
        return engine.columns(name)
    except QueryFailed:
        if name == main:
            raise _unreadable() from None
        raise InvalidArgument(
            f"The table {name} cannot be opened; nothing was charged.",
            remedy=f'Say where it is, {{"{name}": "{name}.csv"}}, unless it is in the same database.',
        ) from None


def _unreadable() -> InvalidArgument:
    return InvalidArgument(
        "The source cannot be opened; nothing was charged.",
        remedy="See that it is whole, that it may be read, and that its ending says what it is.",
    )
