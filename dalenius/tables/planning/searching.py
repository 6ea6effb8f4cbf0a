"""Finding bounds privately: which histograms are read, and what follows from them.

A bound is looked for only where it is neither known nor given. Each search is one histogram with noise of its
own: of the sizes of units' rows, or of their groups (each unit is in one bin: it moves the histogram by 1 in
either norm), or of the magnitudes of a column's values (each unit adds at most MASS in all).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np

from dalenius.mechanisms.laplace import Laplace
from dalenius.tables.engines.engine import MASS, WEIGHT, Loaded
from dalenius.tables.planning.budgeting import Additive, Noise, Norm
from dalenius.tables.planning.choosing import Chosen, Stakes, choose_limit, choose_pairs, clear_shapes
from dalenius.tables.planning.hidden import Shapes
from dalenius.tables.planning.known import Known
from dalenius.tables.planning.measures import Family, Need, main_need, ranged
from dalenius.tables.planning.ranges import LEAST_BITS, LEVELS
from dalenius.tables.planning.seeing import Blur
from dalenius.tables.planning.spanning import Cut, Values, clear_values
from dalenius.tables.planning.standing import Kept, Noisy
from dalenius.tables.question import Interval, Question
from dalenius.tables.rows import Key

MOST_PAIRS = 10**6
"""Values of one unit that may count as different."""
DECLARED = 2.0
"""How many times the mean value the end of a declared range is taken to be."""
LEANING = 0.2
"""How far, of half its range, values of units that are clipped are taken to lean to one side: all that
clipping does to an average, whose weights are those of its sum."""
ORDERING = {"l2": 5.0, "l1": 13.0}
"""The noise of a rank, from several nodes of a tree, over that of a count."""


@dataclass(frozen=True)
class Search:
    """One histogram: "rows" and "groups" of units by size, "values" of a column by magnitude."""

    kind: Literal["rows", "groups", "values"]
    column: int | None = None

    @property
    def place(self) -> tuple[str, int | None]:
        """What a profile knows it by."""
        return self.kind, self.column


@dataclass(frozen=True)
class Found:
    """Bounds as they apply, and what the searches showed."""

    limit: Fraction
    presence: Fraction
    pairs: int
    intervals: tuple[Interval | None, ...]
    chosen: dict[Family, Chosen]
    unseen: tuple[int, ...] = ()
    """Columns of which no value stood out of the noise."""
    cuts: Mapping[int, Cut] = field(default_factory=dict)
    """What ranges that were found do to values, by column."""


def searches(needs: Sequence[Need], facts: Known, intervals: Sequence[Interval | None]) -> tuple[Search, ...]:
    """The histograms to read."""
    families = {need.family for need in needs}
    rows = ("rows" in families and facts.rows is None) or ("distinct" in families and facts.pairs is None)
    groups = "units" in families and facts.presence is None
    columns = [column for column in ranged(needs) if intervals[column] is None]
    found = [Search("rows")] if rows else []
    found += [Search("groups")] if groups else []
    return (*found, *(Search("values", column) for column in columns))


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

    def run(self, loaded: Loaded, keys: Sequence[Key]) -> Found:
        """Read every histogram, and choose."""
        values: dict[int, Values] = {}
        shapes: dict[str, Shapes] = {}
        seen = {
            search: self._drawn(loaded, keys, search, noise)
            for search, noise in zip(self.searches, self.noises, strict=True)
        }
        seen |= {search: kept.noisy() for search, kept in self.kept.items()}
        for search, noisy in seen.items():
            if search.column is not None:
                values[search.column] = clear_values(noisy.counts, blur=noisy.blur)
            else:
                shapes[search.kind] = self._shapes(keys, noisy, presence=search.kind == "groups")
        chosen = self._chosen(shapes, values, len(keys))
        ranges = {column: self._range(column, seen, chosen, len(keys)) for column, seen in values.items()}
        limit = self.facts.rows or chosen["rows"].limit if self._asks("rows") else Fraction(1)
        return Found(
            limit,
            self.facts.presence or chosen["units"].limit if self._asks("units") else Fraction(1),
            self.facts.pairs or math.ceil(chosen["distinct"].limit) if self._asks("distinct") else 1,
            tuple(ranges.get(column, known) for column, known in enumerate(self.intervals)),
            chosen,
            tuple(column for column, seen in values.items() if not seen.some),
            {column: seen.cut(ranges[column]) for column, seen in values.items() if seen.some},
        )

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
            counts, unit = loaded.shapes(keys, norm=noise.norm, presence=presence).reshape(-1), 1
        noisy = (counts + law.draw(counts.size)).astype(np.float64)
        return Noisy(noisy / unit, _blur(law, unit))

    def _shapes(self, keys: Sequence[Key], noisy: Noisy, *, presence: bool) -> Shapes:
        groups = min(len(keys), self.facts.most_groups or len(keys))
        most = self._most(presence, groups, self._norm)
        widest = float(groups) if noisy.widest is None else noisy.widest
        return clear_shapes(noisy.counts, blur=noisy.blur, most=most, norm=self._norm, widest=widest)

    @property
    def _norm(self) -> Norm:
        return self.measured[0].norm

    def _most(self, presence: bool, groups: int, norm: Norm) -> float:
        if presence:
            return math.sqrt(groups) if norm == "l2" else float(groups)
        return float(self.facts.most_rows) if self.facts.most_rows is not None else 2.0**31

    # What follows from them.

    def _chosen(
        self, shapes: dict[str, Shapes], values: dict[int, Values], groups: int
    ) -> dict[Family, Chosen]:
        found: dict[Family, Chosen] = {}
        if "groups" in shapes:
            most = min(self._most(True, groups, self._norm), float(room(self.measured, 1)))
            found["units"] = choose_limit(shapes["groups"], self._plain("units", groups), most=most)
        if "rows" not in shapes:
            return found
        most = min(self._most(False, groups, self._norm), float(room(self.measured)))
        if self._asks("rows") and self.facts.rows is None:
            found["rows"] = choose_limit(shapes["rows"], self._stakes(values, groups), most=most)
        if self._asks("distinct") and self.facts.pairs is None:
            stakes = self._plain("distinct", groups)
            found["distinct"] = choose_pairs(shapes["rows"], stakes, most=min(most, MOST_PAIRS))
        return found

    def _plain(self, family: Family, groups: int) -> Stakes:
        """Of counts alone."""
        pairs = zip(self.needs, self.measured, strict=True)
        noise = max(each.mean_error() for need, each in pairs if need.family == family)
        return Stakes(noise * groups, 0.0, 1.0)

    def _stakes(self, values: dict[int, Values], groups: int) -> Stakes:
        """Of every aggregate of rows, each in terms of what one row adds to it."""
        fixed = relative = bias = 0.0
        for aggregate in self.question.aggregates:
            need = main_need(aggregate, self.question)
            if need.family != "rows":
                continue
            noise = groups * self._noise(need).mean_error()
            if aggregate.kind in ("count", "count_of"):
                fixed, bias = fixed + noise, bias + 1
            elif aggregate.kind == "sum":
                seen = values.get(aggregate.column or 0)
                fixed, bias = fixed + noise * (DECLARED if seen is None else seen.peak(groups)), bias + 1
            else:
                relative += noise * (ORDERING[self._norm] if need.kind == "tree" else 1)
                bias += LEANING
        return Stakes(fixed, relative, bias)

    def _noise(self, need: Need) -> Noise:
        return next(
            noise for each, noise in zip(self.needs, self.measured, strict=True) if each.place == need.place
        )

    def _range(self, column: int, seen: Values, chosen: dict[Family, Chosen], groups: int) -> Interval:
        """Where values are held: by what noise costs where they are added up, else where any stand out."""
        kinds = [need for need in self.needs if need.column == column and need.kind in ("sum", "squares")]
        if not kinds:
            return seen.range(None)
        limit = self.facts.rows or chosen["rows"].limit
        rows = chosen["rows"].rows if "rows" in chosen else 1.0
        loudest = max(self._noise(need).mean_error(nonnegative=False) for need in kinds)
        return seen.range(loudest * groups * float(limit) / max(rows, 1e-9))


def room(noises: Sequence[Noise], steps: int = max(LEVELS.values()) << LEAST_BITS) -> Fraction:
    """The largest bound for which exact noise can be drawn on all measures that add at most `steps` a row."""
    return min(noise.room() for noise in noises) / (WEIGHT * steps)


def _blur(law: Additive, unit: int = 1) -> Blur:
    """Return the noise of a histogram that is counted in so many parts of a unit."""
    scale, heavy = float(law.scale) / unit, isinstance(law, Laplace)
    return Blur(scale * math.sqrt(2) if heavy else scale, heavy, 1 / unit)
