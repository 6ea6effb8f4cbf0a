"""Estimates and error bars of aggregates, from noisy totals: all of it post-processing.

Bars are of the *bounded* statistic: what the same formulas give on the totals without noise. It differs from
that of the table by what bounds took away. Each bar holds it with probability at least 1 − α:

    count, count_of, units, distinct, sum   the law of the noise, exact but for whole steps; rounded outward
    avg             S/K with the same weights in both: Fieller's set, within the range (see `bars`)
    var_pop         Q/K − (S/K)², each ratio in a bar of risk α/2; within 0 and a quarter of the range squared
    var_samp        times k/(k − 1), with k rows, at least 2; three bars of risk α/3
    stddev_…        its root
    quantile min max    the tree (see `trees`); a quantile is the least value up to which so many lie

Without any value in a group an average, a variance or a quantile has no truth, and its bar no meaning; it is
still a number, as an empty group must not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.tables.bars import Bars, Noisy, linear, ratio
from dalenius.tables.engines.engine import WEIGHT, Measure
from dalenius.tables.measures import SPREAD, Kind, counted, ends
from dalenius.tables.question import Aggregate, Question
from dalenius.tables.trees import Tree

WHOLE = ("count", "count_of", "units", "distinct")
Place = tuple[Kind, int | None]


@dataclass(frozen=True)
class Totals:
    """Noisy totals of every measure of a question."""

    question: Question
    measures: Mapping[Place, Measure]
    noisy: Mapping[Place, Noisy]
    public_size: int | None = None
    """How many units there are in all, where that is public."""

    def bars(self, aggregate: Aggregate, alpha: Fraction) -> Bars:
        """An aggregate in every group, with bars of risk alpha each."""
        kind, column = aggregate.kind, aggregate.column
        if kind in WHOLE:
            return self._whole(aggregate, alpha)
        assert column is not None
        if kind == "sum":
            return self._sum(column, alpha)
        if kind == "avg":
            return self._average(column, alpha)
        if kind in SPREAD:
            return self._spread(aggregate, column, alpha)
        return self._ordered(aggregate, column, alpha)

    def _whole(self, aggregate: Aggregate, alpha: Fraction) -> Bars:
        """A count, to whole numbers: the ends outward."""
        places: dict[str, Place] = {"count": ("rows", None), "units": ("units", None)}
        column = aggregate.column
        if aggregate.kind == "distinct":
            found = linear([(1.0, self.noisy["distinct", column])], alpha)
        else:
            place = places.get(aggregate.kind) or counted(column or 0, self.question)
            found = linear([(1 / WEIGHT, self.noisy[place])], alpha)
        if aggregate.kind == "units" and self.public_size is not None:
            found = found.held(0, self.public_size)
        return Bars(np.rint(found.value), np.floor(found.low), np.ceil(found.high))

    def _sum(self, column: int, alpha: Fraction) -> Bars:
        """Steps, and the offset for every value."""
        step, offset = self._scale(column)
        terms = [(step / WEIGHT, self.noisy["sum", column])]
        if offset:
            terms.append((offset * step / WEIGHT, self.noisy[counted(column, self.question)]))
        return linear(terms, alpha)

    def _average(self, column: int, alpha: Fraction) -> Bars:
        step, offset = self._scale(column)
        return self._mean(column, alpha).scaled(step, offset * step).held(*self._within("sum", column))

    def _mean(self, column: int, alpha: Fraction) -> Bars:
        """Of steps less the offset."""
        measure = self.measures["sum", column]
        assert measure.range is not None
        least, most = (float(end - measure.range.offset) for end in ends(measure.range))
        return ratio(
            self.noisy["sum", column], self.noisy[counted(column, self.question)], alpha, (least, most)
        )

    def _spread(self, aggregate: Aggregate, column: int, alpha: Fraction) -> Bars:
        """The mean of squares less the square of the mean, both about the offset."""
        sample = aggregate.kind.endswith("samp")
        part = alpha / (3 if sample else 2)
        step, _ = self._scale(column)
        squares, mean = self._squares(column, part), self._mean(column, part)
        found = _less_square(squares, mean).scaled(step * step)
        lower, upper = self._within("sum", column)
        found = found.held(0.0, (upper - lower) ** 2 / 4)
        found = self._sampled(found, column, part) if sample else found
        return _root(found) if aggregate.kind.startswith("stddev") else found

    def _squares(self, column: int, alpha: Fraction) -> Bars:
        measure = self.measures["squares", column]
        assert measure.range is not None
        far = max(abs(end - measure.range.offset) for end in ends(measure.range))
        most = float(far * far >> measure.shift)
        count = self.noisy[counted(column, self.question)]
        return ratio(self.noisy["squares", column], count, alpha, (0.0, most)).scaled(2.0**measure.shift)

    def _sampled(self, found: Bars, column: int, alpha: Fraction) -> Bars:
        """Times k/(k − 1), which falls as k grows."""
        rows = linear([(1 / WEIGHT, self.noisy[counted(column, self.question)])], alpha)
        value, low, high = (np.maximum(each, 2.0) for each in (rows.value, rows.high, rows.low))
        factors = [each / (each - 1) for each in (value, low, high)]
        return Bars(found.value * factors[0], found.low * factors[1], found.high * factors[2]).wider().held(0)

    def _ordered(self, aggregate: Aggregate, column: int, alpha: Fraction) -> Bars:
        measure = self.measures["tree", column]
        assert measure.range is not None
        tree = Tree.of(self.noisy["tree", column], measure.levels)
        if aggregate.kind == "quantile":
            found = tree.quantile(aggregate.fraction or Fraction(1, 2), alpha)
        else:
            found = tree.least(alpha) if aggregate.kind == "min" else tree.largest(alpha)
        least, most = ends(measure.range)
        step = float(measure.range.grid.step)
        found = found.scaled((most - least + 1) / tree.leaves * step, least * step)
        return found.held(*self._within("tree", column))

    def _scale(self, column: int) -> tuple[float, int]:
        """The step of a column's sum, and its offset in steps."""
        range_ = self.measures["sum", column].range
        assert range_ is not None
        return float(range_.grid.step), range_.offset

    def _within(self, kind: Kind, column: int) -> tuple[float, float]:
        """The range of a column."""
        range_ = self.measures[kind, column].range
        assert range_ is not None
        least, most = ends(range_)
        step = float(range_.grid.step)
        return least * step, most * step


def _less_square(squares: Bars, mean: Bars) -> Bars:
    """Ends by the nearest and the furthest that the mean can be from the offset."""
    far = np.maximum(np.abs(mean.low), np.abs(mean.high))
    near = np.where(mean.low * mean.high <= 0, 0.0, np.minimum(np.abs(mean.low), np.abs(mean.high)))
    return Bars(squares.value - mean.value**2, squares.low - far**2, squares.high - near**2)


def _root(found: Bars) -> Bars:
    return (
        Bars(*(np.sqrt(np.maximum(each, 0.0)) for each in (found.value, found.low, found.high)))
        .wider()
        .held(0)
    )
