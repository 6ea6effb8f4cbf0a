"""`PreparedLoaded`: totals straight from DuckDB, of rows that know their unit's Σ n(g)² and Σ n(g).

A weight follows from a shape, and there are few shapes: weights are found as for any other rows, and joined.
What is more than sums of rows is asked of the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import QueryFailed
from dalenius.tables.engines.coding import exact_key
from dalenius.tables.engines.engine import SIZES, SPREADS, WEIGHT, Bounding, Integers, Measure
from dalenius.tables.engines.kernel_sums import Steps
from dalenius.tables.engines.kernel_weights import Norm, shape_places, weights
from dalenius.tables.engines.loaded import DuckdbLoaded
from dalenius.tables.engines.reading import read
from dalenius.tables.engines.types import name, places
from dalenius.tables.rows import Key, Rows
from dalenius.tables.sources.prepared_select import SHAPE

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
_EXACT = 2**52
_SHARE = 20
"""Bits of a part of a unit."""


class Shape(NamedTuple):
    """What units have: a text with Σ n(g)² and Σ n(g), the two, and how many rows of the copy have it."""

    text: str
    squares: int
    held: int
    rows: int


class PreparedLoaded:
    """The rows of a question that a stored copy answers; `whole` where these are all of the copy.

    `same` says whether the copy is still the file that was opened. It is asked after each reading: what came
    from another file is not used.
    """

    def __init__(
        self,
        cursor: DuckDBPyConnection,
        rows: Rows,
        sql: str,
        shapes: Sequence[Shape],
        *,
        whole: bool,
        room: int,
        same: Callable[[], bool],
    ) -> None:
        self._cursor, self._rows, self._sql, self._room, self._same = cursor, rows, sql, room, same
        self._texts = [shape.text for shape in shapes]
        self._squares = np.array([shape.squares for shape in shapes], np.int64)
        self._counts = np.array([shape.held for shape in shapes], np.int64)
        self._all_rows = np.array([shape.rows for shape in shapes], np.int64) if whole else None
        self._loaded: DuckdbLoaded | None = None

    def holders(self, *, most: int, salt: bytes) -> Mapping[Key, int]:
        """See `Loaded`."""
        return self._all().holders(most=most, salt=salt)

    def magnitudes(self, column: int) -> NDArray[np.int64]:
        """See `Loaded`."""
        return self._all().magnitudes(column)

    def shapes(self, keys: Sequence[Key], *, norm: Norm, presence: bool) -> NDArray[np.int64]:
        """Units by what is stored of them, for all keys; see the module `prepared`."""
        if presence:
            return self._all().shapes(keys, norm=norm, presence=True)
        taken = self._read(self._taken)
        sums = np.zeros(SIZES * SPREADS, np.int64)
        bins = shape_places(self._counts, self._squares, norm)
        np.add.at(sums, bins, (taken << _SHARE) // self._counts)
        return (sums >> _SHARE).reshape(SIZES, SPREADS)

    def totals(self, keys: Sequence[Key], measures: Sequence[Measure], bounding: Bounding) -> Integers:
        """See `Loaded`; weights are those of the stored norms."""
        columns = [summed(measure) for measure in measures]
        if bounding.groups is not None or None in columns:
            return self._all().totals(keys, measures, bounding)
        wanted = places(keys)
        found = self._read(partial(self._sums, [str(column) for column in columns], bounding))
        totals = np.zeros((len(keys), len(measures)), object)
        for row in found:
            place = wanted.get(name(row[: self._rows.keys]))
            if place is not None:
                totals[place] = [int(value or 0) for value in row[self._rows.keys :]]
        return totals

    def _taken(self) -> NDArray[np.int64]:
        """How many rows of each shape the question takes."""
        if self._all_rows is not None:
            return self._all_rows
        sql = f"SELECT {SHAPE}, count(*) FROM ({self._sql}) GROUP BY 1"
        found = dict(self._cursor.execute(sql).fetchall())
        return np.array([found.get(text, 0) for text in self._texts], np.int64)

    def _all(self) -> DuckdbLoaded:
        if self._loaded is None:
            whole = partial(DuckdbLoaded, self._cursor, self._rows, f"({self._rows.sql})", room=self._room)
            self._loaded = self._read(whole)
        return self._loaded

    def _read(self, work: Callable[[], T]) -> T:
        found = read(self._cursor, work)
        if not self._same():
            raise QueryFailed
        return found

    def _sums(self, columns: Sequence[str], bounding: Bounding) -> list[Any]:
        sizes = self._squares if bounding.norm == "l2" else self._counts
        weight = weights(sizes, bounding.limit, bounding.norm).astype(np.int64)
        self._cursor.register("dalenius_given", {"shape": np.array(self._texts, object), "weight": weight})
        self._cursor.execute("CREATE OR REPLACE TEMP TABLE dalenius_weights AS FROM dalenius_given")
        self._cursor.unregister("dalenius_given")
        described = self._cursor.execute(f"DESCRIBE {self._sql}").fetchall()
        types = {str(column[0]): str(column[1]) for column in described}
        keys = [f"{exact_key(f'r.key_{i}', types[f'key_{i}'])} AS g{i}" for i in range(self._rows.keys)]
        shown = ", ".join([*keys, *columns])
        return self._cursor.execute(
            f"SELECT {shown} FROM ({self._sql}) AS r JOIN dalenius_weights AS w ON r.{SHAPE} = w.shape "
            f"GROUP BY {', '.join(f'g{i}' for i in range(self._rows.keys))}"
        ).fetchall()


def summed(measure: Measure) -> str | None:
    """SQL for the sum of a measure in 128 bits; None where it takes more than sums of rows in 64."""
    if measure.kind == "rows":
        return "sum(w.weight)"
    value = f"r.value_{measure.column}"
    if measure.kind == "present":
        return f"sum(CASE WHEN NOT isnan({value}) THEN w.weight END)"
    if measure.kind not in ("sum", "squares") or measure.range is None:
        return None
    steps = Steps(measure.range)
    bound = steps.bound if measure.kind == "sum" else steps.bound**2
    if max(*(abs(end) for end in steps.ends), abs(measure.range.offset), bound * WEIGHT) > _EXACT:
        return None
    amount = _amount(value, steps)
    taken = amount if measure.kind == "sum" else f"(({amount} * {amount}) >> {measure.shift})"
    return f"sum(w.weight * {taken})"


def _amount(value: str, steps: Steps) -> str:
    (least, most), scaled = steps.ends, f"{value} * CAST('{2.0**-steps.range.grid.exponent!r}' AS DOUBLE)"
    # Most values lie within, and need no other arm; NaN is above everything to DuckDB, NULL has no arm.
    return (
        f"(CASE WHEN {scaled} BETWEEN {least}::DOUBLE AND {most}::DOUBLE "
        f"THEN CAST(trunc({scaled}) AS BIGINT) WHEN {scaled} < {least}::DOUBLE THEN {least} "
        f"WHEN isnan({value}) THEN NULL WHEN {scaled} > {most}::DOUBLE THEN {most} END "
        f"- CAST({steps.range.offset} AS BIGINT))"
    )
