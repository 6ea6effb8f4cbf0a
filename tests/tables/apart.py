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
from dalenius.privacy.unit import Unit
from dalenius.tables.engines.engine import MASS, Bounding, Loaded, Measure
from dalenius.tables.planning.plan import Plan
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
    asked: tuple[Sequence[Measure], Bounding] | None = None
    totals_apart: Any = None

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
        self.asked = (measures, bounding)
        self.totals_apart = one.astype(object) - other.astype(object)
        return one


def squared(apart: Any, norm: str) -> Fraction:
    """The square of a distance, exactly."""
    flat = [abs(int(k)) for k in np.asarray(apart, dtype=object).reshape(-1)]
    return Fraction(sum(k * k for k in flat)) if norm == "l2" else Fraction(sum(flat)) ** 2


def check(plan: Plan, both: Both) -> None:
    """What the plan charged covers how far the two databases turned out to be apart."""
    sides = 2 if plan.unit.relation == "replace" else 1
    assert all(apart <= 1 for apart in both.held)
    assert sum(both.held) <= sides * both.most
    spent = Fraction(0) if plan.norm == "l2" else 0.0
    parts: list[tuple[Any, Any]] = []
    shapes, magnitudes = iter(both.shapes_apart), iter(both.magnitudes_apart)
    for search, noise in zip(plan.searches, plan.search_noises, strict=True):
        if both.asked is None:  # no key was selected, so nothing was looked for
            break
        values = search.kind == "values"
        law = noise.on(Fraction(MASS if values else 1), nonnegative=True)
        parts.append((next(magnitudes if values else shapes), law))
    if both.asked is not None:
        measures, bounding = both.asked
        start = 0
        for need, measure in zip(plan.needs, measures, strict=True):
            part = both.totals_apart[:, start : start + measure.width]
            parts.append((part, plan.law(need, measure, bounding)))
            start += measure.width
    for apart, law in parts:
        square = squared(apart, plan.norm)
        assert square <= law.sensitivity.need(plan.norm) ** 2, (plan.question.text, law)
        spent += square / law.scale**2 if plan.norm == "l2" else float(square) ** 0.5 / float(law.scale)
    if plan.norm == "l1":
        assert isinstance(plan.loss, Pure)
        assert spent <= float(plan.loss.limit) * (1 + 1e-12)
    elif isinstance(plan.loss, Gaussian):
        # A loss under replace is stated for half of what neighbours are apart.
        assert spent <= (sides / plan.loss.noise_multiplier) ** 2
