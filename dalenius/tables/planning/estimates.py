"""Estimates and error bars of aggregates, from noisy totals: all of it post-processing.

Bars are of the *bounded* statistic: what the same formulas give on the totals without noise. It differs from
that of the table by what bounds took away. Values are counted in whole steps of a grid, cut towards zero; a
bar allows for that where the number of values is measured too, so that it holds the statistic of the values
themselves, clamped. (A sum alone has steps so fine that all of this is a fraction of its noise for as many as
10^9 rows.) Each bar holds it with probability at least 1 − α:

    count, count_of, units, distinct    the law of the noise, exact but for whole steps; rounded outward
    sum             the same, and a step for each value; their number is in a bar of risk α/1000
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

from dalenius.tables.engines.engine import WEIGHT, Measure
from dalenius.tables.planning.bars import Bars, Floats, Noisy, linear, ratio
from dalenius.tables.planning.measures import ORDERED, SPREAD, Kind, counted, ends
from dalenius.tables.planning.trees import Tree, in_order
from dalenius.tables.question import Aggregate, Question
from dalenius.tables.rows import Range

COUNTING = Fraction(1, 1000)
"""Of the risk of a sum, for how many values there are."""
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
    unseen: tuple[int, ...] = ()
    """Columns whose range could not be found: nothing that needs one is known."""

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
        return self._in_order(aggregate, column, alpha)

    def unknown(self, aggregate: Aggregate) -> bool:
        """Whether an aggregate rests on a range that could not be found."""
        return aggregate.kind not in WHOLE and aggregate.column in self.unseen

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
        values = self.noisy.get(counted(column, self.question))
        if offset and values is not None:
            terms.append((offset * step / WEIGHT, values))
        rows = values or self.noisy.get(("rows", None))
        if rows is None:
            return linear(terms, alpha)
        most = linear([(1 / WEIGHT, rows)], alpha * COUNTING).high
        return self._uncut(linear(terms, alpha * (1 - COUNTING)), "sum", column, np.maximum(most, 0.0))

    def _average(self, column: int, alpha: Fraction) -> Bars:
        step, offset = self._scale(column)
        found = self._mean(column, alpha).scaled(step, offset * step)
        return self._uncut(found, "sum", column, 1.0).held(*self._within("sum", column))

    def _uncut(self, found: Bars, kind: Kind, column: int, steps: Floats | float) -> Bars:
        """Wider by so many steps, to the side that cutting values towards zero comes from."""
        (lower, upper), step = self._within(kind, column), float(self._range(kind, column).grid.step)
        low, high = steps * step if lower < 0 else 0.0, steps * step if upper > 0 else 0.0
        return Bars(found.value, found.low - low, found.high + high).wider()

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
        lower, upper = self._within("sum", column)
        found = _less_square(squares, mean).scaled(step * step).held(0.0)
        # The deviation of what was cut off is at most a step, and deviations of sums at most add up.
        low, high = np.maximum(np.sqrt(found.low) - step, 0.0), np.sqrt(found.high) + step
        found = Bars(found.value, low**2, high**2).wider().held(0.0, (upper - lower) ** 2 / 4)
        found = self._sampled(found, column, part) if sample else found
        return _root(found) if aggregate.kind.startswith("stddev") else found

    def _squares(self, column: int, alpha: Fraction) -> Bars:
        measure = self.measures["squares", column]
        assert measure.range is not None
        far = max(abs(end - measure.range.offset) for end in ends(measure.range))
        most = float(far * far >> measure.shift)
        count = self.noisy[counted(column, self.question)]
        found = ratio(self.noisy["squares", column], count, alpha, (0.0, most))
        # Each square is cut to a whole number of these.
        return Bars(found.value, found.low, found.high + 1).scaled(2.0**measure.shift)

    def _sampled(self, found: Bars, column: int, alpha: Fraction) -> Bars:
        """Times k/(k − 1), which falls as k grows."""
        rows = linear([(1 / WEIGHT, self.noisy[counted(column, self.question)])], alpha)
        value, low, high = (np.maximum(each, 2.0) for each in (rows.value, rows.high, rows.low))
        factors = [each / (each - 1) for each in (value, low, high)]
        return Bars(found.value * factors[0], found.low * factors[1], found.high * factors[2]).wider().held(0)

    def _in_order(self, aggregate: Aggregate, column: int, alpha: Fraction) -> Bars:
        """A quantile, not above a higher one of the same column; bars only grow, so they hold as before."""
        every = [each for each in self.question.aggregates if each.kind in ORDERED and each.column == column]
        every = sorted(dict.fromkeys(every), key=_rank)
        found = in_order([self._ordered(each, column, alpha) for each in every], [_rank(e) for e in every])
        return found[every.index(aggregate)]

    def _ordered(self, aggregate: Aggregate, column: int, alpha: Fraction) -> Bars:
        measure = self.measures["tree", column]
        assert measure.range is not None
        tree = Tree.of(self.noisy["tree", column], measure.levels)
        if aggregate.kind == "quantile":
            fraction = Fraction(1, 2) if aggregate.fraction is None else aggregate.fraction
            found = tree.quantile(fraction, alpha)
        else:
            found = tree.least(alpha) if aggregate.kind == "min" else tree.largest(alpha)
        least, most = ends(measure.range)
        step = float(measure.range.grid.step)
        found = found.scaled((most - least + 1) / tree.leaves * step, least * step)
        return self._uncut(found, "tree", column, 1.0).held(*self._within("tree", column))

    def _scale(self, column: int) -> tuple[float, int]:
        """The step of a column's sum, and its offset in steps."""
        range_ = self._range("sum", column)
        return float(range_.grid.step), range_.offset

    def _range(self, kind: Kind, column: int) -> Range:
        range_ = self.measures[kind, column].range
        assert range_ is not None
        return range_

    def _within(self, kind: Kind, column: int) -> tuple[float, float]:
        """The range of a column."""
        range_ = self._range(kind, column)
        least, most = ends(range_)
        step = float(range_.grid.step)
        return least * step, most * step


def _rank(aggregate: Aggregate) -> Fraction:
    """The part of values that lie below; the least before all quantiles, and the largest after."""
    if aggregate.kind != "quantile":
        return Fraction(-1 if aggregate.kind == "min" else 2)
    return Fraction(1, 2) if aggregate.fraction is None else aggregate.fraction


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
