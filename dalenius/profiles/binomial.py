"""n releases with one two-point pair: the exact binomial sum.

Theorem (Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016; for L = ±ε₀). If a finite L is `high` with
probability p and `low` otherwise, and is infinite with probability ι, then over n releases
    δ(ε) = 1 − (1−ι)^n + (1−ι)^n·Σ_j C(n,j) p^j (1−p)^{n−j} (1 − e^{ε−l_j})₊,   l_j = n·low + j(high − low).
The sum grows with p, `low` and `high`, so the ends of their enclosures give the ends of its own.

Rounding (docs/proofs/binomial.md). The largest term of a window is taken from ball arithmetic; the others
follow by ratios (n−j)/(j+1)·p/(1−p), at most 6U each; all is positive, so relative errors add up to
6U per term from the largest. Terms are log-concave in j: beyond the last term b with ratio ρ < 1 there is
at most bρ/(1−ρ). A window holds about √n terms, and never more than `MOST`: then the remainder is what
makes the answer wider, not wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.atoms import Atom, Atoms
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.inverse import invert
from dalenius.profiles.lattice import Interval, point
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import TINY, ULPS, U, ceiling, floor

MOST = 2**22
"""Terms in a window, at most."""
BLOCK = 1024
"""Windows start at multiples of this, or of a deviation, so that a search for ε uses few of them."""
REACH = 40.0
"""A window reaches until terms fall to about e^−40 of the largest."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Binomial probabilities from `first` on, and how much there is to the left and right of them."""

    first: int
    values: Floats
    rounding: float
    left: float
    right: float


