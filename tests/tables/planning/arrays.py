"""A `Loaded` over numpy arrays, for studies with many units: floats where the engine has exact integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.engine import MAGNITUDES, MASS, SIZES, SPREADS, WEIGHT, Bounding, Measure
from dalenius.tables.planning.measures import ends
from dalenius.tables.rows import Key


class ArraysLoaded:
    """Rows as codes of units, codes of groups (key (g,) for group g) and columns of values."""

    def __init__(self, units: NDArray[Any], groups: NDArray[Any], *values: NDArray[Any]) -> None:
        self.groups, self.values = groups.astype(np.int64), values
        self.people, self.units = np.unique(units, return_inverse=True)
        self.size = int(self.groups.max(initial=0)) + 1
        cells, self.counts = np.unique(self.units * self.size + self.groups, return_counts=True)
        self.cell_unit, self.cell_group = cells // self.size, cells % self.size

    def _chosen(self, keys: Sequence[Key]) -> NDArray[np.bool_]:
        wanted = np.zeros(self.size, bool)
        wanted[[int(key[0] if key else 0) for key in keys]] = True
        return wanted

    def holders(self, *, most: int, salt: bytes) -> Mapping[Key, int]:
        seed = np.random.default_rng(int.from_bytes(salt, "little"))
        order = np.lexsort((seed.random(len(self.cell_unit)), self.cell_unit))
        units = self.cell_unit[order]
        first = np.arange(len(units)) - np.searchsorted(units, units) < most
        found = np.bincount(self.cell_group[order][first], minlength=self.size)
        return {(int(g),): int(n) for g, n in enumerate(found) if n}

    def _norms(self, keys: Sequence[Key], norm: str, presence: bool) -> tuple[Any, Any]:
        counts = np.where(self._chosen(keys)[self.cell_group], 1 if presence else self.counts, 0)
        total = np.bincount(self.cell_unit, counts, minlength=len(self.people))
        square = np.bincount(self.cell_unit, counts.astype(float) ** 2, minlength=len(self.people))
        return total, np.sqrt(square) if norm == "l2" else total

    def shapes(self, keys: Sequence[Key], *, norm: Literal["l2", "l1"], presence: bool) -> NDArray[np.int64]:
        total, size = self._norms(keys, norm, presence)
        some = total > 0
        bins = [
            np.ceil(2 * np.log2(np.maximum(x[some], 1)) - 1e-9).astype(int)
            for x in (size, total / np.maximum(size, 1e-9))
        ]
        found = np.zeros((SIZES, SPREADS), np.int64)
        np.add.at(found, (np.minimum(bins[0], SIZES - 1), np.minimum(bins[1], SPREADS - 1)), 1)
        return found

    def magnitudes(self, column: int) -> NDArray[np.int64]:
        values = self.values[column]
        exponent = np.frexp(np.abs(values))[1]
        place = np.where(values == 0, 0, np.sign(values) * np.clip(exponent + 128, 1, 256)).astype(int) + 256
        rows = np.bincount(self.units, minlength=len(self.people))
        cells, found = np.unique(self.units * MAGNITUDES + place, return_counts=True)
        amounts = MASS * found // rows[cells // MAGNITUDES]
        return np.bincount(cells % MAGNITUDES, amounts, minlength=MAGNITUDES).astype(np.int64)

    def totals(
        self, keys: Sequence[Key], measures: Sequence[Measure], bounding: Bounding
    ) -> NDArray[np.int64]:
        wanted = [int(key[0] if key else 0) for key in keys]
        columns = [self._measured(keys, measure, bounding)[wanted] for measure in measures]
        rounded = np.rint(np.concatenate(columns, axis=1))
        # As the engine does: Python's own integers where 64 bits might not hold sums.
        wide = any(measure.kind in ("sum", "squares") for measure in measures)
        return np.asarray(np.frompyfunc(int, 1, 1)(rounded) if wide else rounded.astype(np.int64))

    def _weights(self, keys: Sequence[Key], limit: float, norm: str, presence: bool) -> NDArray[Any]:
        size = np.maximum(self._norms(keys, norm, presence)[1], 1e-9)
        return np.minimum(WEIGHT, np.floor(WEIGHT * limit / size * (1 - 1e-12)))

    def _measured(self, keys: Sequence[Key], measure: Measure, bounding: Bounding) -> NDArray[Any]:
        if measure.kind == "units":
            weights = self._weights(keys, float(bounding.presence), bounding.norm, True)
            return np.bincount(self.cell_group, weights[self.cell_unit], minlength=self.size)[:, None]
        weights = self._weights(keys, float(bounding.limit), bounding.norm, False)[self.units]
        if measure.kind in ("rows", "present"):
            return np.bincount(self.groups, weights, minlength=self.size)[:, None]
        assert measure.range is not None and measure.column is not None
        least, most = ends(measure.range)
        steps = np.clip(np.trunc(self.values[measure.column] / float(measure.range.grid.step)), least, most)
        if measure.kind == "tree":
            leaf = ((steps - least) * 2**measure.levels // (most - least + 1)).astype(np.int64)
            return self._tree(weights, leaf, measure)
        steps = (steps - measure.range.offset).astype(np.int64)
        amounts = steps if measure.kind == "sum" else steps * steps >> measure.shift
        return np.bincount(self.groups, weights * amounts, minlength=self.size)[:, None]

    def _tree(self, weights: NDArray[Any], leaf: NDArray[np.int64], measure: Measure) -> NDArray[Any]:
        found = []
        for level in range(1, measure.levels + 1):
            place = self.groups * 2**level + (leaf >> (measure.levels - level))
            found.append(np.bincount(place, weights, minlength=self.size * 2**level).reshape(self.size, -1))
        return np.concatenate(found, axis=1)
