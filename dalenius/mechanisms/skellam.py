"""The Skellam mechanism: the difference of two Poisson counts, of standard deviation `scale`.

Sums of Skellam noise are Skellam noise, so many parties can each add a share of it. On whole numbers
P(k) = e^{−v} I_|k|(v) with v = scale².

Theorem (Agarwal, Kairouz and Liu 2021; Skellam 1946). The law is log-concave, so for one number the worst
pair is the law and its shift by Δ (`losses.Skellam`, attained). A vector is charged entry by entry (see
`whole_numbers`), exactly where one unit may change l0 entries by linf each. Where its L2 norm Δ is far below
√l0·linf it is Δ²ρ-zero-concentrated, ρ being that of a shift by one: a shift by d is d of these, which cost
d²ρ (Bun and Steinke 2016, Proposition 1.9), and entries add. `skellam_concentration` has ρ, next to 1/(2v).
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
from dalenius.losses import skellam as losses
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import least_noise
from dalenius.mechanisms.gridded import Bounded
from dalenius.mechanisms.skellam_concentration import concentration
from dalenius.mechanisms.whole_numbers import WholeNumbers, by_entries
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class Skellam(WholeNumbers, kind="skellam"):
    """Skellam noise of standard deviation `scale` on whole numbers of L2 `sensitivity`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    grid: Grid | None = None
    exact: bool = True
    norm: ClassVar[str] = "l2"
    fineness: ClassVar[int] = 4

    @property
    def loss(self) -> Loss:
        """Entry by entry where that says more, else by the L2 norm."""
        return _loss(self._variance, self.charged)

    @property
    def _variance(self) -> Fraction:
        return (self.scale / self.step) ** 2

    def draw(self, size: int) -> Steps:
        """The difference of two Poisson counts."""
        return noise.skellam(self._variance, size)

    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """e^{−v} I_|k|(v)."""
        from scipy.special import ive

        return np.asarray(ive(np.abs(steps).astype(np.float64), float(self._variance)))

    def beyond(self, steps: int) -> float:
        """Summed from the law."""
        tails = _tails(float(self._variance))
        return 1.0 if steps < 0 else float(tails[min(steps, len(tails) - 1)])

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        sensitivity: Sensitivity | Number,
        grid: Grid | None = None,
        exact: bool = True,
    ) -> Skellam:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        draft = Skellam(scale=1, sensitivity=sensitivity, grid=grid, exact=exact)
        return least_noise(draft, epsilon=epsilon, delta=numbers.positive(delta, "delta"))


def _loss(variance: Fraction, steps: Sensitivity) -> Loss:
    known = by_entries(steps, lambda far: losses.Skellam(variance, sensitivity=far, relation=steps.relation))
    if known is not None:
        return known
    return ZeroConcentrated(steps.need("l2") ** 2 * concentration(variance), relation=steps.relation)


@lru_cache(maxsize=64)
def _tails(variance: float) -> NDArray[np.float64]:
    """P(|noise| > k) for k = 0, 1, …, rounded up, until it is next to nothing."""
    from scipy.special import ive

    reach = math.ceil(40 * math.sqrt(variance) + 200)
    masses = ive(np.arange(reach, -1, -1, dtype=np.float64), variance)
    sums = 2 * np.cumsum(masses)[::-1]
    return np.asarray(np.append(sums[1:], 0.0) * (1 + 1e-9) + 1e-300)
