"""`table`: from a source to a `Table`, with its schema and its account."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dalenius.errors import Argument, InvalidArgument, Message, MissingExtra, QueryFailed
from dalenius.ledger import Account, Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.tables.arguments import (
    check_account,
    check_bounds,
    check_budget,
    check_counts,
    check_facts,
    check_others,
    check_texts,
    check_types,
    check_unit,
)
from dalenius.tables.beside import Where, find_account, stem
from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import Engine
from dalenius.tables.engines.spark import is_spark, open_spark
from dalenius.tables.facts import Facts, Profile
from dalenius.tables.keeping import Keeper, with_facts
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import End, Private, Public, Schema, folded, own
from dalenius.tables.sources.forms import Form, declared
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
    encoding: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    null: Sequence[str] | None = None,
    ranges: Mapping[str, tuple[End, End]] | None = None,
    categories: Mapping[str, Sequence[KeyPart]] | None = None,
    rows_per_unit: int | None = None,
    bounds: Bounds | None = None,
    public: Others | None = None,
    private: Others | None = None,
    time: str | None = None,
    public_size: int | None = None,
    by: str = "",
) -> Table:
    """Open a private table, charged to an account: one in a ledger beside its source where none is given.

    The first charge opens the account; then `unit`, `time` and `budget` may be left out. What is declared
    when the account is opened is kept with it, and so is what is found of how a file is to be read; later it
    need not be said again. See docs/tables.md and docs/engines.md.

    Args:
        source: A CSV, Excel, Parquet or DuckDB file, a frame of pandas or polars, an Arrow table, a DuckDB
            connection, the address of a PostgreSQL server or a connection of psycopg, a DataFrame or session
            of Spark, or a table of Ibis.
        unit: Who is protected.
        budget: The most that may ever be spent; needed once.
        account: An account, or the name of one.
        ledger: The ledger, where it is not the one beside the source.
        name: What the table is called in SQL.
        table: One of a database's tables, or of a workbook's sheets.
        types: Types of columns of a CSV or Excel file, as DuckDB names them.
        encoding: The encoding of a CSV file, such as "windows-1252"; found where left out.
        decimal: The decimal mark of a file, "." or ","; found where left out.
        dates: How a file writes dates, such as "DD.MM.YYYY"; found where left out.
        null: Cells of a file that stand for no value, besides empty ones.
        ranges: Where the values of columns lie.
        categories: Which values columns have.
        rows_per_unit: The most rows that a unit has.
        bounds: What of a unit counts, where a question says nothing else.
        public: Public tables to join with, by name.
        private: More tables of the same units, by name.
        time: The column by which the windows of units are cut.
        public_size: How many units there are, where that is public.
        by: Who asks, where no other is named.
    """
    check_unit(unit)
    check_budget(budget)
    check_account(account, ledger)
    check_texts(name=name, table=table, time=time, by=by)
    check_counts(rows_per_unit=rows_per_unit, public_size=public_size)
    check_facts(ranges, categories)
    check_types(types)
    check_bounds(bounds)
    form = declared(types=types, encoding=encoding, decimal=decimal, dates=dates, null=null)
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
    engine = _opened(source, named, table, form, elsewhere)
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
        said = {each: facts.of(each, others) for each in (named, *others)}
        said[named] = replace(
            said[named], form=form, rows_per_unit=rows_per_unit, public_size=public_size, bounds=bounds
        )
        _check_columns(engine, said)
        shown = partial(_schema, engine, who, by_time, seen)
        keeper = Keeper(engine, charged, said, shown)
        # What is declared is checked now, and not when something is asked.
        keeper.state()
        undo.pop_all()
    return Table(engine, keeper, charged, unit=who, by=by)


def _check_columns(engine: Engine, said: Mapping[str, Facts]) -> None:
    """Refuse what is declared of columns that are not there."""
    main = next(iter(said))
    for name, facts in said.items():
        known = Private(name, _columns(engine, name, main), Unit("row")).columns
        for column in (*facts.ranges, *facts.categories):
            own(known, column)


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

    def of(self, table: str, others: Collection[str]) -> Facts:
        """What is declared of one table: names without a table are about the main one."""
        found: dict[str, dict[str, Any]] = {kind: {} for kind in self.declared}
        for kind, facts in self.declared.items():
            for name, fact in facts.items():
                owner, mark, column = name.partition(".")
                named = (owner, column) if mark and owner in {self.main, *others} else (self.main, name)
                if named[0] == table:
                    found[kind][named[1]] = fact
        return Facts(ranges=found["ranges"], categories=found["categories"])


def _schema(engine: Engine, unit: Unit, time: str | None, public: Collection[str], known: Profile) -> Schema:
    """The schema of the tables that are known, the main one first."""
    tables: list[Private | Public] = []
    main = next(iter(known.tables))
    for name, facts in known.tables.items():
        columns = _columns(engine, name, main)
        _check_told(engine, columns, unit)
        tables.append(with_facts(Private(name, columns, unit, time), facts))
    tables += [Public(name, _columns(engine, name, main)) for name in public]
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
            Message(
                Argument("unit.missing", 'missing="each row"', ("each row",)),
                " needs a source that DuckDB reads, and ids that are not time stamps.",
            ),
            remedy="Give rows without an id one of their own in the source, such as "
            "COALESCE(patient_id, 'row ' || visit_id) in a view.",
        )


def _check_alone(table: str | None) -> None:
    if table is not None:
        raise InvalidArgument(
            "A table of Ibis is one table already.",
            remedy=Message(
                "Leave out ",
                Argument("table", "table="),
                "; ",
                Argument.of("name", "…"),
                " gives it another name.",
            ),
        )


def _named(others: Others | None, served: bool) -> dict[str, Any]:
    listed = dict(others) if isinstance(others, Mapping) else dict.fromkeys(others or ())
    return in_database(listed) if served else listed


def _opened(source: object, name: str, table: str | None, form: Form, more: Mapping[str, object]) -> Engine:
    if is_server(source):
        return _served(source, name, table, more)
    from dalenius.tables.sources.opening import open_source

    try:
        if is_spark(source):
            return open_spark(source, name, table=table, more=more)
        return open_source(source, name, table=table, form=form, more=more)
    except (InvalidArgument, MissingExtra):
        raise
    except Exception:
        # What an engine says of a file that it cannot read may repeat what is in it.
        raise _unreadable() from None


def _served(source: object, name: str, table: str | None, more: Mapping[str, object]) -> Engine:
    from dalenius.tables.sources.databases import open_server

    if table is None:
        raise InvalidArgument(
            "Which table is meant is not said.", remedy=Message("Pass ", Argument.of("table", "visits"), ".")
        )
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
