"""The discrete Gaussian mechanism: P(k) ∝ e^{−k²/2σ²} on whole numbers, σ = `scale`.

Theorem (Canonne, Kamath and Steinke 2020). On whole numbers of L2 sensitivity Δ it is
Δ²/(2σ²)-zero-concentrated, for numbers and vectors. For one number the whole profile is known and attained:
the law against its shift by Δ (`losses.DiscreteGaussian`), at places above that of the continuous Gaussian,
so the two never share a calibration. A vector is charged entry by entry (see `whole_numbers`), which is exact
where one unit may change l0 entries by linf each, as in histograms. Where the L2 norm is far below √l0·linf,
or the scale above 10⁴ steps, it is charged as `losses.ZeroConcentrated`: no attaining pair is known.

P(|noise| > k) is summed from the law; for large σ it is at most 2Φ(−k/σ), by their tail bound. The noise is
subgaussian, of a variance not above σ².
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses import discrete_gaussian as losses
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import least_noise
from dalenius.mechanisms.gridded import Bounded
from dalenius.mechanisms.whole_numbers import WholeNumbers, by_entries
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity

LISTED = 4096
"""Up to this scale tails are summed."""


@dataclass(frozen=True)
class DiscreteGaussian(WholeNumbers, kind="discrete_gaussian"):
    """Discrete Gaussian noise of `scale` on whole numbers of L2 `sensitivity`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    grid: Grid | None = None
    exact: bool = True
    norm: ClassVar[str] = "l2"
    fineness: ClassVar[int] = 6

    @property
    def loss(self) -> Loss:
        """Entry by entry where that says more, else by the L2 norm."""
        return _loss(self.scale / self.step, self.charged)

    def draw(self, size: int) -> Steps:
        """Discrete Gaussian noise."""
        return noise.discrete_gaussian(self.scale / self.step, size)

    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """e^{−k²/2σ²} over its sum, which is σ√(2π) up to e^{−2π²σ²}."""
        scale = float(self.scale / self.step)
        return np.asarray(np.exp(-0.5 * (steps / scale) ** 2) / _total(scale))

    def beyond(self, steps: int) -> float:
        """Summed from the law, or the bound by the continuous one."""
        scale = float(self.scale / self.step)
        if steps < 0:
            return 1.0
        if scale > LISTED:
            return math.erfc(steps / scale / math.sqrt(2)) * (1 + 1e-9)
        tails = _tails(scale)
        return float(tails[min(steps, len(tails) - 1)])

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        sensitivity: Sensitivity | Number,
        grid: Grid | None = None,
        exact: bool = True,
    ) -> DiscreteGaussian:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        draft = DiscreteGaussian(scale=1, sensitivity=sensitivity, grid=grid, exact=exact)
        return least_noise(draft, epsilon=epsilon, delta=numbers.positive(delta, "delta"))


def _loss(scale: Fraction, steps: Sensitivity) -> Loss:
    known = None
    if scale <= losses.MOST_SCALE:
        known = by_entries(
            steps, lambda far: losses.DiscreteGaussian(scale, sensitivity=far, relation=steps.relation)
        )
    norm = steps.need("l2")
    return known or ZeroConcentrated(norm**2 / (2 * scale**2), relation=steps.relation)


@lru_cache(maxsize=64)
def _total(scale: float) -> float:
    if scale >= 4:
        return scale * math.sqrt(2 * math.pi)
    return math.fsum(math.exp(-0.5 * (k / scale) ** 2) for k in range(-200, 201))


@lru_cache(maxsize=64)
def _tails(scale: float) -> NDArray[np.float64]:
    """P(|noise| > k) for k = 0, 1, …, rounded up, until it is below 10^−300."""
    reach = math.ceil(38 * scale) + 2
    masses = np.exp(-0.5 * (np.arange(reach, -1, -1) / scale) ** 2) / _total(scale)
    sums = 2 * np.cumsum(masses)[::-1]
    return np.asarray(np.append(sums[1:], 0.0) * (1 + 1e-9) + 1e-300)
