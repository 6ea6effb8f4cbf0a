"""The share p = A/(A + B) from two sums under independent noise a, b, with an error bar.

At the true share (1 − p)A − pB = 0, so (1 − p)A' − pB' = A' − p(A' + B') of the noisy sums is the noise
(1 − p)a − pb alone, whose law is known: the bar holds every p at which it is no larger than it exceeds with
probability alpha, Q(p) (the method of Fieller 1954). No sum needs a bar of its own.

    Gaussian   Q(p) = z·scale·√((1−p)² + p²), and half a step more for rounding: (1−p)/2 + p/2.
    Laplace    With u, v = 1 − p, p, in either order, and x in scales, P(|noise| > x) is
               g = (u²e^{−x/u} − v²e^{−x/v})/(u − v), the law of the continuous noise. The discrete noise is
               a difference of two geometric variables, each an exponential one rounded down, so it is
               within one step of a continuous Laplace variable: one step more.

Q grows with |p − ½|: for g with u > v, the derivative in u has the sign of e^{2y}(y − 1) + y + 1 ≥ 0, where
y = x(u − v)/2uv ≥ 0. So Q(0) gives a first bar, and Q at its end farther from ½ a shorter one that is as
valid. Also |(1−p)a − pb| ≤ max(|a|, |b|), which is at most the reach of one noise at alpha/2.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gaussian import Gaussian

ROUNDS = 4
"""How often a bar is shortened; more changes nothing visible."""


def share(part: int, rest: int, noise: Additive, alpha: Fraction) -> tuple[float, float, float]:
    """The share of two noisy sums of what is never negative, in steps, and the ends of its bar."""
    first, second = max(part, 0), max(rest, 0)
    value = first / (first + second) if first + second else 0.5
    total = part + rest
    if total <= 0:
        return value, 0.0, 1.0
    # The reach of one noise is the shorter of the two only where steps are about as large as the noise.
    most = float(noise.reach(alpha / 2)) if noise.scale < 4 * noise.step else math.inf
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        far = low if abs(low - 0.5) > abs(high - 0.5) else high
        reach = min(most, spread(far, noise, float(alpha)))
        low, high = _held((part - reach) / total), _held((part + reach) / total)
    return value, min(low, value), max(high, value)


def spread(p: float, noise: Additive, alpha: float) -> float:
    """Q(p), in steps."""
    scale = float(noise.scale / noise.step)
    if isinstance(noise, Gaussian):
        return scale * math.hypot(p, 1 - p) * _normal(alpha) + 0.5
    return scale * _laplace(max(p, 1 - p), alpha) + 1


def tail(u: float, x: float) -> float:
    """P(|uY − vZ| > x) of independent Laplace variables Y, Z of scale 1, u + v = 1 and u ≥ v."""
    v = 1 - u
    if u - v < 1e-6:
        return math.exp(-2 * x) * (1 + x) + 1e-9
    return (u * u * math.exp(-x / u) - (v * v * math.exp(-x / v) if v > 0 else 0.0)) / (u - v)


def _laplace(u: float, alpha: float) -> float:
    """Where the tail is alpha, rounded up; it is at most e^{−x}."""
    low, high = 0.0, -math.log(alpha)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(u, middle) > alpha else (low, middle)
    return high * (1 + 1e-9)


def _normal(alpha: float) -> float:
    """The two-sided quantile of the normal law, rounded up."""
    from scipy.special import ndtri

    return -float(ndtri(alpha / 2)) * (1 + 1e-12)


def _held(share: float) -> float:
    return min(max(share, 0.0), 1.0)
