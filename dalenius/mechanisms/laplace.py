"""The Laplace mechanism: two-sided geometric noise, P(k) ∝ e^{−|k|g/scale}, on steps of a grid.

Theorem (Ghosh, Roughgarden and Sundararajan 2009; Dwork, McSherry, Nissim and Smith 2006). On whole steps of
L1 sensitivity s the mechanism is s·g/scale-differentially private, for numbers and for vectors; of a number
the whole profile is that of `losses.DiscreteLaplace`, attained by two numbers s steps apart. With
a = e^{−g/scale},   P(|noise| > kg) = 2a^{k+1}/(1 + a),   variance 2a/(1 − a)² g².

Vectors: of two moves with the same L1 norm the more unequal one tells more (Schur-convexity; the proof is in
docs/mechanisms/laplace.md). Hence the worst move is the one whose largest entries are as large as they may:
⌊s/m⌋ entries by linf = m steps and one by the rest, and the loss, the composition of theirs, is attained.

`scale` has the units of the value. A number handed in as a float is charged ⌈Δ/g⌉ steps (see `additive`): on
the default grid at most 2⁻¹⁴ of it more, and 2⁻⁶ where scale is beyond 2²⁴ times Δ.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses.composition import compose
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gridded import Bounded, default_grid, read_grid, read_sensitivity
from dalenius.mechanisms.laplace_ratio import check_epsilon, least_ratio
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class Laplace(Additive, kind="laplace"):
    """Discrete Laplace noise of `scale` on values of L1 `sensitivity`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    grid: Grid | None = None
    exact: bool = False
    norm: ClassVar[str] = "l1"
    fineness: ClassVar[int] = 14

    @property
    def loss(self) -> Loss:
        """Those of the discrete Laplace law on the entries of the most unequal move."""
        each, total = (int(self.charged.need(norm)) for norm in ("linf", "l1"))
        parts = {each: total // each, total % each: 1}
        return compose(
            DiscreteLaplace(self.scale / self.step, sensitivity=far, relation=self.sensitivity.relation) * n
            for far, n in parts.items()
            if far
        )

    def draw(self, size: int) -> Steps:
        """Two-sided geometric noise."""
        return noise.discrete_laplace(self.scale / self.step, size)

    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """(1 − a)/(1 + a)·a^|k|."""
        rate = float(self.step / self.scale)
        return np.asarray(math.tanh(rate / 2) * np.exp(-rate * np.abs(steps)))

    def beyond(self, steps: int) -> float:
        """2a^{k+1}/(1 + a), rounded up."""
        if steps < 0:
            return 1.0
        rate = float(self.step / self.scale)
        return 2 * math.exp(-rate * (steps + 1)) / (1 + math.exp(-rate)) * (1 + 1e-12 * (1 + rate * steps))

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        sensitivity: Sensitivity | Number,
        grid: Grid | None = None,
        exact: bool = False,
    ) -> Laplace:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        limit, bound = numbers.epsilon(epsilon), read_sensitivity(sensitivity)
        scale = bound.need("l1") / limit
        grid = read_grid(grid, default_grid(bound, Laplace.norm, Laplace.fineness, scale))
        check_epsilon(limit, bound.need("l1") / grid.step)
        draft = Laplace(scale=max(scale, bound.need("l1")), sensitivity=sensitivity, grid=grid, exact=exact)
        norm = draft.charged.need("l1") * draft.step
        ratio = least_ratio(
            lambda b: replace(draft, scale=norm * b).loss, epsilon=limit, delta=numbers.delta(delta)
        )
        return replace(draft, scale=norm * ratio)
