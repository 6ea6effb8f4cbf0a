"""A private histogram: how many records fall in each of a public list of categories.

Theorem (Dwork, McSherry, Nissim and Smith 2006). A unit adds at most `linf` records to each of at most `l0`
categories. So under add_remove and zero_out it changes l0 counts by linf each; under replace up to 2·l0 of
them, none by more than linf, and by no more than √(2·l0)·linf in L2 (`privacy.sensitivity`). Laplace noise
costs `losses.DiscreteLaplace` at linf once for every count that may change, Gaussian noise one
`losses.Gaussian` at the L2 norm; both are attained by a unit that uses all it may, and under replace by two
that share no category.

A category must not come from the data: that it occurs would be told without noise. Values outside the list
are left out, or with `other` counted together in a last row whose category is None; a record without a value
(None, NaN) is in no row, as under zero_out a null record must not be. With `ids`, of each unit the categories
it has most records in are kept (the first ones of the list where equal), and of each at most linf records: a
function of the unit's own records alone. A record without an id is left out (`contributions`).

The error bar of each count is that of the noise, whatever the data, about the count of records kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.categories import find, read_categories, values
from dalenius.mechanisms.contributions import NOBODY, same_length, units_of
from dalenius.mechanisms.count_table import CountTable, additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.moves import in_turn
from dalenius.mechanisms.new_keys import Noise
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, read_relation
from dalenius.release import Cell


@dataclass(frozen=True)
class Histogram(CountTable, kind="histogram"):
    """Counts by `categories` under `noise` of `scale`; a unit has `linf` records in each of `l0` of them."""

    _: KW_ONLY
    categories: Any
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    noise: Noise = "laplace"
    l0: Parameter[int] = Parameter(numbers.count, 1)
    linf: Parameter[int] = Parameter(numbers.count, 1)
    other: bool = False
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        read_relation(self.relation)
        object.__setattr__(self, "categories", read_categories(self.categories, "categories"))
        _ = self.loss

    @property
    def names(self) -> list[Cell]:
        """The category of each row."""
        found: list[Cell] = json.loads(self.categories)
        return [*found, None] if self.other else found

    @cached_property
    def additive(self) -> Additive:
        """The noise, at the sensitivity of the counts."""
        unit = Sensitivity.of_sum(l0=self.l0, linf=self.linf, nonnegative=True, relation=self.relation)
        rows = min(unit.l0 or 1, len(self.names))
        bound = Sensitivity(l0=rows, l2=unit.l2, linf=unit.linf, relation=self.relation)
        return additive(self.noise, self.scale, bound)

    @property
    def loss(self) -> Loss:
        """That of the noise on the counts that one unit may change."""
        return self.additive.loss

    @property
    def parts(self) -> list[tuple[Additive, int]]:
        """One law for all rows."""
        return [(self.additive, len(self.names))]

    @property
    def rows(self) -> dict[str, list[Cell]]:
        """The categories."""
        return {"category": self.names}

    def counts(self, value: Any, ids: Any = None) -> Steps:
        """Records by category; with ids, as many of each unit as it may have."""
        place = {name: i for i, name in enumerate(json.loads(self.categories))}
        outside = len(place) if self.other else -1
        codes = np.array([find(place, v, outside) for v in values(value)], np.int64)
        kept = codes >= 0
        if ids is not None:
            same_length(ids, len(codes))
            units = units_of(ids)[1]
            kept &= units != NOBODY
            return self._bounded(codes[kept], units[kept])
        return np.bincount(codes[kept], minlength=len(self.names)).astype(np.int64)

    def _bounded(self, codes: Steps, units: Steps) -> Steps:
        """Of each unit its l0 largest categories, each counted up to linf."""
        size = len(self.names)
        cells, found = np.unique(units * size + codes, return_counts=True)
        unit, code = cells // size, cells % size
        order = np.lexsort((code, -found, unit))
        first = np.searchsorted(unit[order], unit[order])
        top = order[np.arange(len(order)) - first < self.l0]
        total = np.zeros(size, np.int64)
        np.add.at(total, code[top], np.minimum(found[top], self.linf))
        return total

    def promise(self, ids: Any) -> str:
        """What bounds a unit's contributions."""
        by = "most records first" if ids is not None else "by the caller's promise"
        return f"at most {self.linf} records in each of {self.l0} categories per unit, {by}"

    def worst_case(self) -> tuple[list[Cell], list[Cell]]:
        """One record, and with it a unit that uses all it may; or, under replace, two units in other rows."""
        return self.cases()[0]

    def cases(self) -> list[tuple[list[Cell], list[Cell]]]:
        """The unit in the first rows, in the next ones, and so on to the last."""
        size, used = len(self.names), self.additive.sensitivity.l0 or 1
        return [self._case(np.flatnonzero(turn).tolist()) for turn in in_turn([1] * used, size)]

    def _case(self, rows: list[int]) -> tuple[list[Cell], list[Cell]]:
        """Records that fall in these rows; what falls in the last one is a text longer than any category."""
        outside = "-" * (1 + len(self.categories))
        found: list[Cell] = [outside if name is None else name for name in (self.names[i] for i in rows)]
        first, second = (self.linf * part for part in (found[: self.l0], found[self.l0 :]))
        nobody: list[Cell] = [None] * len(first)
        if self.relation == "replace":
            return first, (second + nobody)[: len(first)]
        return [found[0]], [found[0], *first]

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        categories: str | Iterable[Cell],
        noise: Noise = "laplace",
        l0: int = 1,
        linf: int = 1,
        other: bool = False,
        relation: Relation = "add_remove",
    ) -> Histogram:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        draft = Histogram(
            categories=categories, scale=1, noise=noise, l0=l0, linf=linf, other=other, relation=relation
        )
        law = Gaussian.calibrate if noise == "gaussian" else Laplace.calibrate
        found = law(
            epsilon=epsilon,
            delta=delta,
            sensitivity=draft.additive.sensitivity,
            grid=Grid(0),
            exact=True,
        )
        return replace(draft, scale=found.scale)
