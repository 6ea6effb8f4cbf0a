"""How much a noisy histogram holds beyond a place, at most: the one assumption about what cannot be seen.

A sum Σ a_b·n_b over bins b, of amounts a_b ≥ 0 of which only far bins have any, is estimated without bias
from the noisy counts, and its deviation is known. Up to the outermost bin t that stands out of the noise it
is at most its estimate and so much noise as is exceeded with probability α.

Beyond t no sum over noise tells: a single unit there may have any amount. There this is assumed, and nothing
else: **the number of units falls from one bin to the next at least by the factor r, at least as a power law
of index 1.15 does, and there is no unit where fewer than one in twenty is to be expected.** r is the upper
confidence limit of the rate at which the bins about t fall: of sums of k neighbours up to t, or behind t, to
those of the k before, to the power 1/k, the least over k = 2, 4, 8 of those that can be told from noise. So
bin t + i holds at most r times what bin t + i − 1 does, and at most the upper confidence limit of its own
noisy count; and nothing if what it and those beyond may hold is less than 1/20.

Where bins are octaves that is a power law. Where they are equal steps, by which a power law falls the more
slowly the farther out, r tells its index κ, in the distance from the median of what stands out: with x and x′
the distances of the ends of bin t, (x/x′)^(κ + 1) = r. Bins beyond hold at most what the law has there,
beside what it has in bin t; and κ is at least 1.15 here too.

A Pareto law of index 1.15 or more falls so, one of less has hardly a mean; a lognormal or a Poisson law falls
faster. A few units far beyond all others break the assumption, whom no private answer can exclude. Where
nothing stands out of the noise there is no bound, and an interval that needs one is open.

All of it is post-processing of noisy counts, wherever they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.tables.planning.deviations import Floats
from dalenius.tables.planning.seeing import Blur

NEIGHBOURS = (2, 4, 8)
"""Of how many bins together rates are taken."""
RISK = 0.15
"""At which limits of rates and of the outermost bin are taken: they compound, bin by bin."""
ALONE = 0.03
"""At which those of single bins beyond are taken."""
NOBODY = 1 / 20
"""The expected number of units below which there is none."""
INDEX = 1.15
"""Of the power law that falls most slowly: a little more than 1, where there is a mean."""
LEAST_RATE = 1e-6
"""A rate below this is not told from it."""


@dataclass(frozen=True, eq=False)
class Tail:
    """A noisy histogram, its bins from the inside outward, and the outermost bin that stands out."""

    counts: Floats
    blur: Blur
    top: int
    octaves: float = 0.0
    """How many octaves a bin is wide; 0 where bins are steps."""
    edges: Floats | None = None
    """Of steps: how far the outer end of each is from the centre; the innermost may lie behind it."""

    def most(self, amounts: Floats, alpha: float) -> Floats:
        """Return what sums of amounts are at most, at risk alpha; infinite where nothing bounds them.

        Args:
            amounts: A row for each sum, a column for each bin, none negative.
            alpha: The risk for noise alone.
        """
        inner = amounts[:, : self.top + 1]
        noisy = inner @ self.counts[: self.top + 1]
        found = np.maximum(noisy + self.blur.reach(inner.T, alpha), 0.0)
        outer = amounts[:, self.top + 1 :]
        if not outer.any():
            return found
        if self.end is None:
            return np.where(outer.any(axis=1), np.inf, found)
        return found + outer @ self._beyond

    def likely(self, amounts: Floats) -> tuple[Floats, Floats]:
        """Return the estimates of sums over bins that may be seen, and their standard deviations."""
        inner = amounts[:, : self.top + 1]
        return inner @ self.counts[: self.top + 1], self.blur.scale * np.sqrt(np.square(inner).sum(axis=1))

    @cached_property
    def end(self) -> int | None:
        """The outermost bin that may hold anybody; None where no end is in sight."""
        if self.edges is not None and self._beyond[-1:].sum() > 0:
            return None
        return self.top + int(np.max(np.nonzero(self._beyond)[0] + 1, initial=0))

    @cached_property
    def edge(self) -> float:
        """The upper confidence limit of the outermost bin that stands out."""
        return max(float(self.counts[self.top] + self._reach(1)), 1.0)

    @cached_property
    def index(self) -> float:
        """The index of the power law that falls no faster."""
        rates = [
            self._fall(first, k) for k in NEIGHBOURS for first in (self.top - 2 * k + 1, self.top - k + 1)
        ]
        fall = -math.log2(max(min(rates), LEAST_RATE))
        if self.edges is None:
            return max(fall / self.octaves, INDEX)
        inner, outer = self._ends(self.top)
        return max(fall / math.log2(outer / inner) - 1, INDEX)

    def _ends(self, bin_: int) -> tuple[float, float]:
        """Return the distances of the ends of a step."""
        assert self.edges is not None
        outer = float(self.edges[bin_])
        inner = float(self.edges[bin_ - 1]) if bin_ else outer / 2
        return max(inner, outer / 2), outer

    def _part(self, bin_: int) -> tuple[float, float]:
        """Return what a bin holds, and it with all beyond, over what the law has beyond the outermost bin.

        Far out either may underflow to 0, which is nobody.
        """
        if self.edges is None:
            rate = 2.0 ** (-self.index * self.octaves)
            whole = rate ** (bin_ - self.top - 1)
            return whole * (1 - rate), whole
        inner, outer = self._ends(bin_)
        whole = math.exp(self.index * math.log(self._ends(self.top)[1] / inner))
        return whole * -math.expm1(self.index * math.log(inner / outer)), whole

    def _fall(self, first: int, k: int) -> float:
        """Return the limit of the rate from k bins to the k behind them."""
        middle, last = first + k, first + 2 * k
        if middle <= 0 or last > len(self.counts):
            return math.inf
        before = float(self.counts[max(first, 0) : middle].sum()) - self._reach(k)
        behind = max(float(self.counts[middle:last].sum()), 0.0) + self._reach(k)
        return math.pow(behind / before, 1 / k) if before > 0 else math.inf

    def _reach(self, bins: int) -> float:
        return float(self.blur.reach(np.ones((bins, 1)), RISK)[0])

    @cached_property
    def _beyond(self) -> Floats:
        """What bins beyond hold at most."""
        units, found = self.edge, np.zeros(len(self.counts) - self.top - 1)
        reach = float(self.blur.reach(np.ones((1, 1)), ALONE)[0])
        before, _ = self._part(self.top)
        for step, count in enumerate(self.counts[self.top + 1 :].tolist()):
            part, whole = self._part(self.top + 1 + step)
            if part == 0:
                break
            units = min(units * part / before, max(count, 0.0) + reach)
            if units * whole / part < NOBODY:
                break
            found[step], before = units, part
        return found
