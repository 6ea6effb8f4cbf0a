"""The Rényi divergence of one GNMax answer where teachers agree: a figure that depends on the votes.

Let the winner i* be g votes ahead of m − 1 other classes. Another one wins with probability at most q =
(m−1)/2 · erfc(g/2σ), a union bound over differences of variance 2σ² (Papernot et al. 2018, Proposition 7,
with each class as near as the second). For neighbours with winners p and p′, whatever their votes are, D_μ ≤
μ/σ² both ways; take ε₁, ε₂ = μ₁/σ², μ₂/σ², with μ₂ = σ√log(1/q), μ₁ = μ₂ + 1 (their Proposition 10; any
other pair would do) and λ ≤ μ₁, μ₂ > 1. Write c = 1 − 1/μ₂ and q′ for the neighbour's q: q′ ≤ (qe^{ε₂})^c.

Theorem (Papernot et al. 2018, Theorem 6). If (qe^{ε₂})^c < 1 and
    q ≤ e^{(μ₂−1)ε₂}/(μ₁/(μ₁−1) · μ₂/(μ₂−1))^{μ₂},
    D_λ(p‖p′) ≤ log((1−q)A^{λ−1} + qB^{λ−1})/(λ−1),   A = (1−q)/(1−(qe^{ε₂})^c),   B = e^{ε₁}q^{−1/(μ₁−1)}:
i* is at most A times as likely, the others by Jensen's inequality from order μ₁. The condition makes it grow
with q (docs/amplification/pate.md), so that an upper bound on q will do.

The other way. By the same steps, with (1−q′)^λ ≤ 1,
    D_λ(p′‖p) ≤ log((1−q)^{1−λ} + (qe^{ε₂})^{c(μ₁−λ)/(μ₁−1)} e^{(λ−1)ε₁})/(λ−1),
which grows with q. Or by Theorem 6 about the neighbour: its lead is g − 2 at least, so its q′ is at most that
of g − 2, whoever wins there. The figure is the greater of both ways, with the lesser bound on the second, and
never above λ/σ², which holds for all votes. It speaks of one data set and its neighbours: it is no
differential privacy, and itself tells of the data.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import BITS, ball, lower, upper

UNITS = 2**20
"""A figure is a whole number of these parts of λ/σ², rounded up."""

STEP = 2
"""Votes by which a neighbour's lead may be less."""

Ints = NDArray[np.int64]


@lru_cache(maxsize=64)
def table(teachers: int, classes: int, scale: Fraction, order: Fraction) -> Ints:
    """The figure in units for a winner that is 0, 1, …, `teachers` votes ahead."""
    found = [_units(gap, classes, scale, order) for gap in range(teachers + 1)]
    values = np.array(found, np.int64)
    values.flags.writeable = False
    return values


def _units(gap: int, classes: int, scale: Fraction, order: Fraction) -> int:
    with workprec(BITS):
        q = runner_up(gap, classes, scale)
        back = [backward(q, scale, order)]
        if gap >= STEP:
            back.append(forward(runner_up(gap - STEP, classes, scale), scale, order))
        there, ways = forward(q, scale, order), [way for way in back if way is not None]
        if there is None or not ways:
            return UNITS
        worse = max(there, min(ways, key=upper), key=upper)
        share = upper(worse * ball(scale**2 / order) * UNITS)
        return min(-int(-share // 1), UNITS) if share < UNITS else UNITS


def runner_up(gap: int, classes: int, scale: Fraction) -> arb:
    """q: the chance that the class ahead by `gap` votes does not win is at most this."""
    return (ball(gap) / (2 * ball(scale))).erfc() * (classes - 1) / 2


def forward(q: arb, scale: Fraction, order: Fraction) -> arb | None:
    """D_λ(p‖p′); None where the theorem says nothing."""
    orders = _orders(q, scale, order)
    if orders is None:
        return None
    mu1, mu2, eps1, eps2 = orders
    moved = (q * eps2.exp()) ** (1 - 1 / mu2)
    allowed = ((mu2 - 1) * eps2).exp() / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2
    if not (q <= allowed and moved < 1):
        return None
    power = ball(order - 1)
    a, b = (1 - q) / (1 - moved), eps1.exp() / q ** (1 / (mu1 - 1))
    return ((1 - q) * a**power + q * b**power).log() / power


def backward(q: arb, scale: Fraction, order: Fraction) -> arb | None:
    """D_λ(p′‖p); None where nothing is said."""
    orders = _orders(q, scale, order)
    if orders is None:
        return None
    mu1, mu2, eps1, eps2 = orders
    power = ball(order - 1)
    others = (q * eps2.exp()) ** ((1 - 1 / mu2) * (mu1 - ball(order)) / (mu1 - 1))
    return ((1 - q) ** (-power) + others * (power * eps1).exp()).log() / power


def _orders(q: arb, scale: Fraction, order: Fraction) -> tuple[arb, arb, arb, arb] | None:
    """μ₁, μ₂ and the divergences there. μ₂ is a float: any will do, so it need not be exact."""
    if not (0 < q < 1):
        return None
    mu2 = ball(lower(ball(scale) * (-q.log()).sqrt()))
    mu1 = mu2 + 1
    if not (mu2 > 1 and mu1 >= ball(order)):
        return None
    variance = ball(scale) ** 2
    return mu1, mu2, mu1 / variance, mu2 / variance
