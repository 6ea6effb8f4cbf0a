"""Neighbouring databases by brute force: what an engine hands to a plan on each, and what the plan charges.

A plan runs on the first database; every integer that it asked for is asked of the second as well, with the
same keys, bounds and salt. Then the two must be no further apart than the noise of each part hides, part by
part and all together: exactly what the account was charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.losses.gaussian import Gaussian
from dalenius.losses.pure import Pure
from dalenius.privacy.sensitivity import sqrt_up
from dalenius.privacy.unit import Unit
from dalenius.tables.engines.engine import MASS, WEIGHT, Bounding, Loaded, Measure
from dalenius.tables.planning.pairs import RUNGS
from dalenius.tables.planning.plan import Plan
from dalenius.tables.planning.searching import STEPS
from dalenius.tables.schema import Private, Public, Schema

VISITS = {"patient": "integer", "ward": "text", "age": "integer", "cost": "real", "day": "date"}
LABS = {"patient": "integer", "result": "real"}
FLOORED = {"ward": "text", "floor": "integer"}
TYPES = {"integer": "BIGINT", "text": "VARCHAR", "real": "DOUBLE", "date": "DATE"}


def schema(relation: str = "add_remove", *, dialect: str = "duckdb", **declared: Any) -> Schema:
    """The tables of `random_queries`; a patient is the unit."""
    unit = Unit("patient", column="patient", relation=relation)
    tables = (
        Private("visits", VISITS, unit=unit, **declared),
        Private("labs", LABS, unit=unit),
        Public("floors", FLOORED),
    )
    return Schema(tables, read=lambda sql: [], dialect=dialect)


@dataclass
class Both:
    """Two databases as one: answers of the first, and how far those of the second are from them."""

    first: Loaded
    second: Loaded
    held: list[int] = field(default_factory=list)
    """How far the counts of holders differ, key by key."""
    most: int = 0
    shapes_apart: list[Any] = field(default_factory=list)
    magnitudes_apart: list[Any] = field(default_factory=list)
    asked: list[tuple[Sequence[Measure], Bounding]] = field(default_factory=list)
    totals_apart: list[Any] = field(default_factory=list)
    """Of each time that totals were asked for: by searches first, then by the measures of each bound."""

    def holders(self, *, most: int, salt: bytes) -> Any:
        one, other = (loaded.holders(most=most, salt=salt) for loaded in (self.first, self.second))
        self.most = most
        self.held = [abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other}]
        return one

    def shapes(self, keys: Any, *, norm: Any, presence: bool) -> Any:
        one, other = (
            loaded.shapes(keys, norm=norm, presence=presence) for loaded in (self.first, self.second)
        )
        self.shapes_apart.append(one - other)
        return one

    def magnitudes(self, column: int) -> Any:
        one, other = (loaded.magnitudes(column) for loaded in (self.first, self.second))
        self.magnitudes_apart.append(one - other)
        return one

    def totals(self, keys: Any, measures: Sequence[Measure], bounding: Bounding) -> Any:
        one, other = (loaded.totals(keys, measures, bounding) for loaded in (self.first, self.second))
        self.asked.append((measures, bounding))
        self.totals_apart.append(one.astype(object) - other.astype(object))
        return one

    def next(self) -> Any:
        """What was asked for first, which is forgotten."""
        self.asked.pop(0)
        return self.totals_apart.pop(0)


def squared(apart: Any, norm: str) -> Fraction:
    """The square of a distance, exactly."""
    flat = [abs(int(k)) for k in np.asarray(apart, dtype=object).reshape(-1)]
    return Fraction(sum(k * k for k in flat)) if norm == "l2" else Fraction(sum(flat)) ** 2


Part = tuple[Any, Any, Fraction]
"""How far apart two databases are in a part of a plan, its noise, and how far they may be apart."""


def _searched(plan: Plan, both: Both) -> list[Part]:
    """The parts of searches; where no key was selected nothing was looked for."""
    shapes, magnitudes = iter(both.shapes_apart), iter(both.magnitudes_apart)
    found: list[Part] = []
    for search, noise in zip(plan.searches if both.asked else (), plan.search_noises, strict=False):
        if search.kind == "pairs":
            parts = sqrt_up(Fraction(len(RUNGS))) if plan.norm == "l2" else Fraction(len(RUNGS))
            for pairs in RUNGS:
                assert both.asked[0][1].pairs == pairs
                most = noise.sensitivity(Fraction(pairs), nonnegative=True).need(plan.norm)
                law = noise.on(pairs * parts, nonnegative=True)
                found.append((both.next().sum(), law, most))
            continue
        if search.kind == "steps":
            if not _steps(plan, both, search.column):  # no value stood out
                continue
            law = noise.on(Fraction(WEIGHT), nonnegative=True)
            apart = both.next()[:, -(1 << STEPS) :].sum(axis=0)
        elif search.kind == "values":
            law, apart = noise.on(Fraction(MASS), nonnegative=True), next(magnitudes)
        else:
            law, apart = noise.on(Fraction(1), nonnegative=True), next(shapes).sum(axis=1)
        found.append((apart, law, law.sensitivity.need(plan.norm)))
    return found


def _steps(plan: Plan, both: Both, column: int | None) -> bool:
    """Whether what was asked for next are steps of a column, and not the measures."""
    (first, *others), bounding = both.asked[0]
    asked = sum(len(measures) for measures, _ in both.asked)
    alike = first.kind == "tree" and first.column == column and first.levels == STEPS and not others
    return alike and bounding.norm == "l1" and bounding.limit == 1 and asked > len(plan.needs)


def _measured(plan: Plan, both: Both) -> list[Part]:
    """The parts of measures, those of one bound together."""
    needs, found = {need.place: need for need in plan.needs}, []
    while both.asked:
        measures, bounding = both.asked[0]
        totals, start = both.next(), 0
        for measure in measures:
            law = plan.law(needs.pop((measure.kind, measure.column)), measure, bounding)
            part = totals[:, start : start + measure.width]
            found.append((part, law, law.sensitivity.need(plan.norm)))
            start += measure.width
    assert not needs or not found
    return found


def check(plan: Plan, both: Both) -> None:
    """What the plan charged covers how far the two databases turned out to be apart."""
    sides = 2 if plan.unit.relation == "replace" else 1
    assert all(apart <= 1 for apart in both.held)
    assert sum(both.held) <= sides * both.most
    spent = Fraction(0) if plan.norm == "l2" else 0.0
    parts = [*_searched(plan, both), *_measured(plan, both)]
    for apart, law, most in parts:
        square = squared(apart, plan.norm)
        assert square <= most**2, (plan.question.text, law)
        spent += square / law.scale**2 if plan.norm == "l2" else float(square) ** 0.5 / float(law.scale)
    if plan.norm == "l1":
        assert isinstance(plan.loss, Pure)
        assert spent <= float(plan.loss.limit) * (1 + 1e-12)
    elif isinstance(plan.loss, Gaussian):
        # A loss under replace is stated for half of what neighbours are apart.
        assert spent <= (sides / plan.loss.noise_multiplier) ** 2
