"""Finding bounds privately: which histograms are read, and what follows from them.

A bound is looked for only where it is neither known nor given. Each search is one histogram with noise of its
own: of the sizes of units' rows, or of their groups (each unit is in one bin: it moves the histogram by 1 in
either norm), of the magnitudes of a column's values (each unit adds at most MASS in all), of equal steps of
the range that these show (each unit adds at most WEIGHT), or how many values different units hold where each
keeps 1, 2, 4, 16 or 64 of them (a unit adds at most so many to each).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.laplace import Laplace
from dalenius.privacy.sensitivity import sqrt_up
from dalenius.tables.engines.engine import MASS, WEIGHT, Bounding, Loaded, Measure
from dalenius.tables.planning.budgeting import Additive, Noise, Norm
from dalenius.tables.planning.choosing import (
    FILLED,
    RISK,
    Chosen,
    Stakes,
    choose_limit,
    seen_sizes,
    shared_limits,
)
from dalenius.tables.planning.known import Known
from dalenius.tables.planning.measures import Family, Need, Place, counted, ranged
from dalenius.tables.planning.pairs import RUNGS, Ladder
from dalenius.tables.planning.ranges import BITS, LEAST_BITS, LEVELS, on_grid
from dalenius.tables.planning.removed import UNKNOWN, Removed, Sizes
from dalenius.tables.planning.seeing import Blur
from dalenius.tables.planning.spanning import Costs, Values, seen_octaves, seen_steps
from dalenius.tables.planning.standing import Kept, Noisy
from dalenius.tables.question import Interval, Question
from dalenius.tables.rows import Key

ORDERING = {"l2": 5.0, "l1": 13.0}
"""The noise of a rank, from several nodes of a tree, over that of a count."""
STEPS = 7
"""Levels of a tree whose leaves are the steps of a range."""
SURE = Fraction(1, 25)
"""The risk at which noise enters a choice."""
MORE = 2.0
"""How many times as many rows as on average units have whose values lie far out, at most: an assumption."""


@dataclass(frozen=True)
class Search:
    """One histogram.

    "rows" and "groups" are of units by size, "values" of a column by magnitude, "steps" of a column within
    the range that magnitudes show, "pairs" counts of different values.
    """

    kind: Literal["rows", "groups", "values", "steps", "pairs"]
    column: int | None = None

    @property
    def place(self) -> tuple[str, int | None]:
        """What a profile knows it by."""
        return self.kind, self.column

    @property
    def weight(self) -> Fraction:
        """Its share of the cost, against others: a ladder has several rungs."""
        return Fraction(2 if self.kind == "pairs" else 1)


@dataclass(frozen=True)
class Found:
    """Bounds as they apply, and what the searches showed."""

    limit: Fraction
    presence: Fraction
    pairs: int
    intervals: tuple[Interval | None, ...]
    chosen: Mapping[Family, Chosen] = field(default_factory=dict)
    values: Mapping[int, Values] = field(default_factory=dict)
    """Where the values of columns lie whose ranges were looked for."""
    limits: Mapping[Place, Fraction] = field(default_factory=dict)
    """Where a measure has another limit than `limit`."""
    ladders: Mapping[int, Ladder] = field(default_factory=dict)
    """How many different values there are, by how many each unit keeps."""
    spread: float = 1.0
    """For totals that are margins: see `Removed`. Numbers of units have none."""

    @property
    def unseen(self) -> tuple[int, ...]:
        """Columns of which no value stood out of the noise."""
        return tuple(column for column, values in self.values.items() if not values.some)

    def limit_of(self, place: Place) -> Fraction:
        """The bound on a unit's rows for a measure."""
        return self.limits.get(place, self.limit)

    def removed(self, place: Place) -> Removed | None:
        """What the bound takes from a measure; None where it is known or given."""
        family: Family = "units" if place[0] == "units" else "rows"
        chosen = self.chosen.get(family)
        if chosen is None:
            return None
        limit = self.presence if family == "units" else self.limit_of(place)
        return Removed(chosen.removed.sizes, float(limit), self.spread)

    def rows_of_vote(self, column: int, place: Place) -> float:
        """How many rows of a group a vote on values stands for, at most: see `spanning`."""
        removed, limit = self.removed(place), float(self.limit_of(place))
        if removed is None or removed.nothing:
            return self.spread * limit
        if removed.sizes.tail is None:
            return math.inf
        mean = removed.sizes.whole / self.values[column].votes
        return self.spread * min(max(limit, removed.sizes.clear), max(MORE * mean, 1.0))

    def bounding(self, norm: Norm, place: Place, groups: int | None, salt: bytes) -> Bounding:
        """What a unit may contribute to a measure."""
        return Bounding(norm, self.limit_of(place), self.presence, self.pairs, groups, salt)


