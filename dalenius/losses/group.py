"""Group privacy: the loss for k units together.

Exact where it is known: each kind says so in its `enlarged(k)`. A composition enlarges term by term,
since the group bound of each release dominates it. For all others two general bounds are kept.

Profile (a sharper form of the group bound in Vadhan 2017). Along a path of k neighbours,
    δ_k(ε) ≤ (1 + e^{ε/k} + … + e^{(k−1)ε/k}) · δ(ε/k) = δ(ε/k) · (e^ε − 1)/(e^{ε/k} − 1),   ε > 0,
and k·δ(0) at 0. For ε < 0, H_{P‖Q}(ε) = 1 − e^ε + e^ε H_{Q‖P}(−ε) reduces to the path walked back. δ is
that of the worse direction, so a path may remove some units and add others, as a replacement does.

Moments. Hölder's inequality (Bun and Steinke 2016) along the path, unrolled:
    D_α^{(k)} ≤ Σ_{m<k} A/(A−m) · D_{A−m},    A = kα;
for D_α = ρα it gives k²ρα, which the Gaussian attains. Neither bound is tight in general.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np

from dalenius.losses.composition import Composition, compose
from dalenius.losses.fields import a_loss, whole
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Relation
from dalenius.profiles.enclosure import ELEMENTARY, clip, spread
from dalenius.profiles.pair import Floats, Pair, Worst
from dalenius.profiles.product import collapse
from dalenius.profiles.rounding import U, ceiling, up

MOST_TERMS = 256
"""How many terms of the moment bound are summed one by one."""


@runtime_checkable
class Enlargeable(Protocol):
    """A kind that knows its group loss exactly."""

    def enlarged(self, size: int) -> Loss:
        """The loss for `size` units together."""
        ...


def enlarge(loss: Loss, size: int) -> Loss:
    """The loss for `size` units together: exact where known, else the general bounds."""
    if size == 1:
        return loss
    if isinstance(loss, Composition):
        return compose(enlarge(term, size) * count for term, count in loss.terms)
    if isinstance(loss, Enlargeable):
        return loss.enlarged(size)
    return Group(loss, size)


@dataclass(frozen=True)
class Group(Loss, kind="group"):
    """`size` units together, by the general bounds on their profile and moments."""

    loss: Loss
    size: int
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size"))
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)

    @property
    def tight(self) -> bool:
        """No mechanism is known that attains the general bounds."""
        return False

    def directions(self) -> tuple[Worst, ...] | None:
        """One bound for both directions, where the loss of one unit can be written as one pair in each."""
        single = self.loss.directions()
        pairs = [collapse(worst) for worst in single] if single is not None else []
        known = tuple(pair for pair in pairs if pair is not None)
        if not known or len(known) < len(pairs):
            return None
        return (((GroupPair(known, self.size), 1),),)

    def moment(self, order: float) -> float:
        """Hölder's inequality along the path, with every step rounded up."""
        return chained(self.loss.moment, self.size, order)


@dataclass(frozen=True)
class GroupPair(Pair):
    """What dominates a path of `size` steps, each dominated by one of `steps`; known from above only."""

    steps: tuple[Pair, ...]
    size: int

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Nothing below, the theorem above, and for ε < 0 the same of the path walked back."""
        far = np.abs(epsilon)
        bound = np.minimum(self._above(far), 1.0)
        less, rest = np.exp(-far), -np.expm1(-far)
        behind = spread(rest + less * bound, 2 * ELEMENTARY + 3)[1]
        top = math.inf if self._leaks else self.support[1]
        return clip(epsilon, np.zeros_like(epsilon), np.where(epsilon >= 0, bound, behind), top=top)

    def log_moment(self, order: float) -> tuple[float, float]:
        """Between nothing and Hölder's inequality."""
        return (0.0, chained(lambda t: max(step.log_moment(t)[1] for step in self.steps), self.size, order))

    @property
    def support(self) -> tuple[float, float]:
        """k times the largest of one step; anything where an outcome is impossible on one side of one."""
        top = math.inf if self._leaks else self._top
        return (-top, top)

    @property
    def largest(self) -> Fraction | None:
        """k times the largest of one step, where that is known as a rational."""
        known = [getattr(step, "largest", None) for step in self.steps]
        exact = [value for value in known if isinstance(value, Fraction)]
        return self.size * max(exact) if len(exact) == len(known) else None

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """At most what the bound leaves at k times the top loss of a step."""
        return (0.0, min(float(self._above(np.array([math.inf]))[0]), 1.0) if self._leaks else 0.0)

    def reversed(self) -> GroupPair:
        """Itself: the path walked back is a path."""
        return self

    @property
    def _leaks(self) -> bool:
        return any(step.infinite_mass[1] > 0 for step in self.steps)

    @property
    def _top(self) -> float:
        return max(up(self.size * max(step.support[1] for step in self.steps)), 0.0)

    def _above(self, epsilon: Floats) -> Floats:
        """The geometric sum, with ε/k rounded down (δ decreases) and its roundings counted.

        Past k times the top loss of a step only infinite losses remain and δ_k is still at most as there.
        """
        epsilon = np.minimum(epsilon, self._top)
        share = epsilon / self.size
        least = np.maximum(np.nextafter(share, -np.inf), 0.0)
        each = np.maximum.reduce([step.hockey(least)[1] for step in self.steps])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sums = np.where(share > 0, np.expm1(epsilon) / np.expm1(share), float(self.size))
            bound = np.where(each > 0, spread(each * sums, 2 * ELEMENTARY + 6 + epsilon)[1], 0.0)
        return np.nan_to_num(bound, nan=1.0, posinf=1.0)


def chained(moment: Callable[[float], float], size: int, order: float) -> float:
    """Return Hölder's bound for `size` steps; past MOST_TERMS each term is replaced by the largest.

    D_{A−m} ≤ K(t)/t at any float t not below A − m − 1, since Rényi divergences grow with the order.
    """
    last = size * (1 + Fraction(order))
    steps = range(size) if size <= MOST_TERMS else range(1)
    total = 0.0
    for m in steps:
        t = ceiling(last - m - 1)
        least = last - (m if size <= MOST_TERMS else size - 1)
        total += float(last / least) * (moment(t) / t)
    repeated = total if size <= MOST_TERMS else total * size
    return order * repeated * (1 + 2 * U * (len(steps) + 8))
