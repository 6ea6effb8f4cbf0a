"""`SparkRows`: the methods of `Loaded` in Spark, by Python workers on the executors where these can.

SQL does all of it, and Python what it can do much faster: adding up by unit, for which Spark would sort and
join rows. It takes workers that have the very same Dalenius, and units that are whole numbers, texts,
dates or moments. Private keys, sampled groups and distinct values stay with SQL. The integers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.bounding.asked import Asked
from dalenius.tables.engines.bounding.bounded import BoundedRows
from dalenius.tables.engines.bounding.cells import Cells
from dalenius.tables.engines.bounding.summing import check
from dalenius.tables.engines.engine import MAGNITUDES, SIZES, SPREADS, Bounding, Integers, Measure
from dalenius.tables.engines.kernel_weights import Norm
from dalenius.tables.engines.spark_kept import Kept
from dalenius.tables.engines.spark_workers import (
    PART,
    STRETCH,
    Layout,
    Magnitudes,
    Shapes,
    Sums,
    Work,
    add_up,
    code,
    cut,
    numbers_of,
)
from dalenius.tables.rows import Key, Rows

_WHOLE = ("tinyint", "smallint", "int", "bigint")


class SparkRows:
    """Rows of a question: `bounded` for SQL, and `cells` over rows that nothing has moved yet."""

    def __init__(
        self, bounded: BoundedRows, cells: Cells, kept: Kept, rows: Rows, types: Mapping[str, str]
    ) -> None:
        self._bounded, self._cells, self._kept, self._rows = bounded, cells, kept, rows
        self._types = [types[f"unit_{i}"] for i in range(rows.units)]
        self._keys = tuple(cells.kinds[f"key_{i}"] for i in range(rows.keys))
        self._bunches: dict[str, str] = {}

    def holders(self, *, most: int, salt: bytes) -> Mapping[Key, int]:
        """See `Loaded`."""
        return self._bounded.holders(most=most, salt=salt)

    def shapes(self, keys: Sequence[Key], *, norm: Norm, presence: bool) -> NDArray[np.int64]:
        """See `Loaded`."""
        if not keys or not self._able:
            return self._bounded.shapes(keys, norm=norm, presence=presence)
        found = self._worked(self._asked(keys), len(keys), Shapes(norm, presence), SIZES * SPREADS)
        return found.astype(np.int64).reshape(SIZES, SPREADS)

    def magnitudes(self, column: int) -> NDArray[np.int64]:
        """See `Loaded`."""
        if not self._able:
            return self._bounded.magnitudes(column)
        return self._worked(self._cells.all_rows(), 1, Magnitudes(column), MAGNITUDES).astype(np.int64)

    def totals(self, keys: Sequence[Key], measures: Sequence[Measure], bounding: Bounding) -> Integers:
        """See `Loaded`."""
        distinct = any(measure.kind == "distinct" for measure in measures)
        if not keys or not self._able or distinct or bounding.groups is not None:
            return self._bounded.totals(keys, measures, bounding)
        for measure in measures:
            check(self._cells.words, measure)
        width = sum(measure.width for measure in measures)
        work = Sums(tuple(measures), replace(bounding, salt=b""))
        return self._worked(self._asked(keys), len(keys), work, len(keys) * width).reshape(len(keys), width)

    @property
    def _able(self) -> bool:
        return bool(self._types) and all(map(_travels, self._types)) and self._kept.workers()

    @cached_property
    def _parts(self) -> int:
        return self._kept.parts(self._cells.source)

    def _asked(self, keys: Sequence[Key]) -> str:
        return self._cells.rows(Asked(self._cells.words, tuple(keys), self._keys))

    def _worked(self, rows: str, keys: int, work: Work, slots: int) -> NDArray[np.object_]:
        """The sums of what workers find in the parts of some rows, whose places are below `keys`."""
        texts = tuple(not _whole(name) for name in self._types)
        layout = Layout(texts, self._rows.values, keys, self._parts, code())
        if rows not in self._bunches:
            cutting = partial(cut, layout=layout)
            self._bunches[rows] = self._kept.bunches(self._traveling(rows, layout), cutting, layout.parts)
        found, work_there = np.zeros(slots, object), partial(add_up, layout=layout, work=work)
        stretches = -(-slots // STRETCH)
        for stretch, limbs in self._kept.worked(self._bunches[rows], work_there, stretches):
            found[stretch * STRETCH : (stretch + 1) * STRETCH] = numbers_of(limbs)
        return found

    def _traveling(self, rows: str, layout: Layout) -> str:
        """A query for rows as `spark_workers` takes them."""
        units = [f"{_as_sent(f'u{i}', name)} AS u{i}" for i, name in enumerate(self._types)]
        names = ", ".join(f"u{i}" for i in range(len(units)))
        values = [f"v{i}" for i in range(layout.values)]
        inner = f"SELECT {', '.join([*units, 'place', *values])} FROM {rows} AS r"
        at = f"CAST(place AS BIGINT) * {1 << PART} + pmod(xxhash64({names}), {layout.parts}) AS at"
        return f"SELECT {', '.join([names, at, *values])} FROM ({inner}) AS r"


def _whole(type_name: str) -> bool:
    return type_name in (*_WHOLE, "boolean", "date", "timestamp", "timestamp_ntz")


def _travels(type_name: str) -> bool:
    """Whether values of a type are told apart by 64 bits, or by a text."""
    exact = type_name.startswith("decimal(") and type_name.endswith(",0)")
    return _whole(type_name) or exact or type_name == "string"


def _as_sent(column: str, type_name: str) -> str:
    if type_name == "date":
        return f"CAST(unix_date({column}) AS BIGINT)"
    if type_name.startswith("timestamp"):
        return f"unix_micros(CAST({column} AS TIMESTAMP))"
    return f"CAST({column} AS {'BIGINT' if _whole(type_name) else 'STRING'})"
