"""The stored copy of a prepared table: a Parquet file with one column more, and the version of its source."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import mkdtemp, mkstemp
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.coding import exact, exact_key
from dalenius.tables.engines.duckdb import DuckdbEngine
from dalenius.tables.engines.prepared import Shape
from dalenius.tables.engines.reading import read
from dalenius.tables.rows import Rows
from dalenius.tables.sources.kinds import literal, quoted
from dalenius.tables.sources.prepared_select import SHAPE, Flat

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ENDING = ".prepared"
"""Of a copy's name; no kind of source has it."""
NOTE = "dalenius_identity"
"""What the file keeps its identity under."""


def identity(version: str, types: Mapping[str, str], flat: Flat, rows: Rows) -> str:
    """What a copy is good for: a version of its source, a table and its types, a unit, and groups."""
    grouped = flat.expressions("unit", rows.units), flat.expressions("key", rows.keys)
    said = (version, flat.table, sorted(types.items()), *grouped)
    return hashlib.sha256(repr(said).encode()).hexdigest()


def stored(cursor: DuckDBPyConnection, path: Path, table: str) -> tuple[str, list[Shape]]:
    """The identity of a copy, and the shapes in it."""
    noted = cursor.execute(f"SELECT key, value FROM parquet_kv_metadata({literal(os.path.abspath(path))})")
    notes = {bytes(key): bytes(value).decode() for key, value in noted.fetchall()}
    listed = cursor.execute(f"SELECT {SHAPE}, count(*) FROM {quoted(table)} GROUP BY 1").fetchall()
    pairs = [(str(text), str(text).partition(":"), rows) for text, rows in listed]
    shapes = [Shape(text, int(squares), int(count), rows) for text, (squares, _, count), rows in pairs]
    return notes.get(NOTE.encode(), ""), shapes


def store(cursor: DuckDBPyConnection, engine: DuckdbEngine, flat: Flat, rows: Rows, path: Path) -> None:
    """Written where only this user can look, and put in its place when complete."""
    version = engine.version()
    who = identity(version, read(cursor, partial(types_of, cursor, quoted(flat.table))), flat, rows)
    folder = mkdtemp(prefix="prepare-", dir=engine.folder.path if engine.folder else None)
    half = None
    try:
        made = Path(folder) / "copy.parquet"
        sql = read(cursor, partial(_copy, cursor, flat, rows))
        notes = f"FORMAT parquet, KV_METADATA {{{NOTE}: {literal(who)}}}"
        read(cursor, lambda: cursor.execute(f"COPY ({sql}) TO {literal(str(made))} ({notes})"))
        read(cursor, partial(_check_types, cursor, flat.table, made))
        half = _written(made, path)
        os.replace(half, path)
        half = None
    finally:
        if half is not None:
            half.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _written(made: Path, path: Path) -> Path:
    """The file beside its place, under a name that nobody else has, and with mode 0600 from the beginning."""
    handle, name = mkstemp(prefix=f".{path.name}.", suffix=ENDING, dir=path.parent)
    try:
        with open(made, "rb") as source, os.fdopen(handle, "wb") as half:
            shutil.copyfileobj(source, half, 1 << 20)
            half.flush()
            os.fsync(half.fileno())
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)


def _copy(cursor: DuckDBPyConnection, flat: Flat, rows: Rows) -> str:
    """The rows that belong to a unit, each with its unit's Σ n(g)² and Σ n(g)."""
    table = quoted(flat.table)
    raw = [f"({one}) AS u{i}" for i, one in enumerate(flat.expressions("unit", rows.units))]
    raw += [f"({one}) AS k{i}" for i, one in enumerate(flat.expressions("key", rows.keys))]
    types = types_of(cursor, f"(SELECT {', '.join(raw)} FROM {table})")
    us, gs = [f"u{i}" for i in range(rows.units)], [f"g{i}" for i in range(rows.keys)]
    units = [f"{exact(u, types[u])} AS {u}" for u in us]
    keys = [f"{exact_key(f'k{i}', types[f'k{i}'])} AS g{i}" for i in range(rows.keys)]
    known = " AND ".join(f"{u} IS NOT NULL" for u in us)
    hidden = ", ".join(f"dalenius_{u}" for u in us)
    whole = ", ".join(
        f"{exact(f'({one})', types[u])} AS dalenius_{u}"
        for u, one in zip(us, flat.expressions("unit", rows.units), strict=True)
    )
    same = " AND ".join(f"b.dalenius_{u} IS NOT DISTINCT FROM s.{u}" for u in us)
    # Names that no table has, so that none is taken for the one that is copied.
    return (
        f"WITH dalenius_k AS (SELECT {', '.join(raw)} FROM {table}), "
        f"dalenius_g AS (SELECT {', '.join(units + keys)} FROM dalenius_k WHERE {known}), "
        f"dalenius_n AS (SELECT {', '.join(us + gs)}, count(*) AS n FROM dalenius_g GROUP BY ALL), "
        f"dalenius_s AS (SELECT {', '.join(us)}, sum(n * n) || ':' || sum(n) AS shape, sum(n * n) AS size "
        f"FROM dalenius_n GROUP BY {', '.join(us)}) "
        f"SELECT b.* EXCLUDE ({hidden}), s.shape AS {SHAPE} "
        f"FROM (SELECT *, {whole} FROM {table}) AS b JOIN dalenius_s AS s ON {same} ORDER BY s.size"
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
