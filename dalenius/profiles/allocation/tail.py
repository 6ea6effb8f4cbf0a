"""Sums in which some value lies at the last point of a grid or above it.

For calls nothing is left out. With a the last point, m and e the mass and the mean at or above it, e₋ the
mean below and q = 1 − m,
    E[S − z; some] = e + e₋(1 − q^{t−1}) − z(1 − q^t).
The call there is this plus E[(z − S)₊; some], which is at most tm·E(z − a/t − T)₊, T the sum of the others
over t: nothing where a ≥ tz, and by Chernoff tm·e^{λ(z − a/t)}·E[e^{−λT}]/(eλ) elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.arithmetic import workprec
from dalenius.profiles.allocation.law import SplitLaw
from dalenius.profiles.allocation.outline import blocks
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.convolution import growth
from dalenius.profiles.enclosure import Interval, between, interval
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import U


@dataclass(frozen=True)
class Tail:
    """Of sums in which some value lies at the last point or above: E[S; …], the chance, and two bounds.

    `missed` is at least E[(z − S)₊; …] and `near` at least E[e^{−θ|S′ − m|}; …], for all z of the range.
    """

    mean: Interval
    chance: Interval
    missed: float
    near: float


def tail(law: SplitLaw, steps: int, most: float) -> Tail:
    """What values at the last point or above come to, as measures of total mass one."""
    low = float(np.sum(law.masses * law.spacing.points[:-1]))
    edge = law.spacing.last * law.spacing.step
    with workprec(2 * BITS):
        off = 64 * U + 2 * law.looseness
        rounding = ball(1.0) + between((-off, off))
        top = ball(law.top) * rounding
        below = ball(low) * rounding * (ball(1.0) + between((-1e-9, 1e-9)))
        none = ((steps - 1) * (-top).log1p()).exp()
        mean = ball(law.beyond) * rounding + ball(edge) * top + below * (1 - none)
        chance = interval(1 - none * (1 - top))
    many = steps * law.top * growth(2 * steps * law.looseness + 64 * U)
    rest, rate = most * (1 + 128 * U) - edge / steps, 2 * math.sqrt(steps) / law.spacing.step
    rates = np.append(np.geomspace(0.1, 1e7, 60) / most, rate)
    low_sum = _low_sums(law, steps, rates) + rates * rest
    put = min(max(rest, 0.0), float((np.exp(np.minimum(low_sum, 700.0)) / rates).min()) / math.e) * (
        1 + 64 * U
    )
    near = min(1.0, float(np.exp(np.minimum(low_sum[rates <= rate], 0.0)).min()))
    return Tail(interval(mean), chance, many * put * 1.01, many * near * 1.01)


def _low_sums(law: SplitLaw, steps: int, rates: Floats) -> Floats:
    """At least log E e^{−rate·R}, R the mean of t − 1 values over t: neighbours together at the lowest."""
    points, masses = law.spacing.points, np.append(law.masses, law.top)
    starts = blocks(len(points))
    with np.errstate(divide="ignore"):
        logs = np.log(np.add.reduceat(masses, starts))
    exponents = logs - rates[:, None] * (points[starts] / steps)
    top = exponents.max(axis=1)
    moments = np.log(np.exp(exponents - top[:, None]).sum(axis=1)) + top
    return np.asarray((steps - 1) * (moments + 1e-12 + 16 * U * (np.abs(top) + 750)))
