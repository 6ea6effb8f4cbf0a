"""Estimates and error bars of aggregates, from noisy totals: all of it post-processing.

Bars hold the statistic of the table. Noise has a bar of the *bounded* statistic, which is what the same
formulas give on the totals without noise; to it comes what bounds took away, at most (`removed`, `spanning`,
`pairs`), at three tenths of the risk. Bounds that are known or given are taken at their word.

Values are counted in whole steps of a grid, cut towards zero; a bar allows for that where their number is
measured too, so that it holds the statistic of the values themselves, clamped. (A sum alone has steps so
fine that all of this is a fraction of its noise for as many as 10^9 rows.) Each bar holds the bounded
statistic with probability at least 1 − α, of the α that is left for noise:

    count, count_of, units, distinct    the law of the noise, exact but for whole steps; rounded outward
    sum             the same, and a step for each value; their number is in a bar of risk α/1000
    avg             S/K with the same weights in both: Fieller's set, within the range (see `bars`)
    var_pop         Q/K − (S/K)², each ratio in a bar of risk α/2; within 0 and a quarter of the range squared
    var_samp        times k/(k − 1), with k rows, at least 2; three bars of risk α/3
    stddev_…        its root
    quantile min max    the tree (see `trees`); a quantile is the least value up to which so many lie

What was taken is added to these: its rows to counts; its rows times the ends of the range to sums, with what
the range cut off; to an average and a variance as a part λ of all rows, whose values lie anywhere in the
range; to the rank of a quantile.

Without any value in a group an average, a variance or a quantile has no truth, and its bar no meaning; it is
still a number, as an empty group must not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.engine import WEIGHT, Measure
from dalenius.tables.planning.bars import Bars, Noisy, linear, ratio
from dalenius.tables.planning.deviations import Floats
from dalenius.tables.planning.measures import ORDERED, SPREAD, Kind, Place, counted, ends
from dalenius.tables.planning.removed import Removed
from dalenius.tables.planning.searching import Found
from dalenius.tables.planning.spanning import Values
from dalenius.tables.planning.trees import Tree, in_order
from dalenius.tables.question import Aggregate, Interval, Question
from dalenius.tables.rows import Range

COUNTING = Fraction(1, 1000)
"""Of the risk of a sum, for how many values there are."""
TAKEN = Fraction(3, 10)
"""Of the risk of a bar, for what bounds took."""
WHOLE = ("count", "count_of", "units", "distinct")


@dataclass(frozen=True)
class Totals:
    """Noisy totals of every measure of a question, and what bounds took from them."""

    question: Question
    measures: Mapping[Place, Measure]
    noisy: Mapping[Place, Noisy]
    found: Found
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
        return self._in_order(aggregate, column, alpha)

    def unknown(self, aggregate: Aggregate) -> bool:
        """Whether an aggregate rests on a range that could not be found."""
        return aggregate.kind not in WHOLE and aggregate.column in self.found.unseen

    def clipped(self, aggregate: Aggregate, alpha: Fraction) -> NDArray[np.bool_]:
        """In which groups what bounds took, at most, is more of the bar than noise is."""
        bars, noise = (
            self.bars(aggregate, alpha),
            Totals(
                self.question,
                self.measures,
                self.noisy,
                replace(self.found, chosen={}, values={}, ladders={}),
            ).bars(aggregate, alpha),
        )
        return np.asarray(bars.high - bars.low > 2 * (noise.high - noise.low))

    # What bounds took.

    def _removed(self, place: Place) -> Removed | None:
        """What the bound on rows takes from a measure, where that is not nothing."""
        removed = self.found.removed(place)
        return None if removed is None or removed.nothing else removed

    def _cut(self, kind: Kind, column: int) -> Cut | None:
        """What holding values within a range that was found takes."""
        values = self.found.values.get(column)
        if values is None or not values.some:
            return None
        return Cut(values, self._within(kind, column), self.found.rows_of_vote(column, (kind, column)))

    def _split(self, alpha: Fraction, *more: object) -> tuple[Fraction, float]:
        """The risk of noise, and of each thing that bounds took."""
        taken = [each for each in more if each is not None]
        share = TAKEN if taken else Fraction(0)
        return alpha * (1 - share), float(alpha * share) / max(len(taken), 1)

    # Each aggregate.

    def _whole(self, aggregate: Aggregate, alpha: Fraction) -> Bars:
        """A count, to whole numbers: the ends outward."""
        places: dict[str, Place] = {"count": ("rows", None), "units": ("units", None)}
        column = aggregate.column
        if aggregate.kind == "distinct":
            found = self._distinct(column or 0, alpha)
        else:
            place = places.get(aggregate.kind) or counted(column or 0, self.question)
            removed = self._removed(place)
            noise, risk = self._split(alpha, removed)
            found = linear([(1 / WEIGHT, self.noisy[place])], noise)
            if removed is not None:
                found = _given_back(found, removed, removed.at_most(found.high, risk))
        if aggregate.kind == "units" and self.public_size is not None:
            found = found.held(0, self.public_size)
        return Bars(np.rint(found.value), np.floor(found.low), np.ceil(found.high))

    def _distinct(self, column: int, alpha: Fraction) -> Bars:
        ladder = self.found.ladders.get(column)
        noise, risk = self._split(alpha, ladder)
        found = linear([(1.0, self.noisy["distinct", column])], noise)
        return found if ladder is None else found.beyond(0.0, ladder.missing(risk))

    def _sum(self, column: int, alpha: Fraction) -> Bars:
        """Steps, and the offset for every value."""
        step, offset = self._scale(column)
        lower, upper = self._within("sum", column)
        removed, cut = self._removed(("sum", column)), self._cut("sum", column)
        noise, risk = self._split(alpha, removed, cut)
        terms = [(step / WEIGHT, self.noisy["sum", column])]
        values = self.noisy.get(counted(column, self.question))
        if offset and values is not None:
            terms.append((offset * step / WEIGHT, values))
        rows = values or self.noisy.get(("rows", None))
        if rows is None:
            found = linear(terms, noise)
            kept = None
        else:
            kept = np.maximum(linear([(1 / WEIGHT, rows)], noise * COUNTING).high, 0.0)
            found = self._uncut(linear(terms, noise * (1 - COUNTING)), "sum", column, kept)
        if removed is not None:
            found = self._rows_given_back(found, removed, risk, (lower, upper), kept)
        if cut is not None:
            found = found.beyond(cut.below(risk), cut.above(risk))
        return found

    def _rows_given_back(
        self, found: Bars, removed: Removed, risk: float, within: tuple[float, float], kept: Floats | None
    ) -> Bars:
        """A sum with the values of rows that were taken, each within the range."""
        lower, upper = within
        nothing = np.full_like(found.high, np.inf)
        if lower >= 0 or upper <= 0:
            # All of one sign: what is taken is also in proportion to what is left.
            size = max(upper, -lower)
            left = found.high if lower >= 0 else -found.low
            taken = removed.at_most(np.maximum(left, 0.0), risk, size)
            if kept is not None:
                taken = np.minimum(taken, size * removed.at_most(kept, risk))
            return _given_back(found, removed, taken, downward=upper <= 0)
        taken = removed.at_most(nothing if kept is None else kept, risk)
        return found.beyond(_times(taken, -lower), _times(taken, upper))

    def _average(self, column: int, alpha: Fraction) -> Bars:
        step, offset = self._scale(column)
        lower, upper = self._within("sum", column)
        removed, cut = self._removed(("sum", column)), self._cut("sum", column)
        noise, risk = self._split(alpha, removed, cut)
        found = self._mean(column, noise).scaled(step, offset * step)
        found = self._uncut(found, "sum", column, 1.0).held(lower, upper)
        if removed is None and cut is None:
            return found
        left = self._left(column, risk / 2)
        if removed is not None:
            part = _part(removed, left, risk / 2)
            found = found.beyond((found.low - lower) * part, (upper - found.high) * part)
        if cut is not None:
            found = cut.widened(found, left, risk / 2)
        return found

    def _left(self, column: int, risk: float) -> Floats:
        """How many values are left in each group, at least."""
        place = counted(column, self.question)
        return np.asarray(np.maximum(linear([(1 / WEIGHT, self.noisy[place])], Fraction(2 * risk)).low, 0.0))

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
        """The mean of squares less the square of the mean, both about the offset.

        Rows that were taken are a part λ of all: the variance is at least 1 − λ times that of the others, and
        at most that and λ times the square of how far values can be from their mean.
        """
        removed, cut = self._removed(("sum", column)), self._cut("sum", column)
        noise, risk = self._split(alpha, removed, cut)
        sample = aggregate.kind.endswith("samp")
        part = noise / (3 if sample else 2)
        step, _ = self._scale(column)
        squares, mean = self._squares(column, part), self._mean(column, part)
        lower, upper = self._within("sum", column)
        found = _less_square(squares, mean).scaled(step * step).held(0.0)
        # The deviation of what was cut off is at most a step, and deviations of sums at most add up.
        low, high = np.maximum(np.sqrt(found.low) - step, 0.0), np.sqrt(found.high) + step
        found = Bars(found.value, low**2, high**2).wider().held(0.0, (upper - lower) ** 2 / 4)
        left = self._left(column, risk / 2) if removed is not None or cut is not None else None
        if removed is not None and left is not None:
            lost = _part(removed, left, risk / 2)
            found = Bars(found.value, found.low * (1 - lost), found.high + (upper - lower) ** 2 * lost)
            found = found.held(0.0, (upper - lower) ** 2 / 4)
        if cut is not None and left is not None:
            found = cut.spread(found, left, risk / 2)
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
        removed, cut = self._removed(("tree", column)), self._cut("tree", column)
        noise, risk = self._split(alpha, removed)
        tree = Tree.of(self.noisy["tree", column], measure.levels)
        if aggregate.kind == "quantile":
            fraction = Fraction(1, 2) if aggregate.fraction is None else aggregate.fraction
            taken = None if removed is None else removed.at_most(tree.most(risk / 2) / WEIGHT, risk / 2)
            found = tree.quantile(fraction, noise, None if taken is None else taken * WEIGHT)
        else:
            found = tree.least(noise) if aggregate.kind == "min" else tree.largest(noise)
        least, most = ends(measure.range)
        step, leaves = float(measure.range.grid.step), tree.leaves
        outer = found.low <= 0, found.high >= leaves
        found = found.scaled((most - least + 1) / leaves * step, least * step)
        found = self._uncut(found, "tree", column, 1.0).held(*self._within("tree", column))
        # A quantile in the outermost leaf may be one of the values that were moved there.
        if cut is None:
            return found
        values = cut.values
        return opened(found, values.ends if aggregate.kind == "quantile" else values.extremes, *outer)

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


@dataclass(frozen=True)
class Cut:
    """What holding the values of a column within a range takes from a group of so many rows for each vote."""

    values: Values
    within: tuple[float, float]
    rows: float

    @property
    def interval(self) -> Interval:
        """The range."""
        return Interval(Fraction(self.within[0]), Fraction(self.within[1]))

    def above(self, risk: float) -> float:
        """How much is taken from the sum of a group, at most."""
        return self._rows(float(self.values.above(np.array([self.within[1]]), risk / 2)[0]))

    def below(self, risk: float) -> float:
        """How much is added to it."""
        return self._rows(float(self.values.below(np.array([self.within[0]]), risk / 2)[0]))

    def _rows(self, votes: float) -> float:
        return self.rows * votes if votes > 0 else 0.0

    def widened(self, found: Bars, left: Floats, risk: float) -> Bars:
        """An average of at least so many values."""
        below, above = (_over(each, left) for each in (self.below(risk), self.above(risk)))
        lower, upper = self.values.ends
        low = np.minimum(found.low, np.maximum(found.low - below, lower))
        high = np.maximum(found.high, np.minimum(found.high + above, upper))
        return Bars(found.value, low, high).wider()

    def spread(self, found: Bars, left: Floats, risk: float) -> Bars:
        """A variance of at least so many values; holding values never makes it larger."""
        more = _over(self._rows(self.values.squares(self.interval, risk)), left)
        lower, upper = self.values.ends
        most = np.maximum(found.high, (upper - lower) ** 2 / 4)
        return Bars(found.value, found.low, np.minimum(found.high + more, most)).wider()


def opened(
    found: Bars, ends: tuple[float, float], lowest: NDArray[np.bool_], highest: NDArray[np.bool_]
) -> Bars:
    """Return bars of which those that reach an end of the range go on to where there are no values any more.

    Args:
        found: The bars.
        ends: Where there are none.
        lowest: Which bars reach the lower end of the range.
        highest: Which reach the upper one.
    """
    lower, upper = ends
    low = np.where(lowest, np.minimum(found.low, lower), found.low)
    return Bars(found.value, low, np.where(highest, np.maximum(found.high, upper), found.high))


def _over(taken: float, left: Floats) -> Floats:
    """What is taken from an average of at least so many."""
    if taken == 0:
        return np.zeros_like(left)
    with np.errstate(divide="ignore"):
        return np.asarray(taken / left)


def _times(taken: Floats, size: float) -> Floats | float:
    """Rows that were taken, each of at most a size."""
    return taken * size if size > 0 else 0.0


def _part(removed: Removed, left: Floats, risk: float) -> Floats:
    """The part of rows that was taken, at most, where at least so many are left."""
    taken = removed.at_most(left, risk)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isfinite(taken), taken / np.maximum(left + taken, 1e-300), 1.0))


def _given_back(found: Bars, removed: Removed, taken: Floats, *, downward: bool = False) -> Bars:
    """With what is likely taken in the estimate, and what is taken at most in the bar."""
    share = removed.share
    more = np.minimum(np.abs(found.value) * share / (1 - share), taken)
    if downward:
        return Bars(found.value - more, found.low - taken, found.high).wider()
    return Bars(found.value + more, found.low, found.high + taken).wider()


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
