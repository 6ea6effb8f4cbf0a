"""`StreamQuantiles`: quantiles of all numbers so far, at any step, on one charge.

Numbers are counted in bins of equal width between public ends, those outside in the first or last bin, by a
histogram of `ContinualSum`, whose theorem is the one that holds here: one event is in one bin. Quantiles are
made of the released counts, which is free.

The quantile of level q is the first bin j with G_j = Σ_{i≤j} c_i − q·Σ_i c_i ≥ 0, where G_j of noisy counts
is off by a Gaussian of deviation s·√(j(1 − q)² + (b − j)q²), with s that of a count at this step and b bins;
rounding adds at most b/2. With the reach r_j of that at α/b, the first j with G_j + r_j ≥ 0 and the first
with G_j − r_j ≥ 0 are around the true bin with probability 1 − α: that is the error bar, in whole bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.mechanism import Floats, Payer, risk
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.records import cells, number
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release
from dalenius.streams.counter import Counter
from dalenius.streams.sums import ContinualSum, quantile

LEVELS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
NUMBERS = ("biufO", "values must be numbers", "Convert them to float64 first.")
"""What is read: the kinds of numpy's types, and the refusal of others."""


@dataclass(frozen=True)
class StreamQuantiles:
    """Quantiles between `lower` and `upper` from the bins of `counts`."""

    counts: ContinualSum
    lower: Fraction
    upper: Fraction

    @staticmethod
    def calibrate(
        *, horizon: int, epsilon: Number, delta: Number, lower: Number, upper: Number, bins: int = 64
    ) -> StreamQuantiles:
        """The least noise with which everything together is (epsilon, delta)-differentially private."""
        ends = numbers.moderate(lower, "lower"), numbers.moderate(upper, "upper")
        if ends[0] >= ends[1]:
            raise InvalidArgument("lower must be below upper.", remedy="Swap lower and upper.")
        counts = ContinualSum.calibrate(horizon=horizon, epsilon=epsilon, delta=delta, categories=bins)
        return StreamQuantiles(counts, *ends)

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> QuantileStream:
        """A session, all of whose answers together cost `counts.loss`: charged now."""
        return QuantileStream(self, self.counts.start(account, unit=unit, by=by, purpose=purpose))

    def bins(self, values: Any) -> Any:
        """The bin of each number; NaN, and what is in a list and no number, counts in the first."""
        given, lower, upper = cells(values, *NUMBERS), float(self.lower), float(self.upper)
        array = _numbers(given) if isinstance(given, list) else given
        with np.errstate(over="ignore", invalid="ignore"):
            array = np.clip(np.nan_to_num(array.astype(np.float64), nan=lower), lower, upper)
        places = np.floor((array - lower) / ((upper - lower) / self.counts.width))
        return np.clip(places, 0, self.counts.width - 1).astype(np.int64)

    def edges(self) -> Floats:
        """The upper end of each bin."""
        return np.linspace(float(self.lower), float(self.upper), self.counts.width + 1)[1:]


def _numbers(given: list[Any]) -> Floats:
    """Each cell as a float: all at once where they are of types that go over one by one."""
    if set(map(type, given)) <= {int, float}:
        try:
            return np.array(given, np.float64)
        except OverflowError:
            pass
    return np.array([number(cell) for cell in given], np.float64)


class QuantileStream:
    """A session of `StreamQuantiles`."""

    def __init__(self, made_by: StreamQuantiles, counter: Counter) -> None:
        self.made_by, self.counter = made_by, counter

    @property
    def steps(self) -> int:
        """How many there were."""
        return self.counter.steps

    def add(self, values: Any) -> None:
        """One step: a number, or all numbers of a batch."""
        self.counter.add(self.made_by.bins(values))

    def value(self, levels: Sequence[Number] = LEVELS) -> Release:
        """The quantiles of these levels, each with the bins around it that the noise leaves open."""
        wanted = [numbers.probability(level, "levels") for level in levels]
        found = self.counter.value()
        rows = [self._quantile(found["value"].astype(np.float64), float(level)) for level in wanted]
        names = ("value", "value_low", "value_high")
        columns: dict[str, list[Any]] = {"level": [float(level) for level in wanted]}
        columns |= {name: [row[k] for row in rows] for k, name in enumerate(names)}
        made = found.postprocess("quantiles of the released counts of bins", columns)
        return replace(made, measures=("value",))

    def _quantile(self, counts: Floats, level: float) -> tuple[float, float, float]:
        counted, bins = self.made_by.counts, len(counts)
        gap = np.cumsum(counts) - level * counts.sum()
        below = np.arange(1, bins + 1)
        each = (counted.reach(np.array([self.steps]), risk(1 - CONFIDENCE))[0] - 0.5) / quantile(
            risk(1 - CONFIDENCE)
        )
        share = np.sqrt(below * (1 - level) ** 2 + (bins - below) * level**2)
        reach = quantile(risk(1 - CONFIDENCE) / bins) * each * share + bins / 2
        edges = self.made_by.edges()
        low, middle, high = (_first(line, edges) for line in (gap + reach, gap, gap - reach))
        return middle, low - float(self.made_by.upper - self.made_by.lower) / bins, high


def _first(line: Floats, edges: Floats) -> float:
    """The end of the first bin from which a line is not below zero; of the last where it is nowhere."""
    there = np.flatnonzero(line >= 0)
    return float(edges[there[0] if there.size else -1])
