"""Private marginals: counts by every combination of values of chosen columns, for several choices at once.

Columns hold integer codes 0 … size − 1, whose number is public. A marginal is a choice of columns; its table
has a row for every combination. Each record adds 1 to one row of every marginal.

Theorem (Dwork, McSherry, Nissim and Smith 2006). With noise of scale/wᵢ on marginal i, a unit of at most
r = `per_unit` records moves the counts times wᵢ by r·√(Σ wᵢ²) in L2, by √2 of that under replace: under
Gaussian noise the whole is one `losses.Gaussian` at that norm over scale. Under Laplace noise it is the
composition of the tables, r·Σ wᵢ/scale in all as pure ε; under replace each table has two moves by r. Both
are attained by a unit whose records are all alike, under replace by two where no table has a single row. The
share of marginal i in the cost is wᵢ²/Σ w² or wᵢ/Σ w.

All tables are one release with one receipt: the column `marginal` names the columns of the table, and columns
that are not among them are None. A record with a code outside its column's range is left out of the marginals
of that column. The error bar of a row is that of its noise, about the records kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.calibration import calibrate
from dalenius.losses.composition import compose
from dalenius.losses.fields import Parameter, listed
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.coded_columns import MOST_ROWS, read_chosen, read_codes, read_domain
from dalenius.mechanisms.contributions import kept, same_length
from dalenius.mechanisms.count_table import CountTable, additive
from dalenius.mechanisms.new_keys import Noise
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Steps
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up
from dalenius.privacy.unit import Relation, read_relation
from dalenius.release import Cell


@dataclass(frozen=True)
class Marginals(CountTable, kind="marginals"):
    """`marginals` of `columns` (a size for each name), under `noise` of `scale` over their `weights`.

    Marginals name their columns or number them; columns are kept as JSON.
    """

    _: KW_ONLY
    columns: Any
    marginals: Any
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    weights: Any = ()
    noise: Noise = "gaussian"
    per_unit: Parameter[int] = Parameter(numbers.count, 1)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        read_relation(self.relation)
        domain = read_domain(self.columns)
        chosen = tuple(read_chosen(marginal, [*domain]) for marginal in listed(self.marginals, "marginals"))
        stated = listed(self.weights, "weights")
        weights = tuple(numbers.positive(w, "weights") for w in stated) or (Fraction(1),) * len(chosen)
        values = {"columns": json.dumps(domain), "marginals": chosen, "weights": weights}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not 0 < len(chosen) == len(weights) or sum(map(math.prod, self.shapes)) > MOST_ROWS:
            raise InvalidArgument(
                "marginals must be one or more, with a weight for each, and have at most 2^24 rows in all.",
                remedy="Choose fewer columns at a time, and one weight for each marginal.",
            )
        _ = self.loss

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The sizes of the columns of each marginal."""
        sizes = [*json.loads(self.columns).values()]
        return [tuple(sizes[i] for i in chosen) for chosen in self.marginals]

    @cached_property
    def parts(self) -> list[tuple[Additive, int]]:
        """One law for the rows of each marginal."""
        tables = zip(self.weights, map(math.prod, self.shapes), strict=True)
        return [(additive(self.noise, self.scale / w, self._bound(rows)), rows) for w, rows in tables]

    def _bound(self, rows: int) -> Sensitivity:
        """How far one unit moves a table of so many rows."""
        most = Sensitivity.of_sum(l1=self.per_unit, nonnegative=True, relation=self.relation)
        return Sensitivity(l0=rows, l1=most.l1, l2=most.l2, linf=most.linf, relation=self.relation)

    @property
    def loss(self) -> Loss:
        """One Gaussian at the weighted norm, or the Laplace losses of all tables."""
        laws = [law for law, _ in self.parts]
        if self.noise == "laplace":
            return compose(law.loss for law in laws)
        least = min(law.scale for law in laws)
        squares = [(law.sensitivity.need("l2") * least / law.scale) ** 2 for law in laws]
        together = Sensitivity(l2=sqrt_up(sum(squares, Fraction(0))), relation=self.relation)
        return additive("gaussian", least, together).loss

    @property
    def rows(self) -> dict[str, list[Cell]]:
        """The marginal of each row, and its codes."""
        names = [*json.loads(self.columns)]
        found: dict[str, list[Cell]] = {"marginal": [], **{name: [] for name in names}}
        for chosen, shape in zip(self.marginals, self.shapes, strict=True):
            codes = [*product(*map(range, shape))]
            found["marginal"] += [",".join(names[i] for i in chosen)] * len(codes)
            for i, name in enumerate(names):
                place = chosen.index(i) if i in chosen else None
                found[name] += [None if place is None else row[place] for row in codes]
        return found

    def counts(self, value: Any, ids: Any = None) -> Steps:
        """Records by combination, one marginal after the other; with ids, `per_unit` of each unit."""
        sizes = [*json.loads(self.columns).values()]
        codes = read_codes(value, len(sizes))
        if ids is not None:
            same_length(ids, len(codes))
            codes = codes[kept(ids, self.per_unit)]
        inside = (codes >= 0) & (codes < np.array(sizes))
        found = []
        for chosen, shape in zip(self.marginals, self.shapes, strict=True):
            able = codes[inside[:, chosen].all(axis=1)][:, chosen]
            cells = np.ravel_multi_index(tuple(able.T), shape)
            found.append(np.bincount(cells, minlength=math.prod(shape)))
        return np.concatenate(found).astype(np.int64)

    def promise(self, ids: Any) -> str:
        """What bounds a unit's contributions."""
        by = "chosen by a hash of its id" if ids is not None else "by the caller's promise"
        return f"at most {self.per_unit} records per unit, {by}"

    def worst_case(self) -> tuple[Steps, Steps]:
        """Nobody, and a unit whose records are all alike; or, under replace, two such units."""
        return self.cases()[0]

    def cases(self) -> list[tuple[Steps, Steps]]:
        """The unit in the first row of each table, and in the last; where there is one row, out of it."""
        sizes = np.array([*json.loads(self.columns).values()])
        codes = [0 * sizes, sizes - 1 if sizes.max() > 1 else 0 * sizes - 1]
        first, last = (np.repeat([code], self.per_unit, axis=0) for code in codes)
        if self.relation == "replace":
            return [(last, first)]
        return [(unit[:0], unit) for unit in ([first, last] if sizes.max() > 1 else [first])]

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        columns: str | Mapping[str, int],
        marginals: Iterable[Iterable[int | str]],
        weights: Iterable[Number] = (),
        noise: Noise | None = None,
        per_unit: int = 1,
        relation: Relation = "add_remove",
    ) -> Marginals:
        """The least noise with which one release is (epsilon, delta)-differentially private.

        Where no law is named it is the Gaussian if delta is above 0.
        """
        limit, failure = numbers.positive(epsilon, "epsilon"), numbers.delta(delta)
        law: Noise = noise or ("gaussian" if failure else "laplace")
        draft = Marginals(
            columns=columns,
            marginals=marginals,
            scale=1,
            weights=weights,
            noise=law,
            per_unit=per_unit,
            relation=relation,
        )
        if law == "laplace" and failure == 0:
            cost = sum(part.sensitivity.need("l1") / part.scale for part, _ in draft.parts)
            return replace(draft, scale=Fraction(cost) / limit)
        if law == "gaussian":
            numbers.positive(delta, "delta")
        scale = calibrate(lambda x: replace(draft, scale=x).loss, epsilon=limit, delta=failure, name="scale")
        return replace(draft, scale=scale)
