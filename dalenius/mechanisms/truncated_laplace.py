"""The truncated Laplace mechanism: P(k) ∝ e^{−|k|/scale} on the whole numbers with |k| ≤ `bound`.

Noise that is never larger than a known bound, at the price of a δ.

Theorem (Geng, Ding, Guo and Kumar 2020, for the continuous law; here for the discrete one). Let Δ ≤ A be the
sensitivity and the bound in steps, a = e^{−1/scale}, ε = Δ/scale. The law is log-concave, so its shift by Δ
is the worst. Where both are positive the ratio is at most e^ε; the Δ outermost outcomes of one are impossible
under the other, which gives
    δ = a^{A−Δ+1}(1 − a^Δ)/(1 + a − 2a^{A+1})   at ε, and at any larger one.
Hence δ is kept just where a^{A+1} ≤ δ(1 + a)/(e^ε − 1 + 2δ).

The loss is the whole law of the pair: ε at k ≤ 0, (Δ − 2k)/scale at 0 < k < Δ, −ε from Δ on, and infinite
with probability δ. Its masses are rounded so that no less lies above any loss: costs are never below the
truth. A vector pays it for every entry that may change.

P(|noise| > k) = 2(a^{k+1} − a^{A+1})/(1 + a − 2a^{A+1}), and nothing lies beyond the bound.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.losses.raw import PrivacyLossDistribution
from dalenius.mechanisms.gridded import Bounded, read_sensitivity, steps_of
from dalenius.mechanisms.whole_numbers import WholeNumbers, entries, every_entry, largest, whole_grid
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import ball

LISTED = 512
"""Beyond this sensitivity in steps the loss is stated as (ε, δ) alone."""
ROUND = 2**96
"""Masses are multiples of one part in so many."""


@dataclass(frozen=True)
class TruncatedLaplace(WholeNumbers, kind="truncated_laplace"):
    """Laplace noise of `scale` that never exceeds `bound`, both in units of the value."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    bound: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    grid: Grid | None = None
    exact: bool = True
    norm: ClassVar[str] = "linf"
    fineness: ClassVar[int] = 6

    @property
    def most(self) -> int:
        """A: the bound in steps."""
        return math.floor(self.bound / self.step)

    @property
    def loss(self) -> Loss:
        """That of the law and its shift, once for every entry that may change."""
        scale, most, relation = self.scale / self.step, self.most, self.sensitivity.relation
        if largest(self.charged) > most:
            raise InvalidArgument(
                "bound must be at least the sensitivity.", remedy="Choose a larger bound, or calibrate."
            )
        return every_entry(self.charged, lambda far: _loss(scale, most, far, relation))

    def draw(self, size: int) -> Steps:
        """Laplace noise, drawn again where it exceeds the bound."""
        found, kept = np.empty(0, np.int64), 1 - self._cut
        while found.size < size:
            count = min(64 + math.ceil(1.1 * (size - found.size) / max(kept, 1e-6)), 2**22)
            drawn = noise.discrete_laplace(self.scale / self.step, count)
            found = np.concatenate([found, drawn[np.abs(drawn) <= self.most]])
        return found[:size]

    @property
    def _cut(self) -> float:
        """What the Laplace law has beyond the bound."""
        rate = float(self.step / self.scale)
        return 2 * math.exp(-rate * (self.most + 1)) / (1 + math.exp(-rate))

    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """Those of the Laplace law over what is kept of it."""
        rate = float(self.step / self.scale)
        inside = math.tanh(rate / 2) / (1 - self._cut) * np.exp(-rate * np.abs(steps))
        return np.where(np.abs(steps) <= self.most, inside, 0.0)

    def beyond(self, steps: int) -> float:
        """See the module; rounded up."""
        if not 0 <= steps < self.most:
            return 0.0 if steps >= self.most else 1.0
        rate = float(self.step / self.scale)
        more = math.exp(-rate * (steps + 1)) * -math.expm1(-rate * (self.most - steps))
        return min(2 * more / (1 + math.exp(-rate)) / (1 - self._cut) * (1 + 1e-9), 1.0)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        sensitivity: Sensitivity | Number,
        grid: Grid | None = None,
        exact: bool = True,
    ) -> TruncatedLaplace:
        """The least bound with which one release is (epsilon, delta)-differentially private."""
        limit, failure = numbers.positive(epsilon, "epsilon"), numbers.positive(delta, "delta")
        stated = read_sensitivity(sensitivity)
        grid = grid or whole_grid(stated, TruncatedLaplace.norm, TruncatedLaplace.fineness, exact=exact)
        steps = steps_of(stated, grid, exact=exact)
        count, far = entries(steps, 1), largest(steps)
        scale = far * count / limit
        each = failure / count
        a, odds = math.exp(-1 / scale), math.expm1(limit / count) + 2 * float(each)
        most = max(far, math.ceil(float(scale) * math.log(odds / (float(each) * (1 + a)))) - 1)
        for bound in range(most, most + 3):
            found = TruncatedLaplace(
                scale=scale * grid.step,
                bound=bound * grid.step,
                sensitivity=stated,
                grid=grid,
                exact=exact,
            )
            if found.loss.delta(limit).upper <= failure and found.loss.epsilon(failure).upper <= limit:
                return found
        raise NotSound(
            "No bound was found that keeps this promise.", remedy="Choose a coarser grid or a larger delta."
        )


@lru_cache(maxsize=256)
def _loss(scale: Fraction, most: int, far: int, relation: Relation) -> Loss:
    with workprec(256):
        a = (-1 / ball(scale)).exp()
        total = 1 + a - 2 * a ** (most + 1)
        leak = _up(a ** (most - far + 1) * (1 - a**far) / total)
        if far > LISTED:
            return Approximate(far / scale, delta=leak, relation=relation)
        # From the largest loss downward: the mass of all outcomes that tell at least so much.
        tops = [_up((1 - a ** (most + 1) + a * (1 - a**k)) / total) for k in range(far)]
    masses = [more - less for less, more in pairwise([leak, *tops, Fraction(1)])]
    losses = [(far - 2 * k) / scale for k in range(far + 1)]
    return PrivacyLossDistribution(losses, masses, infinite=leak, relation=relation)


def _up(number: arb) -> Fraction:
    """A probability, rounded up."""
    above = (number * ROUND).upper().ceil().unique_fmpz()
    assert above is not None
    return min(Fraction(int(above), ROUND), Fraction(1))
