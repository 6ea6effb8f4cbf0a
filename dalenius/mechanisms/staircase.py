"""The staircase mechanism on whole numbers: noise that falls by e^{−ε} once in Δ steps.

    P(k) = a·e^{−ε·level(k)},   level(k) = ⌊(|k| + Δ − width)/Δ⌋,
    1/a = (2(width + b(Δ − width)) − (1 − b))/(1 − b),   b = e^{−ε}.

Theorem (Geng and Viswanath 2014; Geng, Kairouz, Oh and Viswanath 2015). It is ε-differentially private, and
among all ε-private noise on integers of sensitivity Δ one of these widths 1 … Δ has the least expected
|noise|, and one the least variance. At Δ = 1 it is discrete Laplace noise.

Its whole profile. Shifted by d ≤ Δ, levels differ by −1, 0 or 1, so the loss is one of −ε, 0, ε. The integers
where it is ε grow in number with d, so d = Δ is the worst: there the loss is ε with probability
m = (1 + a)/2 + a·min(width − 1, Δ − width) and −ε with probability mb. That is randomized response of ε taken
with probability m(1 + b), and nothing otherwise: a `losses.Mixture`, less costly than `Pure(epsilon)` when
composed. A vector pays it for every entry that may change.

Sampling. |k| = jΔ + i with j geometric, i uniform below Δ and, from `width` on, kept with probability b; a
random sign, 0 with a minus drawn again. `scale` is Δ/ε, that of the Laplace mechanism.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.mixture import Mixture
from dalenius.losses.pure import Pure
from dalenius.mechanisms.gridded import Bounded, read_sensitivity, steps_of
from dalenius.mechanisms.whole_numbers import WholeNumbers, every_entry, largest, whole_grid
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.profiles.balls import ball


@dataclass(frozen=True)
class Staircase(WholeNumbers, kind="staircase"):
    """Staircase noise: `epsilon` for one entry that changes by `sensitivity`; the first tread has `width`."""

    _: KW_ONLY
    epsilon: Parameter[Fraction] = Parameter(numbers.positive)
    width: Parameter[int] = Parameter(numbers.count)
    sensitivity: Bounded = Bounded()
    grid: Grid | None = None
    exact: bool = True
    norm: ClassVar[str] = "linf"
    fineness: ClassVar[int] = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width > self.far:
            raise InvalidArgument(
                "width must not exceed the sensitivity in steps.", remedy="Use Staircase.calibrate."
            )

    @property
    def far(self) -> int:
        """Δ: the most steps by which one entry may change."""
        return largest(self.charged)

    @property
    def scale(self) -> Fraction:
        """Δ/ε."""
        return self.far * self.step / self.epsilon

    @property
    def loss(self) -> Loss:
        """Randomized response, taken with some probability; once for every entry that may change."""
        chance = _chance(self.epsilon, self.far, min(self.width, self.far))
        none = Pure(0, relation=self.sensitivity.relation)
        step = Mixture([Pure(self.epsilon, relation=none.relation), none], [chance, 1 - chance])
        return every_entry(self.charged, lambda _: step if chance < 1 else step.losses[0])

    def draw(self, size: int) -> Steps:
        """See the module."""
        found = np.empty(0, np.int64)
        while found.size < size:
            count = max(64, 4 * (size - found.size))
            rise = noise.discrete_laplace(1 / self.epsilon, count)
            tread = np.asarray(noise.uniform(self.far, count), dtype=np.int64)
            minus = noise.bernoulli(Fraction(1, 2), count)
            kept = (tread < self.width) | noise.bernoulli_exp(self.epsilon, count)
            away = np.minimum(rise, 2**62 // self.far - 1) * self.far + tread
            kept &= (rise >= 0) & ~(minus & (away == 0))
            found = np.concatenate([found, np.where(minus, -away, away)[kept]])
        return found[:size]

    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """a·b^level."""
        level = (np.abs(steps) + self.far - self.width) // self.far
        return np.asarray(self._top * np.exp(-float(self.epsilon) * level))

    def beyond(self, steps: int) -> float:
        """2a·b^j(what is left of the j-th tread, and all below it), rounded up."""
        if steps < 0:
            return 1.0
        j, i = divmod(steps + 1, self.far)
        b, treads = math.exp(-self.epsilon), self._treads
        left = max(self.width - i, 0) + b * (self.far - max(self.width, i))
        tail = math.exp(-float(self.epsilon) * j) * (left + b * treads / -math.expm1(-self.epsilon))
        return 2 * self._top * tail * (1 + 1e-12 * (1 + float(self.epsilon) * j))

    @property
    def _treads(self) -> float:
        return self.width + math.exp(-self.epsilon) * (self.far - self.width)

    @property
    def _top(self) -> float:
        """P(0)."""
        rest = -math.expm1(-self.epsilon)
        return rest / (2 * self._treads - rest)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        sensitivity: Sensitivity | Number,
        least: Literal["absolute", "variance"] = "absolute",
        grid: Grid | None = None,
        exact: bool = True,
    ) -> Staircase:
        """The width of least expected |noise|, or of least variance, at this epsilon."""
        bound, limit = read_sensitivity(sensitivity), numbers.positive(epsilon, "epsilon")
        grid = grid or whole_grid(bound, Staircase.norm, Staircase.fineness, exact=exact)
        charged = steps_of(bound, grid, exact=exact)
        far, limit = largest(charged), limit / (charged.l0 or 1)
        if least not in ("absolute", "variance"):
            raise InvalidArgument("least must be absolute or variance.", remedy="Pass one of these names.")
        width = _best(float(limit), far, least == "variance")
        return Staircase(epsilon=limit, width=width, sensitivity=sensitivity, grid=grid, exact=exact)


@lru_cache(maxsize=256)
def _chance(epsilon: Fraction, far: int, width: int) -> Fraction:
    """m(1 + b), rounded up."""
    with workprec(256):
        b = (-ball(epsilon)).exp()
        a = (1 - b) / (2 * (width + b * (far - width)) - (1 - b))
        chance = ((1 + a) / 2 + a * min(width - 1, far - width)) * (1 + b)
        above = (chance * 2**80).upper().ceil().unique_fmpz()
    return min(Fraction(int(above), 2**80), Fraction(1)) if above is not None else Fraction(1)


def _best(epsilon: float, far: int, squares: bool) -> int:
    """The width of least expected |noise| or squared noise, from the sums over one tread."""
    r = np.unique(np.linspace(1, far, min(far, 2**16)).round())
    b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    s0, s1, s2 = ((1 - b) * _power(r, p) + b * _power(np.float64(far), p) for p in (0, 1, 2))
    if squares:
        cost = far**2 * s0 * b * (1 + b) / rest**2 + 2 * far * s1 * b / rest + s2
    else:
        cost = far * s0 * b / rest + s1
    return int(r[np.argmin(cost / (2 * s0 - rest))])


def _power(n: NDArray[np.float64] | np.float64, p: int) -> NDArray[np.float64] | np.float64:
    """The sum of i^p over 0 ≤ i < n."""
    return [n, n * (n - 1) / 2, n * (n - 1) * (2 * n - 1) / 6][p]
