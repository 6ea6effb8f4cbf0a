"""Rényi and Kullback–Leibler divergences from the hockey-stick divergence, enclosed.

Theorem (Sason and Verdú 2016, with γ = e^ε). For α ≥ 1,
    (E_Q[(P/Q)^α] − 1)/(α(α−1)) = ∫₀^∞ e^{(α−1)ε} H_{P‖Q}(ε) dε + ∫₀^∞ e^{−αε} H_{Q‖P}(ε) dε,
the left side being D_KL(P‖Q) at α = 1.

Each integral of e^{sε}H is enclosed on cells of width h. H is convex in y = e^ε. With u from 0 to h within a
cell and v = (e^u − 1)/(e^h − 1), its chord (1−v)H_i + vH_{i+1} is above it, and the next cell's line, drawn
back, H_{i+1} + (1−v)e^{−h}(H_{i+1} − H_{i+2}), is below. Their integrals need only
    c₀ = ∫ e^{su} du    and    c₁ = ∫ v e^{su} du,
found in balls, the same for every cell. All terms are positive; a sum of n has n roundings.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import ELEMENTARY, Interval, between, interval
from dalenius.profiles.pair import Pair
from dalenius.profiles.rounding import TINY, U

CELLS = 4096
"""How many cells an integral is cut into; the width of its enclosure falls with the square."""

LARGEST = 1e6
"""Logarithms of moments from here on have too few digits after the point for Markov's inequality."""


@runtime_checkable
class Averaged(Protocol):
    """A pair that knows the mean of its loss."""

    def mean(self) -> Interval:
        """Enclose E L, which is D_KL(P‖Q)."""
        ...


def kullback_leibler(pair: Pair) -> Interval:
    """Enclose D_KL(P‖Q), from a pair without infinite losses and with a finite second moment."""
    if isinstance(pair, Averaged):
        return pair.mean()
    ahead, back = integral(pair, Fraction(0)), integral(pair.reversed(), Fraction(-1))
    return (ahead[0] + back[0]) * (1 - 2 * U), (ahead[1] + back[1]) * (1 + 2 * U)


def log_moment(pair: Pair, order: float) -> Interval:
    """Enclose log E e^{tL} for a pair of bounded losses, t times their top being below 700."""
    t = Fraction(order)
    ahead, back = integral(pair, t), integral(pair.reversed(), -1 - t)
    if math.isinf(ahead[1]):
        return (0.0, math.inf)
    with workprec(BITS):
        excess = ball(t) * ball(1 + t) * (between(ahead) + between(back))
        lo, hi = interval(excess.log1p())
    return (max(lo, 0.0), hi)


def integral(pair: Pair, s: Fraction) -> Interval:
    """Enclose ∫₀^∞ e^{sε}H(ε) dε."""
    top, rest = _cut(pair, s)
    if top <= 0 or math.isinf(rest) or float(s) * top > 700:
        return (0.0, rest if top <= 0 else math.inf)
    width = 2.0 ** math.ceil(math.log2(top / CELLS))
    points = np.arange(math.ceil(top / width) + 1, dtype=np.float64) * np.float64(width)
    (lo, hi), grown = pair.hockey(points), np.exp(float(s) * points[:-1])
    near, far, whole, back = _weights(s, width)
    most = float(np.sum(grown * (near[1] * hi[:-1] + far[1] * hi[1:])))
    line = np.append(np.maximum(lo[1:-1] - hi[2:], 0.0), 0.0)
    least = float(np.sum(grown * (whole[0] * lo[1:] + back[0] * line)))
    slack = 2 * U * (len(points) + ELEMENTARY + 12 + 4 * abs(float(s)) * float(points[-1]))
    return (max(least * (1 - slack), 0.0), (most * (1 + slack) + rest) * (1 + 4 * U) + TINY)


def _cut(pair: Pair, s: Fraction) -> Interval:
    """Where to stop, and what is left beyond at most.

    Up to the top loss nothing is left. Else, for s < 0, at most e^{sε}/|s|; for s ≥ 0, by Markov's
    inequality H(ε) ≤ e^{K(t) − tε}, at most e^{K(t) − (t−s)ε}/(t − s).
    """
    end, leak = pair.support[1], pair.infinite_mass[1] > 0
    if math.isfinite(end) and not leak:
        return (end, 0.0)
    if s < 0:
        far = ceil_power(-60 / s)
        return (far, math.exp(float(s) * far) * (1 + 2**-30) / float(-s))
    t = 2 * s + 1
    log = math.inf if leak else pair.log_moment(float(t))[1]
    if not log < LARGEST:
        return (1.0, math.inf)
    far = (log + 50) / float(t - s)
    return (far, math.exp(log - float(t - s) * far) * (1 + 2**-30) / float(t - s))


def ceil_power(number: Fraction) -> float:
    """The least power of two not below a positive number."""
    return 2.0 ** math.ceil(math.log2(number))


def _weights(s: Fraction, width: float) -> tuple[Interval, Interval, Interval, Interval]:
    """c₀ − c₁, c₁, c₀ and e^{−h}(c₀ − c₁), rounded outward."""
    with workprec(2 * BITS):
        h = ball(width)
        whole = _mean(ball(s), h)
        far = (_mean(ball(s + 1), h) - whole) / h.expm1()
        near = whole - far
        return interval(near), interval(far), interval(whole), interval((-h).exp() * near)


def _mean(s: arb, h: arb) -> arb:
    """∫₀^h e^{su} du."""
    return h if s == 0 else (s * h).expm1() / s
