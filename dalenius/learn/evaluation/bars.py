"""Error bars of what is computed from many noisy counts, by the law of their noise.

`deviation` bounds |Σ cᵢeᵢ| for independent noises eᵢ and known cᵢ, but for a probability alpha:

    Gaussian   each noise is a Gaussian, rounded, so within half a step of it: z·scale·‖c‖₂ + ‖c‖₁·step/2.
    Laplace    Chernoff: E e^{te} ≤ 1/(1 − t²b²) for |t|b < 1, b the scale. For the discrete law of step g and
               s = |t|: it is 1/(1 − sinh²(sg/2)/sinh²(g/2b)), and sinh(x)/x grows, so that the quotient of
               sines is at most (sb)² where s ≤ 1/b. Any λ gives a bound; the least of a list is taken.

`ratio`: at the true share p = a·n/b·n the sum (a − pb)·n' of noisy counts n' is the noise (a − pb)·e alone,
so the p at which it is within its deviation are a bar (Fieller 1954). Where a and b − a are one entry each,
`shares` has the law itself, and a shorter bar.

`auc`: with p, q the counts of the second and the first class by bin, A_i = Σ_{j<i} q_j + q_i/2, P = Σp and
Q = Σq, the AUC of binned scores is θ = Σ p_i A_i/(PQ). Let a_i(q) = A_i − θQ and d_j(p) = p_j/2 + Σ_{i>j} p_i
− θP, both linear, with weights of at most max(θ, 1 − θ) in size. With noises e on p and f on q,
    Σ (p + e)_i (A + F)_i − θ(P + e₊)(Q + f₊) = Σ e_i a_i(q) + Σ f_j d_j(p) + Σ e_i a_i(f),
as Σ p_i A_i = θPQ. Three events, each but for alpha/3: no a_i(f) and no d_j(e) is larger than D; the first
two sums, whose weights are fixed, are within their deviation, which grows with the size of each weight, so
that it is at most that of |a_i(q + f)| + D and |d_j(p + e)| + D; and the last, given f, is within D times the
deviation of weights 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.shares import share

Floats = NDArray[np.float64]
Bar = tuple[float, float, float]
"""A value and the ends of its bar."""
Within = Callable[[Floats], NDArray[np.bool_]]
"""Which numbers belong to a bar."""
POINTS, ROUNDS = 65, 4
"""Where a bar is looked for, and how often its ends are looked at more closely."""
TILTS = np.linspace(0.04, 0.98, 32)
"""Values of λ that are tried, of the greatest."""


def deviation(weights: Floats, noise: Additive, alpha: float) -> float:
    """What |Σ cᵢeᵢ| exceeds with probability at most alpha."""
    return float(deviations(weights[np.newaxis], noise, alpha)[0])


def deviations(weights: Floats, noise: Additive, alpha: float) -> Floats:
    """The same for each row of weights."""
    sizes = np.abs(weights)
    scale, step = float(noise.scale), float(noise.step)
    if isinstance(noise, Gaussian):
        from scipy.special import ndtri

        length = np.sqrt(np.square(sizes).sum(axis=1))
        return np.asarray(-float(ndtri(alpha / 2)) * scale * length + sizes.sum(axis=1) * step / 2) * (
            1 + 1e-9
        )
    most = sizes.max(axis=1, keepdims=True) * scale
    shares = np.divide(sizes * scale, most, out=np.zeros_like(sizes), where=most > 0)
    logs = np.stack([-np.log1p(-np.square(tilt * shares)).sum(axis=1) for tilt in TILTS])
    found = ((math.log(2 / alpha) + logs) / TILTS[:, np.newaxis]).min(axis=0)
    return np.asarray(found * most[:, 0] * (1 + 1e-9))


def ratio(part: Floats, whole: Floats, counts: Floats, noise: Additive, alpha: float) -> Bar:
    """part·n/whole·n of never negative counts n, of which `whole` counts all that `part` counts."""
    rest = whole - part
    if all(np.count_nonzero(side) == 1 == side.sum() for side in (part, rest)):
        step = float(noise.step)
        one, other = (round(float(side @ counts) / step) for side in (part, rest))
        return share(one, other, noise, Fraction(alpha))
    top, bottom = max(float(part @ counts), 0.0), max(float(rest @ counts), 0.0)
    value = top / (top + bottom) if top + bottom > 0 else 0.5
    used = whole != 0

    def within(points: Floats) -> NDArray[np.bool_]:
        weights = part[used] - np.outer(points, whole[used])
        return np.asarray(np.abs(weights @ counts[used]) <= deviations(weights, noise, alpha))

    return _hull(value, within)


def auc(second: Floats, first: Floats, noise: Additive, alpha: float) -> Bar:
    """The chance that a row of the second class scores above one of the first, ties counting half."""
    below, above = np.cumsum(first) - first / 2, np.cumsum(second[::-1])[::-1] - second / 2
    positive, negative = float(second.sum()), float(first.sum())
    product, half = positive * negative, float(second @ below)
    value = min(max(half / product, 0.0), 1.0) if positive > 0 and negative > 0 else 0.5
    ones = np.ones(len(second))
    each, last = (deviation(ones, noise, alpha / parts) for parts in (6 * len(second), 3))

    def within(points: Floats) -> NDArray[np.bool_]:
        most = np.maximum(points, 1 - points) * each
        sides = (
            below - np.outer(points, 0 * below + negative),
            above - np.outer(points, 0 * above + positive),
        )
        weights = np.abs(np.concatenate(sides, axis=1)) + most[:, np.newaxis]
        reach = deviations(weights, noise, alpha / 3) + most * last
        return np.asarray(np.abs(half - points * product) <= reach)

    return _hull(value, within)


def _hull(value: float, within: Within) -> Bar:
    """The outermost numbers from 0 to 1 that are within, as seen from a list of them, rounded outward."""
    points = np.linspace(0, 1, POINTS)
    held = [*points[within(points)].tolist(), value]
    gap = 1 / (POINTS - 1)
    low, high = min(held), max(held)
    return value, _edge(low, max(0.0, low - gap), within), _edge(high, min(1.0, high + gap), within)


def _edge(inside: float, outside: float, within: Within) -> float:
    """Between a number that is within and one that may be, the outermost that is, or a little beyond it."""
    for _ in range(ROUNDS):
        points = np.linspace(outside, inside, POINTS)
        first = int(np.argmax(np.append(within(points[:-1]), True)))
        if first == 0:
            return outside
        outside, inside = float(points[first - 1]), float(points[first])
    return outside
