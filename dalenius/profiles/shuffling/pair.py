"""The pair of one report hidden in a shuffled crowd.

Let r be the largest likelihood ratio of a local report, and let each of n reports, independently, be of the
first or the second kind with probability p each, of a third kind with probability s, or of no use otherwise.
For ε from 0 to log r, with E = e^ε,
    H(ε) = (1/n)·E(ΣV)₊,  V = r − E, 1 − rE, ρ(1 − E) or 0 by its kind,  where p(r + 1) + sρ = 1.
With N reports of the first two kinds, D the first less the second and c the third, ΣV > 0 where D exceeds
κx, κ = 2·tanh(ε/2)/(r − 1), x = (r+1)N/2 + ρc, and so
    H(ε) = p(r − 1)(1 + E)·E[C_N(κx)/N],   N − 1 binomial (n − 1, 2p), C_N(t) = E(D − t)₊.
The pair is its own reverse. Which p, s and ρ bound which reports, and why, is in docs/proofs/shuffling.md:

    free       any report of ratio r:               p = 1/(r+1), no third kind
    blanket    a part of mass γ common to all:      p = (1−γ)/(r−1), s = γ − 2p, ρ = 1
    apart      any two laws at most β apart:        p = β/(r−1), s = (1 − (r+1)p)/r, ρ = r
    categories all others hold one of k values:     p = 1/(r+k−1), s = 1 − 2p, ρ = (1 − (r+1)p)/(1 − 2p)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import ELEMENTARY, Interval, clip, interval, spread
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.shuffling.blocks import Blocks, Crowd, blocks
from dalenius.profiles.shuffling.knots import Profile

Case = Literal["free", "blanket", "apart", "categories"]
FEW, MANY = 16, 1024
"""Up to FEW points are evaluated one by one; more are read off knots, and from MANY on off finer ones."""
ENTRIES = 250_000
"""Numbers in the tables for points evaluated one by one."""
COARSE, FINE = (16, 50_000), (80, 300_000)
"""Knots to a standard deviation of the loss, and numbers in the tables behind them."""
DEVIATIONS = 12
"""So many deviations have these knots; some more lead to the largest loss."""
LEAST_THIRD = 1e-12
"""A third kind less likely than this is left out, which bounds from above (a smaller blanket)."""


@dataclass(frozen=True)
class ShuffledPair(Pair):
    """`reporters` reports of largest loss `largest`, or of largest ratio `ratio` where that is rational.

    What is enclosed is a pair that dominates this one by a hair, or, `below`, one that is dominated by it:
    those of the nodes in `blocks`.
    """

    reporters: int
    case: Case
    share: Fraction
    largest: Fraction | None
    ratio: Fraction | None = None
    below: bool = False

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """By the formula of the module; for ε < 0, H(ε) = 1 − e^ε + e^ε·H(−ε)."""
        far = np.abs(epsilon)
        lo, hi = self._ahead(np.minimum(far, self.support[1]))
        shrunk, rest = np.exp(-far), -np.expm1(-far)
        back = [spread(rest + shrunk * end, 2 * ELEMENTARY + 4)[i] for i, end in enumerate((lo, hi))]
        lo, hi = np.where(epsilon >= 0, lo, back[0]), np.where(epsilon >= 0, hi, back[1])
        return clip(epsilon, lo, hi, top=self.support[1])

    def log_moment(self, order: float) -> Interval:
        """From the profile at knots."""
        return self._knots(*COARSE).log_moment(order)

    @property
    def support(self) -> tuple[float, float]:
        """The largest loss, both ways."""
        return (-self._top, self._top)

    def reversed(self) -> ShuffledPair:
        """Itself, the first two kinds exchanged."""
        return self

    @cached_property
    def _top(self) -> float:
        with workprec(BITS):
            return interval(self._ratio.log() if self.largest is None else ball(self.largest))[1]

    @property
    def _ratio(self) -> arb:
        if self.ratio is not None:
            return ball(self.ratio)
        assert self.largest is not None, "one of the two is given"
        return ball(self.largest).exp()

    def _ahead(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose H at 0 ≤ ε ≤ top."""
        if len(epsilon) <= FEW:
            return self._direct(epsilon, ENTRIES)
        return self._knots(*(FINE if len(epsilon) > MANY else COARSE)).at(epsilon)

    def _direct(self, epsilon: Floats, entries: int) -> tuple[Floats, Floats]:
        """One expm1, of which 2·tanh(ε/2) and 1 + E are made, and a few products."""
        grown = np.expm1(epsilon)
        low, high = self._blocks(entries).mean(2 * grown / (grown + 2) / self._constants[0], below=self.below)
        scale = self._constants[1] * (grown + 2)
        units = ELEMENTARY + 16
        return spread(low * scale, units)[0], np.minimum(spread(high * scale, units)[1], 1.0)

    @cached_property
    def _constants(self) -> tuple[float, float, float]:
        """r − 1, p(r − 1) and p, rounded to nearest."""
        with workprec(BITS):
            r = self._ratio
            p = self._kinds[0]
            return float(r - 1), float(p * (r - 1)), float(p)

    @cached_property
    def _kinds(self) -> tuple[arb, arb, arb]:
        """p, s and ρ."""
        with workprec(BITS):
            r, share = self._ratio, ball(self.share)
            free = 1 / (r + 1)
            if self.case == "blanket":
                p = ball(1 - self.share) / (r - 1)
                kinds = (p, share - 2 * p, arb(1))
            elif self.case == "apart":
                p = share / (r - 1)
                kinds = (p, (1 - (r + 1) * p) / r, r)
            elif self.case == "categories":
                p = 1 / (r + share - 1)
                return (p, 1 - 2 * p, (1 - (r + 1) * p) / (1 - 2 * p))
            else:
                kinds = (free, arb(0), arb(0))
            return kinds if self.below or kinds[1] * kinds[2] > LEAST_THIRD else (free, arb(0), arb(0))

    @cached_property
    def _crowd(self) -> Crowd:
        with workprec(BITS):
            p, s, weight = self._kinds
            pairs, slope = float(2 * p / (1 - 2 * p)), (self._ratio + 1) / 2
            if self.case == "categories":
                # All that is not of the first two kinds is of the third: c = n − N.
                base = float(weight * self.reporters)
                return Crowd(self.reporters, pairs, 0.0, float(slope - weight), base, 0.0)
            rest = ball(1 - self.share) if self.case == "blanket" and s > 0 else 1 - 2 * p - s
            thirds = float(s / rest)
            return Crowd(self.reporters, pairs, thirds, float(slope), 0.0, float(weight))

    def _blocks(self, entries: int) -> Blocks:
        return _tables(self._crowd, entries)

    def _knots(self, density: int, entries: int) -> Profile:
        return _profile(self, density, entries)

    @property
    def deviation(self) -> float:
        """About the standard deviation of the loss."""
        apart, p = self._constants[1:]
        return math.sqrt(2 * p / self.reporters) * apart / p


@lru_cache(maxsize=16)
def _tables(crowd: Crowd, entries: int) -> Blocks:
    return blocks(crowd, entries)


@lru_cache(maxsize=64)
def _profile(pair: ShuffledPair, density: int, entries: int) -> Profile:
    """The pair at knots, evenly up to DEVIATIONS and then ever farther apart."""
    top = pair.support[1]
    even = min(DEVIATIONS * pair.deviation, top)
    near = np.linspace(0, even, DEVIATIONS * density + 1)
    far = np.geomspace(even, top, 4 * density)[1:] if even < top else np.zeros(0)
    knots = np.append(near, far)
    knots[-1] = top
    parts = [pair._direct(part, entries) for part in np.array_split(knots, 32)]
    lower, upper = (np.concatenate(side) for side in zip(*parts, strict=True))
    upper[-1] = lower[-1] = 0.0
    return Profile(knots, lower, np.minimum.accumulate(upper))