def searches(
    question: Question, needs: Sequence[Need], facts: Known, intervals: Sequence[Interval | None]
) -> tuple[Search, ...]:
    """The histograms to read."""
    families = {need.family for need in needs}
    columns = [column for column in ranged(needs) if intervals[column] is None]
    found = [Search("rows")] if "rows" in families and facts.rows is None else []
    found += [Search("groups")] if "units" in families and facts.presence is None else []
    for column in columns:
        found.append(Search("values", column))
        if any(each.column == column and each.kind in CLOSER for each in question.aggregates):
            found.append(Search("steps", column))
    pairs = [need.column for need in needs if need.family == "distinct" and facts.pairs is None]
    return (*found, *(Search("pairs", column) for column in pairs))


CLOSER = ("avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "min", "max")
"""Aggregates that gain by a range that is known closely."""


@dataclass(frozen=True)
class Searching:
    """Searches about to be made on data, with all that they rest on."""

    question: Question
    searches: tuple[Search, ...]
    noises: tuple[Noise, ...]
    kept: Mapping[Search, Kept]
    """What a profile has in place of further searches."""
    needs: tuple[Need, ...]
    measured: tuple[Noise, ...]
    facts: Known
    intervals: tuple[Interval | None, ...]
    groups: int | None = None
    """How many groups of a unit count, where they are sampled."""

    def run(self, loaded: Loaded, keys: Sequence[Key], salt: bytes = b"") -> Found:
        """Read every histogram, and choose."""
        values: dict[int, Values] = {}
        sizes: dict[str, Sizes] = {}
        ladders: dict[int, Ladder] = {}
        for search, histogram in self.kept.items():
            if search.column is None:
                sizes[search.kind] = self._sizes(keys, histogram.noisy(), presence=search.kind == "groups")
            else:
                values[search.column] = histogram.values()
        for search, noise in zip(self.searches, self.noises, strict=True):
            column = search.column
            if column is None:
                seen = self._drawn(loaded, keys, search, noise)
                sizes[search.kind] = self._sizes(keys, seen, presence=search.kind == "groups")
            elif search.kind == "values":
                seen = self._drawn(loaded, keys, search, noise)
                values[column] = seen_octaves(seen.counts, blur=seen.blur)
            elif search.kind == "steps":
                values[column] = self._steps(loaded, keys, column, noise, values[column], salt)
            else:
                ladders[column] = self._ladder(loaded, keys, column, noise, salt)
        chosen, limits = self._chosen(sizes, len(keys))
        limit = max(limits.values(), default=Fraction(1))
        limit = self.facts.rows or limit if self._asks("rows") else Fraction(1)
        found = Found(
            limit,
            self.facts.presence or chosen["units"].limit if self._asks("units") else Fraction(1),
            self.facts.pairs or max((each.pairs for each in ladders.values()), default=1),
            self.intervals,
            chosen,
            values,
            limits,
            ladders,
        )
        ranges = {column: self._range(column, seen, found, len(keys)) for column, seen in values.items()}
        kept = tuple(ranges.get(column, known) for column, known in enumerate(self.intervals))
        return Found(found.limit, found.presence, found.pairs, kept, chosen, values, limits, ladders)

    def _asks(self, family: Family) -> bool:
        return any(need.family == family for need in self.needs)

    # The histograms.

    def _drawn(self, loaded: Loaded, keys: Sequence[Key], search: Search, noise: Noise) -> Noisy:
        """A histogram of the question's rows, with noise drawn now."""
        if search.column is not None:
            law = noise.on(Fraction(MASS), nonnegative=True)
            counts, unit = loaded.magnitudes(search.column), MASS
        else:
            law = noise.on(Fraction(1), nonnegative=True)
            presence = search.kind == "groups"
            counts, unit = loaded.shapes(keys, norm=noise.norm, presence=presence).sum(axis=1), 1
        noisy = (counts + law.draw(counts.size)).astype(np.float64)
        return Noisy(noisy / unit, _blur(law, unit))

    def _sizes(self, keys: Sequence[Key], noisy: Noisy, *, presence: bool) -> Sizes:
        groups = min(len(keys), self.facts.most_groups or len(keys))
        most = self._most(presence, groups, self._norm)
        # Numbers of rows are whole, and so are norms over one group.
        over = groups if noisy.widest is None else noisy.widest
        whole = self._norm == "l1" or (over == 1 and not presence)
        return seen_sizes(noisy.counts, blur=noisy.blur, most=most, presence=presence, whole=whole)

    @property
    def _norm(self) -> Norm:
        return self.measured[0].norm

    def _steps(
        self, loaded: Loaded, keys: Sequence[Key], column: int, noise: Noise, values: Values, salt: bytes
    ) -> Values:
        """The steps of the range that octaves show."""
        if not values.some:
            return values
        bounding = Bounding("l1", Fraction(1), groups=self.groups, salt=salt)
        totals, law = closer_steps(loaded, keys, column, noise, values.whole, bounding)
        noisy = (totals + law.draw(totals.size)).astype(np.float64)
        return values.closer(seen_steps(noisy / WEIGHT, values.whole, blur=_blur(law, WEIGHT)))

    def _ladder(self, loaded: Loaded, keys: Sequence[Key], column: int, noise: Noise, salt: bytes) -> Ladder:
        """Counts over all groups for each number of values kept, each with a part of the noise's cost."""
        parts = sqrt_up(Fraction(len(RUNGS))) if noise.norm == "l2" else Fraction(len(RUNGS))
        counts, laws = [], []
        for pairs in RUNGS:
            bounding = Bounding(noise.norm, pairs=pairs, groups=self.groups, salt=salt)
            total = int(loaded.totals(keys, [Measure("distinct", column)], bounding).sum())
            law = noise.on(pairs * parts, nonnegative=True)
            counts.append(float(total + int(law.draw(1)[0])))
            laws.append(law)
        need = next(need for need in self.needs if need.family == "distinct" and need.column == column)
        unit = self._noise(need).on(Fraction(WEIGHT), nonnegative=True).error(SURE) / WEIGHT
        most = self.facts.most_rows
        return Ladder(tuple(counts), tuple(laws), unit, None if most is None else int(most))

    def _most(self, presence: bool, groups: int, norm: Norm) -> float:
        if presence:
            return math.sqrt(groups) if norm == "l2" else float(groups)
        return float(self.facts.most_rows) if self.facts.most_rows is not None else UNKNOWN

    # What follows from them.

    def _chosen(
        self, sizes: dict[str, Sizes], groups: int
    ) -> tuple[dict[Family, Chosen], dict[Place, Fraction]]:
        """The bounds by family, and those of measures of rows."""
        found: dict[Family, Chosen] = {}
        limits: dict[Place, Fraction] = {}
        if "groups" in sizes:
            need = next(need for need in self.needs if need.family == "units")
            stakes = self._stakes(need)
            most = float(room(self.measured, 1))
            found["units"] = choose_limit(sizes["groups"], stakes, groups=groups, most=most)
        if "rows" in sizes:
            most = float(room(self.measured))
            lots = self._lots
            each = shared_limits(sizes["rows"], list(lots.values()), groups=groups, most=most)
            for lot, chosen in zip(lots, each, strict=True):
                limits |= {need.place: chosen.limit for need in self.needs if self._lot(need) == lot}
            found["rows"] = max(each, key=lambda one: one.limit)
        return found, limits

    @cached_property
    def _lots(self) -> dict[Place, Stakes]:
        """Measures that share a bound, by the one that has the most noise."""
        found: dict[Place, Stakes] = {}
        for need in self.needs:
            if need.family == "rows":
                lot, stakes = self._lot(need), self._stakes(need)
                known = found.get(lot)
                found[lot] = stakes if known is None or known.width < stakes.width else known
        return found

    def _lot(self, need: Need) -> Place:
        """Measures that are divided by each other have one bound; counts and trees have their own."""
        if need.kind in ("sum", "squares") and need.column is not None:
            return counted(need.column, self.question)
        return need.place

    def _stakes(self, need: Need) -> Stakes:
        """What a bound of 1 costs a measure by noise, for values of size 1."""
        noise = self._noise(need)
        width = 2 * noise.on(Fraction(WEIGHT), nonnegative=True).error(SURE) / WEIGHT
        error, more = noise.mean_error(), ORDERING[noise.norm] if need.kind == "tree" else 1.0
        return Stakes(more * width, more * error)

    def _noise(self, need: Need) -> Noise:
        return next(
            noise for each, noise in zip(self.needs, self.measured, strict=True) if each.place == need.place
        )

    def _range(self, column: int, seen: Values, found: Found, groups: int) -> Interval:
        """Where values are held: by what noise costs where they are added up, else where any stand out."""
        kinds = [need for need in self.needs if need.column == column and need.kind in ("sum", "squares")]
        if not kinds:
            return seen.range(None)
        stakes = [self._stakes(need) for need in kinds]
        limit = float(found.limit_of(kinds[0].place))
        removed = found.removed(kinds[0].place)
        lost, rows = 0.0, min(limit, 1.0)
        votes = found.rows_of_vote(column, kinds[0].place)
        votes = votes if math.isfinite(votes) else limit
        if removed is not None and removed.sizes.tail is not None:
            lost = float(removed.sizes.most_taken(np.array([limit]), RISK)[0])
            rows = removed.sizes.whole / seen.votes
        places = {need.place for need in self.needs}
        centred = counted(column, self.question) in places
        costs = Costs(
            max(each.width for each in stakes) * limit + (2 if centred else 1) * lost,
            max(each.error for each in stakes) * limit,
            votes,
            rows / math.sqrt(min(groups, FILLED)),
            centred,
        )
        return seen.range(costs)


def closer_steps(
    loaded: Loaded, keys: Sequence[Key], column: int, noise: Noise, whole: Interval, bounding: Bounding
) -> tuple[NDArray[np.int64], Additive]:
    """Return votes of units in equal steps of a range, over all groups, and the noise that hides a unit.

    They are the leaves of a tree, without those above them: a unit adds at most WEIGHT in all.

    Args:
        loaded: The rows.
        keys: The groups.
        column: The column of the values.
        noise: The noise, for a bound of 1.
        whole: The range.
        bounding: A bound of 1 on units' rows, in L1.
    """
    tree = Measure("tree", column, on_grid(whole, (whole.upper - whole.lower) / 2**BITS), levels=STEPS)
    totals = loaded.totals(keys, [tree], bounding)[:, -(1 << STEPS) :].sum(axis=0)
    return totals, noise.on(Fraction(WEIGHT), nonnegative=True)


def room(noises: Sequence[Noise], steps: int = max(LEVELS.values()) << LEAST_BITS) -> Fraction:
    """The largest bound for which exact noise can be drawn on all measures that add at most `steps` a row."""
    return min(noise.room() for noise in noises) / (WEIGHT * steps)


def _blur(law: Additive, unit: int = 1) -> Blur:
    """Return the noise of a histogram that is counted in so many parts of a unit."""
    scale, heavy = float(law.scale) / unit, isinstance(law, Laplace)
    return Blur(scale * math.sqrt(2) if heavy else scale, heavy, 1 / unit)
