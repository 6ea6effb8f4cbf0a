"""The stored copy of a prepared table: a Parquet file with one column more, and the version of its source."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.duckdb import DuckdbEngine
from dalenius.tables.engines.reading import read
from dalenius.tables.engines.types import key_of
from dalenius.tables.prepared_select import SHAPE, Flat
from dalenius.tables.rows import Rows
from dalenius.tables.source_kinds import literal, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NOTE = "dalenius_identity"
"""What the file keeps its identity under."""


def identity(version: str, types: Mapping[str, str], flat: Flat, rows: Rows) -> str:
    """What a copy is good for: a version of its source, a table and its types, a unit, and groups."""
    grouped = flat.expressions("unit", rows.units), flat.expressions("key", rows.keys)
    said = (version, flat.table, sorted(types.items()), *grouped)
    return hashlib.sha256(repr(said).encode()).hexdigest()


def stored(cursor: DuckDBPyConnection, path: Path, table: str) -> tuple[str, list[tuple[str, int, int]]]:
    """The identity of a copy, and the shapes in it."""
    noted = cursor.execute(f"SELECT key, value FROM parquet_kv_metadata({literal(os.path.abspath(path))})")
    notes = {bytes(key): bytes(value).decode() for key, value in noted.fetchall()}
    listed = cursor.execute(f"SELECT DISTINCT {SHAPE} FROM {quoted(table)}").fetchall()
    pairs = [(str(text), str(text).partition(":")) for (text,) in listed]
    shapes = [(text, int(squares), int(rows)) for text, (squares, _, rows) in pairs]
    return notes.get(NOTE.encode(), ""), shapes


def store(cursor: DuckDBPyConnection, engine: DuckdbEngine, flat: Flat, rows: Rows, path: Path) -> None:
    """Written where only this user can look, and put in its place when complete."""
    version = engine.version()
    who = identity(version, read(cursor, partial(types_of, cursor, quoted(flat.table))), flat, rows)
    folder = mkdtemp(prefix="prepare-", dir=engine.folder)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made = Path(folder) / "copy.parquet"
        sql = read(cursor, partial(_copy, cursor, flat, rows))
        notes = f"FORMAT parquet, KV_METADATA {{{NOTE}: {literal(who)}}}"
        read(cursor, lambda: cursor.execute(f"COPY ({sql}) TO {literal(str(made))} ({notes})"))
        read(cursor, partial(_check_types, cursor, flat.table, made))
        os.close(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        shutil.copyfile(made, half)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _copy(cursor: DuckDBPyConnection, flat: Flat, rows: Rows) -> str:
    """The rows that belong to a unit, each with its unit's Σ n(g)² and Σ n(g)."""
    table = quoted(flat.table)
    units = [f"({one}) AS u{i}" for i, one in enumerate(flat.expressions("unit", rows.units))]
    raw = [f"({one}) AS k{i}" for i, one in enumerate(flat.expressions("key", rows.keys))]
    described = cursor.execute(f"DESCRIBE SELECT {', '.join(raw)} FROM {table}").fetchall()
    keys = [f"{key_of(str(column[0]), str(column[1]))} AS g{i}" for i, column in enumerate(described)]
    us, gs = [f"u{i}" for i in range(rows.units)], [f"g{i}" for i in range(rows.keys)]
    known = " AND ".join(f"{u} IS NOT NULL" for u in us)
    hidden = ", ".join(f"dalenius_{u}" for u in us)
    whole = ", ".join(
        f"({one}) AS dalenius_u{i}" for i, one in enumerate(flat.expressions("unit", rows.units))
    )
    same = " AND ".join(f"b.dalenius_{u} IS NOT DISTINCT FROM s.{u}" for u in us)
    return (
        f"WITH k AS (SELECT {', '.join(units + raw)} FROM {table}), "
        f"g AS (SELECT {', '.join(us + keys)} FROM k WHERE {known}), "
        f"n AS (SELECT {', '.join(us + gs)}, count(*) AS n FROM g GROUP BY ALL), "
        f"s AS (SELECT {', '.join(us)}, sum(n * n) || ':' || sum(n) AS shape, sum(n * n) AS size "
        f"FROM n GROUP BY {', '.join(us)}) "
        f"SELECT b.* EXCLUDE ({hidden}), s.shape AS {SHAPE} "
        f"FROM (SELECT *, {whole} FROM {table}) AS b JOIN s ON {same} ORDER BY s.size"
    )


def _check_types(cursor: DuckDBPyConnection, table: str, made: Path) -> None:
    """Groups must not fall together in the copy, as they would where Parquet has no such type."""
    before = types_of(cursor, quoted(table))
    after = types_of(cursor, f"read_parquet({literal(str(made))})")
    changed = [
        column for column, kind in before.items() if after[column] != kind and not kind.startswith("ENUM")
    ]
    if changed:
        raise InvalidArgument(
            f"The type of the column {changed[0]} cannot be kept in a copy.",
            remedy="Ask without preparing, or give the column another type in the source.",
        )


def types_of(cursor: DuckDBPyConnection, source: str) -> dict[str, str]:
    """The columns of what goes behind FROM, with DuckDB's own types."""
    described = cursor.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    return {str(column[0]): str(column[1]) for column in described}
