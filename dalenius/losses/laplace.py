"""The Laplace mechanism: noise of density e^{−|x|/b}/(2b) on a value of bounded L1 sensitivity.

Theorem (Dwork, McSherry, Nissim and Smith 2006; profile by Balle, Barthe and Gaboardi
2018). With b per unit of L1 sensitivity and ε₀ = 1/b, the worst pair is Lap(0, b), Lap(1, b):
    δ(ε) = max(0, 1 − e^ε, 1 − e^{(ε−ε₀)/2}),
    E e^{tL} = ((1+t) e^{tε₀} + t e^{−(1+t)ε₀}) / (1+2t)      (Mironov 2017).
It is attained, and it is its own reverse.

Vectors are no worse. Let shifts a ≤ b (in units of the scale) sit in two coordinates and write
G_s = 1 − δ_s = min(1, e^ε, e^{(ε−s)/2}). For ε ≥ 0 the product pair has 1 − δ = E[G_b(ε − L_a)], and
L_a ≤ a makes each of the three terms at least e^{(ε−a−b)/2} (the second because ε ≥ 0 ≥ a − b) or at
least 1; so it is at least G_{a+b}(ε). Negative ε follow since both pairs are their own reverse, and
more coordinates by induction, as dominating pairs compose.

`scale` is per unit of the L1 sensitivity under the stated relation, whichever that is.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.arithmetic import workprec
from dalenius.losses.fields import Described, Parameter, ratio
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import ELEMENTARY, Interval, around, below, clip, interval
from dalenius.profiles.pair import Complexes, Floats, Pair, Worst
from dalenius.profiles.rounding import U


@dataclass(frozen=True)
class LaplacePair(Pair):
    """Laplace laws of the same scale, `largest` scales apart: the loss ranges over ±largest."""

    largest: Fraction

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """1 − e^{(ε−ε₀)/2} in the range of the loss; in expm1 form it keeps its digits near ε₀."""
        (lo, _), (_, hi) = (below((epsilon - end) / 2) for end in self._ends)
        return clip(epsilon, lo, hi, top=self._ends[1])

    def log_moment(self, order: float) -> tuple[float, float]:
        """The closed form, in balls."""
        with workprec(BITS):
            e, t = ball(self.largest), ball(order)
            grown = (1 + t + t * (-(1 + 2 * t) * e).exp()) / (1 + 2 * t)
            return interval(grown.log() + t * e)

    def transform(self, z: Complexes) -> tuple[Complexes, Floats]:
        """The closed form; every term has a few roundings, and that of zε₀ counts |zε₀| times."""
        e, size = float(self.largest), np.abs(z)
        ahead, back = (1 + z) / (1 + 2 * z) * np.exp(z * e), z / (1 + 2 * z) * np.exp(-(1 + z) * e)
        units = 8 * ELEMENTARY + 32 + 8 * (1 + size) * e
        return ahead + back, U * units * (np.abs(ahead) + np.abs(back))

    def log_beyond(self, c: float, y: Floats) -> Floats:
        """|1 + z|/|1 + 2z| decreases with |y|, and |z|/|1 + 2z| is at most ½; never more than M(c)."""
        e = float(self.largest)
        share = np.sqrt(((1 + c) ** 2 + y * y) / ((1 + 2 * c) ** 2 + 4 * y * y))
        far = c * e + np.log(share + 0.5 * math.exp(-(1 + 2 * c) * e)) + 1e-12 * (1 + c * e)
        return np.minimum(far, self.log_moment(c)[1])

    def mean(self) -> Interval:
        """E L = ε₀ − 1 + e^{−ε₀}."""
        with workprec(BITS):
            e = ball(self.largest)
            return interval(e + (-e).expm1())

    @property
    def support(self) -> tuple[float, float]:
        """±ε₀, rounded outward."""
        return (-self._ends[1], self._ends[1])

    def reversed(self) -> LaplacePair:
        """Itself, by reflection."""
        return self

    @cached_property
    def _ends(self) -> Interval:
        return around(self.largest)


@dataclass(frozen=True, repr=False)
class Laplace(Described, kind="laplace"):
    """Laplace noise of `scale` per unit of L1 sensitivity: ε₀ = 1/scale."""

    scale: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    relation: Relation = "add_remove"

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((LaplacePair(1 / self.scale), 1),),)

    def enlarged(self, size: int) -> Laplace:
        """A group of k has k times the sensitivity."""
        return Laplace(self.scale / size, relation=self.relation)
