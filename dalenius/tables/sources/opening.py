"""`open_source`: CSV, Parquet, pandas, polars, Arrow, a DuckDB file or connection, as an engine of DuckDB.

    open_source("visits.parquet")                         a table called visits
    open_source("visits/*.parquet", "visits")             several files that are one table
    open_source("hospital.duckdb", table="visits")        all tables of the file, each by its name
    open_source(frame, "visits", more={"wards": other})   several sources together

Everything is read only. Where the engine is ours, that is for all but a connection that is handed in, queries
reach no file but those named here, no extension is loaded, and what does not fit in memory goes to a folder
that only this user can read and that is removed.

CSV files are read as `source_csv` says, and objects in frames of pandas as `source_frame` does: no cell,
however odd, makes a source fail. Texts are compared letter by letter, whatever collation a database has for
them. Names that begin with dalenius_ are the engine's own, and refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.duckdb import ROOM, DuckdbEngine, Source
from dalenius.tables.sources.csv_files import Csv
from dalenius.tables.sources.folder import Folder
from dalenius.tables.sources.forms import Form
from dalenius.tables.sources.frames import frame_of
from dalenius.tables.sources.identity import matches
from dalenius.tables.sources.kinds import Database, Parquet, Shared, check_columns, check_tables, literal
from dalenius.tables.sources.readable import EXCEL

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "900MB"
"""The most that DuckDB may use before it writes to the disk."""
_CSV = {".csv", ".tsv", ".txt"}
_PARQUET = {".parquet", ".pq"}
_PACKED = {".gz"}
_DATABASE = {".duckdb", ".ddb", ".db"}
_SETTING = re.compile(r"\b(password|passfile|host|hostaddr|dbname|user|service)\s*=")
"""In a text that names a server, and may hold a password."""


def open_source(
    source: object,
    name: str | None = None,
    *,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    form: Form | None = None,
    more: Mapping[str, object] | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
    room: int = ROOM,
) -> DuckdbEngine:
    """Return an engine whose table `name` is the source.

    Args:
        source: What is read.
        name: What its table is called; the name of the file where left out.
        table: One of a DuckDB file's tables, or of an Excel file's sheets.
        types: DuckDB types of columns of a CSV file, where nothing else is said of its form.
        form: How the texts of a CSV file are read, as far as it is declared.
        more: Other tables by name.
        memory: The most that DuckDB may use before it writes to the disk.
        threads: How many DuckDB uses.
        room: The bytes of rows that are kept at a time.
    """
    import duckdb

    others, said = dict(more or {}), form or Form(types=dict(types or {}))
    check_tables([*([name] if name else []), *others])
    if isinstance(source, duckdb.DuckDBPyConnection):
        cursor = source.cursor()
        shared = Shared.open(cursor, name, table)
        frames = [frame_of(cursor, one, label, Form()) for label, one in others.items()]
        return _checked(DuckdbEngine(cursor, [shared, *frames], room=room))
    folder = Folder.make()
    try:
        connection = duckdb.connect(":memory:", config=_settings(folder.path, memory, threads))
        found = [_recognized(connection, source, name, table, said, folder.path)]
        found += [
            _recognized(connection, one, label, None, Form(), folder.path) for label, one in others.items()
        ]
        _lock(connection, [path for one in found for path in getattr(one, "paths", ())], folder.path)
    except BaseException:
        folder.remove()
        raise
    return _checked(DuckdbEngine(connection, found, folder=folder, room=room))


def open_copy(path: str | os.PathLike[str], name: str, *, room: int = ROOM) -> DuckdbEngine:
    """A stored copy of a prepared table, which is no source: it has a column of the engine's own."""
    import duckdb

    folder = Folder.make()
    try:
        connection = duckdb.connect(":memory:", config=_settings(folder.path, MEMORY, None))
        copy = Parquet(name, (os.path.abspath(path),))
        _lock(connection, list(copy.paths), folder.path)
    except BaseException:
        folder.remove()
        raise
    return DuckdbEngine(connection, [copy], folder=folder, room=room)


def _checked(engine: DuckdbEngine) -> DuckdbEngine:
    """The names of columns are looked at, and nothing else is read."""
    try:
        for names in engine.tables().values():
            check_columns(names)
    except BaseException:
        engine.close()
        raise
    return engine


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
    form: Form,
    folder: str,
) -> Source:
    if not isinstance(source, str | os.PathLike):
        return frame_of(connection, source, name, form)
    paths = _paths(os.fspath(source))
    kinds, label = {_kind(path) for path in paths}, name or _label(paths[0])
    check_tables([label])
    if kinds <= _DATABASE:
        return Database.open(connection, paths[0], name, table)
    if kinds <= _CSV:
        return Csv.open(connection, label, paths, form, folder=folder)
    if kinds <= set(EXCEL):
        return Csv.open(connection, label, paths, form, folder=folder, sheet=table)
    if kinds <= _PARQUET:
        return Parquet(label, paths)
    odd = next((path for path in paths if _kind(path) not in _CSV | _PARQUET | _DATABASE | set(EXCEL)), None)
    if odd is None:
        raise InvalidArgument(
            "The files are of different kinds.", remedy="Name files of one kind, as in visits-*.parquet."
        )
    raise InvalidArgument(
        f"What kind of file {Path(odd).name} is cannot be told from its name.",
        remedy="Give it one of the endings .csv, .tsv, .xlsx, .parquet or .duckdb.",
    )


def _paths(pattern: str) -> tuple[str, ...]:
    if "://" in pattern:
        # Not repeated: it may hold a password.
        raise InvalidArgument(
            "Addresses are not opened, but for those that begin with postgresql://.",
            remedy="Begin that of a PostgreSQL server so; read other data in a connection of DuckDB, as a "
            "view, and pass that: docs/engines.md shows how.",
        )
    found = matches(pattern)
    if not found and _SETTING.search(pattern):
        # Not repeated either.
        raise InvalidArgument(
            "There is no such file.",
            remedy="Check the path; name a PostgreSQL server as postgresql://role@host/database, or pass a "
            "connection of psycopg.",
        )
    if not found:
        raise InvalidArgument(f"There is no file {pattern}.", remedy="Check the path.")
    paths = tuple(os.path.abspath(path) for path in found)
    if any(has_magic(path) for path in paths):
        # DuckDB would take the name for a pattern, and read what matches it.
        raise InvalidArgument(
            "The path of a file has *, ? or [ in it, by which patterns are told.", remedy="Rename it first."
        )
    return paths


def _kind(path: str) -> str:
    plain = Path(path)
    return (plain.with_suffix("") if plain.suffix.lower() in _PACKED else plain).suffix.lower()


def _label(path: str) -> str:
    plain = Path(path)
    return (plain.with_suffix("") if plain.suffix.lower() in _PACKED else plain).stem
