"""`open_source`: CSV, Parquet, pandas, polars, Arrow, a DuckDB file or connection, as an engine.

    open_source("visits.parquet")                         a table called visits
    open_source("visits/*.parquet", "visits")             several files that are one table
    open_source("hospital.duckdb", table="visits")        all tables of the file, each by its name
    open_source(frame, "visits", more={"wards": other})   several sources together

Everything is read only. Where the engine is ours, that is for all but a connection that is handed in, queries
reach no file but those named here, no extension is loaded, and what does not fit in memory goes to a folder
that only this user can read and that is removed.

CSV files are read as `source_csv` says: no cell, however odd, makes a file fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from glob import glob
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.duckdb import ROOM, DuckdbEngine, Source
from dalenius.tables.source_csv import Csv
from dalenius.tables.source_kinds import Database, Frame, Parquet, Shared, literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "1500MB"
"""The most that DuckDB may use before it writes to the disk."""
_CSV = {".csv", ".tsv", ".txt"}
_PACKED = {".gz"}
_DATABASE = {".duckdb", ".ddb", ".db"}


def open_source(
    source: object,
    name: str | None = None,
    *,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    more: Mapping[str, object] | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
    room: int = ROOM,
) -> DuckdbEngine:
    """An engine whose table `name` is the source; `more` holds other tables by name.

    `table` chooses one of a DuckDB file's tables, `types` gives DuckDB types to columns of a CSV file.
    """
    import duckdb

    if isinstance(source, duckdb.DuckDBPyConnection):
        return DuckdbEngine(source.cursor(), [Shared(name, table), *_frames(more)], room=room)
    folder = mkdtemp(prefix="dalenius-")
    try:
        connection = duckdb.connect(":memory:", config=_settings(folder, memory, threads))
        found = [_recognized(connection, source, name, table, types)]
        found += [_recognized(connection, one, label, None, None) for label, one in (more or {}).items()]
        _lock(connection, [path for one in found for path in getattr(one, "paths", ())], folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return DuckdbEngine(connection, found, folder=folder, room=room)


def _settings(folder: str, memory: str, threads: int | None) -> dict[str, Any]:
    return {
        "temp_directory": folder,
        "memory_limit": memory,
        "threads": threads or os.cpu_count() or 1,
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }


def _lock(connection: DuckDBPyConnection, paths: list[str], folder: str) -> None:
    connection.execute(f"SET allowed_paths = [{', '.join(literal(path) for path in paths)}]")
    connection.execute(f"SET allowed_directories = [{literal(folder)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _recognized(
    connection: DuckDBPyConnection,
    source: object,
    name: str | None,
    table: str | None,
    types: Mapping[str, str] | None,
) -> Source:
    if not isinstance(source, str | os.PathLike):
        return _frame(source, name)
    paths = _paths(os.fspath(source))
    kind, label = _kind(paths[0]), name or _label(paths[0])
    if kind in _DATABASE:
        return Database.open(connection, paths[0], name, table)
    if kind in _CSV:
        return Csv.open(connection, label, paths, types or {})
    if kind in (".parquet", ".pq"):
        return Parquet(label, paths)
    raise InvalidArgument(
        f"What kind of file {Path(paths[0]).name} is cannot be told from its name.",
        remedy="Give it one of the endings .csv, .tsv, .parquet or .duckdb.",
    )


def _paths(pattern: str) -> tuple[str, ...]:
    found = [pattern] if os.path.exists(pattern) else sorted(glob(pattern, recursive=True))
    if not found:
        raise InvalidArgument(f"There is no file {pattern}.", remedy="Check the path.")
    return tuple(os.path.abspath(path) for path in found)


def _kind(path: str) -> str:
    plain = Path(path)
    return (plain.with_suffix("") if plain.suffix.lower() in _PACKED else plain).suffix.lower()


def _label(path: str) -> str:
    plain = Path(path)
    return (plain.with_suffix("") if plain.suffix.lower() in _PACKED else plain).stem


def _frames(more: Mapping[str, object] | None) -> list[Source]:
    return [_frame(source, name) for name, source in (more or {}).items()]


def _frame(source: object, name: str | None) -> Frame:
    kind = type(source).__module__.partition(".")[0]
    if kind not in ("pandas", "polars", "pyarrow"):
        raise InvalidArgument(
            f"A source of type {type(source).__name__} cannot be read.",
            remedy="Pass a path, a frame of pandas or polars, an Arrow table, or a DuckDB connection.",
        )
    return Frame(name or "data", source)
