"""`Totals`: all measures of a question but distinct values, over parts that are added one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalenius.tables.engines.engine import Bounding, Integers, Measure
from dalenius.tables.engines.kernel import Digester, Part
from dalenius.tables.engines.kernel_rows import Asked, add_rows
from dalenius.tables.engines.kernel_singles import Singles
from dalenius.tables.engines.kernel_sums import Plain, Sum, Tree


class Totals:
    """Sums of bounded contributions, one row for each key that is asked for."""

    def __init__(self, measures: Sequence[Measure], asked: Asked) -> None:
        self._measures, self._asked = measures, asked
        self._units = Sum(asked.count + 1, 1)
        self._tallies: dict[int, Plain | Tree] = {
            number: (Tree if measure.kind == "tree" else Plain)(measure, asked.count + 1)
            for number, measure in enumerate(measures)
            if measure.kind not in ("units", "distinct")
        }

    def add(self, part: Part | Singles, bounding: Bounding, digester: Digester) -> None:
        """Add a part."""
        if self._tallies:
            weigher = part.weigh(self._asked, bounding, digester)
            add_rows(part.blocks, weigher, list(self._tallies.values()))
        if any(measure.kind == "units" for measure in self._measures):
            part.add_units(self._units, self._asked, bounding, digester)

    def columns(self, distincts: dict[int, Integers]) -> Integers:
        """The columns of all measures; those of distinct values are given by the number of their measure."""
        columns: list[Any] = [np.empty((self._asked.count + 1, 0), np.int64)]
        for number, measure in enumerate(self._measures):
            if measure.kind == "units":
                columns.append(self._units.total()[:, np.newaxis])
            elif measure.kind == "distinct":
                columns.append(distincts[number][:, np.newaxis])
            else:
                columns.append(self._tallies[number].total())
        found: Integers = np.concatenate(columns, axis=1)
        return found[:-1]