@dataclass(frozen=True)
class Binomial:
    """n-fold composition of a two-point pair: see the module. `probability` is P(L = high | L finite)."""

    low: Interval
    high: Interval
    probability: Interval
    infinite: tuple[float, float]
    count: int
    _windows: dict[tuple[int, int], Terms] = field(default_factory=dict, compare=False, repr=False)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        low, high = self._sum(epsilon, 0), self._sum(epsilon, 1)
        ends = [abs(math.expm1(self.count * math.log1p(-i))) if i < 1 else 1.0 for i in self.infinite]
        least = ends[0] * (1 - 32 * U) + low * max(0.0, 1 - ends[0] * (1 + 32 * U))
        most = ends[1] * (1 + 32 * U) + high * (1 - ends[1] * (1 - 32 * U))
        always = max(0.0, -math.expm1(epsilon) * (1 - 16 * U)) if epsilon < 0 else 0.0
        return min(max(least * (1 - 8 * U), always), 1.0), min(max(most * (1 + 8 * U), always), 1.0)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta; n·high is enough where nothing is infinite."""
        top = tuple(max(Fraction(0), self.count * end) for end in self.high)
        if delta <= 0:
            return self._largest((floor(top[0]), ceiling(top[1])))
        p, step = float(self.probability[0]), float(self.high[1] - self.low[0])
        deviation = step * math.sqrt(self.count * p * (1 - p)) + TINY
        mean = float(self.count * (self.low[1] + self.probability[0] * (self.high[1] - self.low[1])))
        guess = min(max(0.0, mean + math.sqrt(-2 * math.log(delta)) * deviation), float(top[1]))
        found = invert(self.delta, delta, guess=guess, scale=deviation / 4)
        return (found[0], min(found[1], ceiling(top[1]))) if self.infinite[1] == 0 else found

    def _largest(self, top: tuple[float, float]) -> tuple[float, float]:
        return (
            math.inf if self.infinite[0] > 0 else top[0],
            math.inf if self.infinite[1] > 0 else top[1],
        )

    def _sum(self, epsilon: float, side: int) -> float:
        """The sum with all parameters at their lower (0) or upper (1) ends, rounded that way."""
        base, step = self.count * self.low[side], self.high[side] - self.low[side]
        start = max(0, math.floor((Fraction(epsilon) - base) / step) + 1)
        if start > self.count:
            return 0.0
        terms = self._terms(start, side)
        skipped = max(terms.first - start, 0)
        values = terms.values[max(start - terms.first, 0) :]
        gap = float(base + (start + skipped) * step - Fraction(epsilon))
        found = float(np.sum(values * -np.expm1(-(gap + float(step) * np.arange(len(values))))))
        relative = terms.rounding + (2 * ULPS + 40 + len(values).bit_length()) * 2 * U
        if side == 0:
            return found * (1 - relative)
        return found * (1 + relative) + terms.right + (terms.left if skipped else 0.0)

    def _terms(self, start: int, side: int) -> Terms:
        """The window for sums from `start` on."""
        n, p = self.count, float(self.probability[side])
        width = math.sqrt(n * p * (1 - p)) + 1
        block = max(BLOCK, 1 << int(width).bit_length())
        first = max(start // block * block, int(max(0.0, n * p - 11 * width)))
        if (first, side) not in self._windows:
            if len(self._windows) > 8:
                self._windows.clear()
            self._windows[first, side] = _window(n, self.probability[side], first, width)
        return self._windows[first, side]


def _window(n: int, probability: Fraction, first: int, width: float) -> Terms:
    """The terms from `first` until they have become negligible, by ratios from the largest."""
    odds = float(probability / (1 - probability))
    mode = min(max(first, int((n + 1) * float(probability))), n)
    drift = math.log(max((mode + 1) / (max(n - mode, 0.5) * odds), 1.0))
    reach = min(REACH / max(drift, 1e-300), width * math.sqrt(2 * REACH) * 2, MOST / 2)
    last = min(n, mode + int(reach) + 2)
    first = max(first, mode - MOST // 2)
    least, most = _anchor(n, mode, probability)
    upward = np.arange(mode, last, dtype=np.float64)
    downward = np.arange(mode, first, -1, dtype=np.float64)
    up_ratios = (n - upward) / (upward + 1) * odds
    down_ratios = downward / (n - downward + 1) / odds
    values = np.concatenate([np.cumprod(down_ratios)[::-1], [1.0], np.cumprod(up_ratios)]) * most
    rounding = (6 * max(len(upward), len(downward)) + 4) * 2 * U + (most - least) / most
    right = _remainder(float(values[-1]), (n - last) / (last + 1) * odds, n - last)
    left = _remainder(float(values[0]), first / (n - first + 1) / odds, first)
    return Terms(first, values, rounding, left * (1 + rounding), right * (1 + rounding))


def _remainder(last: float, ratio: float, many: int) -> float:
    """Σ of at most `many` further terms that fall at least as fast as `ratio`."""
    ratio *= 1 + 8 * U
    if many == 0:
        return 0.0
    return min(1.0, (last + TINY) * (ratio / (1 - ratio) if ratio < 1 else math.inf) * (1 + 16 * U))


def _anchor(n: int, j: int, probability: Fraction) -> tuple[float, float]:
    """Enclose C(n,j) p^j (1−p)^{n−j}."""
    with workprec(BITS + 2 * n.bit_length()):
        choose = arb(n + 1).lgamma() - arb(j + 1).lgamma() - arb(n - j + 1).lgamma()
        value = (choose + j * ball(probability).log() + (n - j) * ball(1 - probability).log()).exp()
        return lower(value), upper(value)


def two_point(pair: Pair, count: int) -> Binomial | None:
    """The composition of `count` of one two-point pair; None where the pair is no such thing."""
    if not isinstance(pair, Atoms) or len(pair.atoms) != 2:
        return None
    low, high = pair.atoms
    chance = tuple(
        Fraction(ours) / (Fraction(ours) + Fraction(others))
        for ours, others in zip(high.p, reversed(low.p), strict=True)
    )
    if not (_loss(low)[1] < _loss(high)[0] and chance[0] > 0 and chance[1] < 1):
        return None
    return Binomial(_loss(low), _loss(high), (chance[0], chance[1]), pair.infinite, count)


def _loss(atom: Atom) -> Interval:
    if atom.exact is not None:
        return point(atom.exact)
    return (Fraction(atom.loss[0]), Fraction(atom.loss[1]))
