"""The Laplace mechanism: two-sided geometric noise, P(k) ∝ e^{−|k|g/scale}, on steps of a grid.

Theorem (Ghosh, Roughgarden and Sundararajan 2009; Dwork, McSherry, Nissim and Smith 2006). On whole steps of
L1 sensitivity s the mechanism is s·g/scale-differentially private, for numbers and for vectors; its whole
profile is that of `losses.DiscreteLaplace`, attained by two numbers s steps apart. With a = e^{−g/scale},
    P(|noise| > kg) = 2a^{k+1}/(1 + a),   variance 2a/(1 − a)² g².

`scale` has the units of the value. A number handed in as a float is charged ⌈Δ/g⌉ steps (see `additive`): on
the default grid at most 2⁻¹⁴ of it more.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses.calibration import calibrate
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import (
    Additive,
    Bounded,
    default_grid,
    read_grid,
    read_sensitivity,
    steps_of,
)
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
        """That of the discrete Laplace law: entry by entry where all may change fully, else of the sum."""
        scale, relation, charged = self.scale / self.step, self.sensitivity.relation, self.charged
        each, total = int(charged.need("linf")), int(charged.need("l1"))
        if charged.l0 is not None and charged.l0 * each == total:
            return DiscreteLaplace(scale, sensitivity=each, relation=relation) * charged.l0
        return DiscreteLaplace(scale, sensitivity=total, relation=relation)

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
        bound = read_sensitivity(sensitivity)
        grid = read_grid(grid, default_grid(bound, Laplace.norm, Laplace.fineness))
        steps = int(steps_of(bound, grid, exact=exact).need("l1"))
        if numbers.delta(delta) == 0:
            scale = steps / numbers.positive(epsilon, "epsilon")
        else:
            scale = (
                calibrate(
                    lambda b: DiscreteLaplace(b * steps, sensitivity=steps, relation=bound.relation),
                    epsilon=epsilon,
                    delta=delta,
                    name="scale",
                )
                * steps
            )
        return Laplace(scale=scale * grid.step, sensitivity=sensitivity, grid=grid, exact=exact)
