"""`prepare`: a stored copy of a table in which each row knows how much its unit has, for repeated questions.

    engine = prepare(engine, rows)            # rows: any question that groups by the columns to prepare for
    engine.load(other)                        # totals come straight from DuckDB where `other` fits

Beside each row the copy holds Σ n(g)² and Σ n(g) of its unit, n(g) being the unit's rows in group g of the
prepared columns. A question fits where it takes rows of the table one by one, under any condition, with the
same unit, and groups by the prepared columns, or by these and more. Then a unit has no more rows in a group
than were counted, and groups that are parted have a smaller norm than together: the stored norms are upper
bounds, and weights made from them are sound. All else is asked of the table itself.

`shapes` counts a unit of N rows as c/N where c of them are taken, in the bin of the stored norms, and rounds
the sum of a bin down: one unit changes one bin by at most 1.

The copy is raw data. It has mode 0600, lies beside the source, and is not used once the source has changed,
or once another file is in its place that is not a copy of the same. Its name ends in .prepared: no pattern
for sources finds it, and it is no source itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.engines.duckdb import DuckdbEngine
from dalenius.tables.engines.loaded import DuckdbLoaded
from dalenius.tables.engines.prepared import PreparedLoaded, Shape
from dalenius.tables.engines.reading import read
from dalenius.tables.rows import Rows
from dalenius.tables.sources.kinds import check_columns, quoted
from dalenius.tables.sources.opening import open_copy
from dalenius.tables.sources.prepared_copy import ENDING, identity, store, stored, types_of
from dalenius.tables.sources.prepared_select import Flat, flatten


class PreparedEngine:
    """An engine with a stored copy of one of its tables; what does not fit the copy, the engine answers."""

    dialect = "duckdb"

    def __init__(self, engine: DuckdbEngine, flat: Flat, rows: Rows, path: Path) -> None:
        self.path = path
        self._engine, self._flat, self._rows = engine, flat, rows
        self._units, self._keys = flat.expressions("unit", rows.units), flat.expressions("key", rows.keys)
        self._types = _types(engine, flat)
        self._copy = open_copy(path, flat.table, room=engine.room)
        self._stamp, self._identity, self._shapes = "", "", list[Shape]()
        self._look()

    def _look(self) -> None:
        """See what the file is now: it may be another than a moment ago, and of other data."""
        stamp = self._copy.version()
        if stamp == self._stamp:
            return
        self._identity, self._shapes = _found(self._copy, self.path, self._flat.table)
        # What is remembered is that of before the reading, so that a change meanwhile is seen later.
        self._stamp = stamp

    @property
    def fresh(self) -> bool:
        """Whether the source is still as it was, and the copy one of it."""
        self._look()
        return self._identity == identity(self._engine.version(), self._types, self._flat, self._rows)

    def fits(self, rows: Rows) -> Flat | None:
        """The question over the table, where the copy can answer it."""
        flat = flatten(rows.sql)
        if flat is None or flat.table != self._flat.table or not self.fresh:
            return None
        keys = set(flat.expressions("key", rows.keys))
        same = flat.expressions("unit", rows.units) == self._units and set(self._keys) <= keys
        return flat if same else None

    def turn(self) -> AbstractContextManager[object]:
        """See `Engine`."""
        return self._engine.turn()

    @contextmanager
    def load(self, rows: Rows) -> Iterator[DuckdbLoaded | PreparedLoaded]:
        """See `Engine`."""
        flat = self.fits(rows)
        if flat is None:
            with self._engine.load(rows) as loaded:
                yield loaded
            return
        stamp, shapes = self._stamp, self._shapes
        with self._copy.cursor() as cursor:
            yield PreparedLoaded(
                cursor,
                rows,
                flat.shaped,
                shapes,
                whole=not flat.filtered,
                room=self._engine.room,
                same=lambda: self._copy.version() == stamp,
            )

    def columns(self, table: str) -> Mapping[str, str]:
        """See `Engine`."""
        return self._engine.columns(table)

    def version(self) -> str:
        """See `Engine`."""
        return self._engine.version()

    def same(self, table: str, other: str) -> bool:
        """See `Engine`."""
        return self._engine.same(table, other)

    def public(self, sql: str) -> list[dict[str, Any]]:
        """See `Engine`."""
        return self._engine.public(sql)

    def close(self) -> None:
        """Let go of the source and of the copy, which stays on the disk."""
        self._copy.close()
        self._engine.close()


def prepare(
    engine: DuckdbEngine, rows: Rows, *, path: str | os.PathLike[str] | None = None
) -> PreparedEngine:
    """Store a copy of the table that `rows` is about, for its units and keys, or find the one that is there.

    This reads all data and releases nothing. `path` says where, for sources that are not in files.
    """
    flat = flatten(rows.sql)
    if flat is None or not rows.units or not rows.keys:
        raise InvalidArgument(
            "Only a question that groups rows of one table, whose units are not rows, can be prepared for.",
            remedy="Prepare for columns of the table itself.",
        )
    target = Path(path) if path is not None else _beside(engine, flat, rows)
    _check_target(engine, target)
    types = _types(engine, flat)
    check_columns(list(types))
    if not _current(target, identity(engine.version(), types, flat, rows)):
        with engine.cursor() as cursor:
            store(cursor, engine, flat, rows, target)
    return PreparedEngine(engine, flat, rows, target)


def _beside(engine: DuckdbEngine, flat: Flat, rows: Rows) -> Path:
    source = engine.sources[0]
    found = getattr(source, "paths", None) or (getattr(source, "path", None),)
    if found[0] is None:
        raise InvalidArgument(
            "These data are not in a file beside which a copy could be kept.",
            remedy=f'Pass path="visits{ENDING}".',
        )
    name = identity("", {}, flat, rows)[:12]
    return Path(found[0]).with_name(f"{Path(found[0]).stem}.{name}{ENDING}")


def _check_target(engine: DuckdbEngine, target: Path) -> None:
    """A copy must not lie where a source does, nor where a pattern of sources finds it."""
    if target.suffix != ENDING:
        raise InvalidArgument(
            f"A copy needs a name that ends in {ENDING}, so that it is not taken for a source.",
            remedy=f'Pass path="{target.with_suffix(ENDING).name}".',
        )
    sql = "SELECT path FROM duckdb_databases() WHERE path IS NOT NULL"
    with engine.cursor() as cursor:
        databases = [str(row[0]) for row in read(cursor, lambda: cursor.execute(sql).fetchall())]
    listed = [*databases, *(path for one in engine.sources for path in getattr(one, "paths", ()))]
    if target.exists() and any(os.path.exists(path) and target.samefile(path) for path in listed):
        raise InvalidArgument(
            "The copy would take the place of the source.",
            remedy=f'Pass another name, such as path="copy{ENDING}".',
        )


def _types(engine: DuckdbEngine, flat: Flat) -> dict[str, str]:
    with engine.cursor() as cursor:
        return read(cursor, partial(types_of, cursor, quoted(flat.table)))


def _current(path: Path, wanted: str) -> bool:
    if not path.exists():
        return False
    copy = open_copy(path, "copy")
    try:
        return _found(copy, path, "copy")[0] == wanted
    finally:
        copy.close()


def _found(copy: DuckdbEngine, path: Path, table: str) -> tuple[str, list[Shape]]:
    """The identity of a copy, and the shapes in it; no identity where it is none, or half of one."""
    try:
        with copy.cursor() as cursor:
            return read(cursor, partial(stored, cursor, path, table))
    except QueryFailed:
        return "", []
