"""The ρ of Skellam noise under a shift by one, from above.

Evaluation of ρ = sup K(t)/(t(t+1)), K the log-moment of the loss L, in floats with a margin of 10^−6. K is
convex with K(0) = 0: up to the first of a list of orders K(t)/t grows with t, and between two K is below its
chord. Beyond the last: L ≤ asinh((|x|+1)/v) (Amos 1974), so by its tangent where |x| + 1 = v·sinh w, and
E e^{s|X|} ≤ 2e^{v(cosh s − 1)}, at the order t = v·w·cosh w
    K(t) ≤ v(w² cosh w − w sinh w + cosh w − 1) + w + log 2,
which over t² falls with w: the derivative has the sign of 2w sinh w − (w² + 2) cosh w + 2, which is 0 at 0
and whose own derivative is −w² sinh w. The list ends where this is at most t²/(2v).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=256)
def concentration(variance: Fraction) -> Fraction:
    """An upper bound on the ρ of a shift by one, to about a thousandth."""
    v = float(variance)
    last = next(w for w in np.arange(1, 2000) / 100 if _far(w, v) <= 1)
    most = v * last * math.cosh(last)
    orders = np.geomspace(2.0**-10, most, 2 + math.ceil(12 * math.log(most * 2**10)))
    masses, losses = _law(v, math.ceil(1.5 * v * math.sinh(last) + 45 * math.sqrt(v) + 60))
    moments = [_log_moment(t, masses, losses) for t in orders.tolist()]
    chords = pairwise(zip(orders.tolist(), moments, strict=True))
    bounds = [0.5 / v, moments[0] / orders[0], *(_chord(*low, *high) for low, high in chords)]
    return Fraction(max(bounds) * (1 + 1e-6))


def _far(w: float, v: float) -> float:
    """The bound at the order v·w·cosh w and beyond, as a multiple of 1/(2v)."""
    cosh = math.cosh(w)
    return 2 * (w * w * cosh - w * math.sinh(w) + cosh - 1 + (w + math.log(2)) / v) / (w * cosh) ** 2


def _law(v: float, reach: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log P(x) and log P(x)/P(x−1) for −reach ≤ x ≤ reach."""
    ratio, logs = 0.5 * v / (reach + 80), []
    for k in range(reach + 79, 0, -1):
        ratio = 1 / (2 * k / v + ratio)
        logs.append(math.log(ratio))
    found = np.array(logs[::-1][: reach + 1])
    half = np.concatenate([[0.0], np.cumsum(found[:-1])])
    masses = np.concatenate([half[:0:-1], half])
    return masses - math.log(float(np.exp(masses).sum())), np.concatenate([-found[::-1], found[:-1]])


def _log_moment(t: float, masses: NDArray[np.float64], losses: NDArray[np.float64]) -> float:
    if t * losses[0] < 30:
        return math.log1p(float(np.sum(np.exp(masses) * np.expm1(t * losses))))
    powers = masses + t * losses
    return float(powers.max() + math.log(float(np.exp(powers - powers.max()).sum())))


def _chord(t: float, below: float, u: float, above: float) -> float:
    """The greatest of (slope·x − a)/(x(x + 1)) for t ≤ x ≤ u, the chord being slope·x − a."""
    slope = (above - below) / (u - t)
    a = max(slope * t - below, 0.0)
    x = min(max((a + math.sqrt(a * a + a * slope)) / slope, t), u)
    return (below + slope * (x - t)) / (x * (x + 1))
