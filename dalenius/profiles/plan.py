"""Choosing a contour: saddle point, cutoffs, spacing. Nothing here is a claim; `Contour` checks it all.

The law of a composition has up to three scales: the bulk of records that were not sampled, the
jumps of the size of ε, and jumps far beyond ε. The upper cutoff removes the last (their share of δ
has a closed form), the lower one isolates the first where that pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dalenius.profiles.cutoff import Cutoff
from dalenius.profiles.nodes import Nodes, Part
from dalenius.profiles.pair import Floats

LOG_TAU = math.log(1e-12)
"""Each analytic error term is aimed at this fraction of δ."""
MANY = 30
"""Below so many releases a few digits less do."""
GAIN = 4.0
"""By how much cutoffs near ε must lower the logarithm of the integrand to be worth their nodes."""
LOG_LATE = math.log(1e-11)
"""How rare it should be that a jump beyond the level which settles the outcome comes to nothing."""
COARSE = 0.125
NEARLY = 6.2
"""Widths from the level that settles the outcome to the middle of a cutoff: ½ erfc(5.5) < 4e-15."""


FIRST, THEN = np.linspace(0, 1, 28), np.linspace(0, 1, 9)
"""Where the minimum of the integrand is looked for, in two rounds."""
Kept = tuple[int, Floats]
"""How many nodes of a grid are kept, and the logarithm of the cutoff there."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """The composition on coarse grids, good to a few digits: enough to choose where to look closely.

    `squared` is μ² of the plain Gaussians composed with the parts.
    """

    parts: tuple[Part, ...]
    sign: int
    log_delta: float
    squared: float = 0.0

    @cached_property
    def target(self) -> float:
        """log of the error aimed at: many releases call for more digits of δ, as round-off takes some."""
        return self.log_delta + (LOG_TAU if sum(part.times for part in self.parts) >= MANY else 0.8 * LOG_TAU)

    @cached_property
    def cuts(self) -> tuple[tuple[float, float], ...]:
        """For each part, where its tails matter less than the target."""
        return tuple(self._cut(part) for part in self.parts)

    def _cut(self, part: Part) -> tuple[float, float]:
        room = self.target - math.log(part.times * len(self.parts)) - 1
        left = math.sqrt(-2 * room)
        if self.sign < 0:
            return -left, left
        each = (
            a + math.sqrt(max(1.0, -2 * (room - math.log(p))))
            for p, a in zip(part.weights, part.shifts, strict=True)
            if p
        )
        return -left, max(each)

    @cached_property
    def grids(self) -> tuple[Nodes, ...]:
        """Each part between its cuts."""
        return tuple(
            Nodes(part, COARSE, math.floor(left / COARSE), math.ceil((1.07 * right + 3) / COARSE))
            for part, (left, right) in zip(self.parts, self.cuts, strict=True)
        )

    @cached_property
    def sizes(self) -> tuple[float, float]:
        """The least and the largest plausible standard deviation of the total loss."""
        slopes = [max(p.shifts) * math.sqrt(p.times) for p in self.parts]
        rates = [s * sum(float(w) for w, _ in p.moving) for s, p in zip(slopes, self.parts, strict=True)]
        return math.hypot(math.sqrt(self.squared), *rates), math.hypot(math.sqrt(self.squared), *slopes)

    @cached_property
    def reserve(self) -> tuple[float, float]:
        """R such that a jump beyond ε + R (sign +) or R − ε (sign −) settles the outcome, and its exponent.

        Jumps beyond ε are about as rare as δ, so being late after one need only be rare in itself.
        """
        t = np.geomspace(0.01, 100 / self.sizes[0] + 1, 40)
        total = sum(
            part.times * log_sum(grid.log_density - t[:, None] * grid.log[0])
            for part, grid in zip(self.parts, self.grids, strict=True)
        )
        rare = LOG_LATE if self.sign > 0 else self.target
        total = total + self.squared * t * (t + 1) / 2
        found = (total - rare) / (t + (self.sign > 0))
        i = int(np.argmin(found))
        return float(found[i]), float(t[i])

    def exponent(self, c: float) -> float:
        """The exponent of w at z = c."""
        return 1 + c if self.sign > 0 else -c

    def level(self, epsilon: float) -> float:
        """λ beyond which a release settles the outcome."""
        return self.sign * epsilon + self.reserve[0]

    @cached_property
    def far(self) -> list[Cutoff]:
        """Cutoffs at the tails."""
        widths = [min(0.35, 0.3 / max(part.shifts)) for part in self.parts]
        return [
            Cutoff(tail * math.sqrt(1 + v * v / 2), v) for v, (_, tail) in zip(widths, self.cuts, strict=True)
        ]

    def near(self, epsilon: float) -> tuple[list[Cutoff], bool]:
        """Cutoffs where a release settles the outcome, or at the tails; True if all are at the tails."""
        level, light = self.level(epsilon), True
        found: list[Cutoff] = []
        for part, grid, (_, tail) in zip(self.parts, self.grids, self.cuts, strict=True):
            at = int(np.searchsorted(grid.log[0], level))
            width = self._sharp(part, grid, at, epsilon)
            settled = float(grid.edges[at + 1]) + NEARLY * width if at + 1 < len(grid.edges) else math.inf
            tails = tail * math.sqrt(1 + width * width / 2)
            found.append(Cutoff(min(settled, tails), width))
            light = light and settled >= tails
        return found, light

    def _sharp(self, part: Part, grid: Nodes, at: int, epsilon: float) -> float:
        """A width over which e^{cλ} changes little, c being about log(1/δ)/ε."""
        most = min(0.3, 0.06 / max(part.shifts))
        if at >= len(grid.x) or epsilon <= 0:
            return most
        tilt = -self.log_delta / epsilon * part.slope(float(grid.x[at]))
        return min(most, max(0.15 * most, 0.7 / tilt))

    def ends(self, cutoffs: list[Cutoff]) -> list[Kept]:
        """For each grid, how many nodes are kept and log χ there."""
        return [self._kept(grid, cutoff) for grid, cutoff in zip(self.grids, cutoffs, strict=True)]

    def _kept(self, grid: Nodes, cutoff: Cutoff) -> Kept:
        start, end = (int(np.searchsorted(grid.x, cutoff.middle + k * cutoff.width)) for k in (-4, 12))
        end = max(2, end)
        kept = np.zeros(end)
        kept[start:] = cutoff.log_inside(grid.x[start:end])
        return end, kept

    def cumulants(self, c: Floats, ends: list[Kept]) -> tuple[Floats, Floats, Floats]:
        """K, K′ and K″ on the real axis of the law cut at `ends`."""
        s = (1 + c if self.sign > 0 else -c)[:, None]
        k, k1, k2 = self.squared * c * (c + 1) / 2, self.squared * (c + 0.5), self.squared + 0.0 * c
        for part, grid, (end, kept) in zip(self.parts, self.grids, ends, strict=True):
            log = grid.log[0][:end]
            exponent = grid.log_density[:end] + kept + s * log
            top = exponent.max(axis=1)
            p = np.exp(exponent - top[:, None])
            mass = p.sum(axis=1)
            mean = p @ log / mass
            k += part.times * (top + np.log(mass))
            k1 += self.sign * part.times * mean
            k2 += part.times * np.maximum(p @ (log * log) / mass - mean**2, 0.0)
        return k, k1, k2

    def saddle(self, epsilon: float) -> Saddle:
        """The minimum of the integrand on the real axis, cut near ε where that gains much."""
        point = self._saddle(epsilon, self.far, light=True)
        cutoffs, light = self.near(epsilon)
        if light and self._clear(point):
            return point
        near = self._saddle(epsilon, cutoffs, light)
        return point if self._clear(point) and point.size < near.size + GAIN else near

    def steepest(self, epsilon: float) -> float:
        """Where Chernoff's bound is least for the law without cutoffs."""
        c = np.geomspace(0.003 / self.sizes[1], 300 / self.sizes[0], 60)
        whole = [(len(grid.x), np.zeros(len(grid.x))) for grid in self.grids]
        return float(c[int(np.argmin(self.cumulants(c, whole)[0] - c * epsilon - np.log1p(c)))])

    def under(self, epsilon: float, cutoff: Cutoff) -> Saddle:
        """The same for the law under a given cutoff."""
        return self._saddle(epsilon, [cutoff], light=True)

    def _saddle(self, epsilon: float, cutoffs: list[Cutoff], light: bool) -> Saddle:
        ends = self.ends(cutoffs)
        low, high = 0.003 / self.sizes[1], 300 / self.sizes[0]
        c = low * (high / low) ** FIRST
        for _ in range(2):
            k, _, k2 = self.cumulants(c, ends)
            size = k - c * epsilon - np.log(c) - np.log1p(c)
            i = int(np.argmin(size))
            found = Saddle(
                epsilon, float(c[i]), float(k[i]), float(k2[i]), float(size[i]), ends, cutoffs, light
            )
            low, high = float(c[max(i - 1, 0)]), float(c[min(i + 1, len(c) - 1)])
            c = low * (high / low) ** THEN
        return found

    def _clear(self, point: Saddle) -> bool:
        """Whether the tilted mass near the cutoffs is negligible."""
        s = self.exponent(point.c)
        for part, grid, (end, kept), cutoff in zip(
            self.parts, self.grids, point.ends, point.cutoffs, strict=True
        ):
            exponent = grid.log_density[:end] + kept + s * grid.log[0][:end]
            edge = int(np.searchsorted(grid.x, cutoff.middle - 2 * cutoff.width))
            if math.log(part.times) + float(exponent[edge:].max()) > float(exponent.max()) - 12:
                return False
        return True

    def estimate(self, epsilon: float) -> float:
        """log δ(ε), to a few per cent."""
        return self._estimate(self.saddle(epsilon))

    def _estimate(self, point: Saddle) -> float:
        epsilon = point.epsilon
        if not point.light and self.reserve[0] < 0.5 * epsilon and self.sign > 0:
            return self._single_jump(epsilon, point)
        log_body = point.size - 0.5 * math.log(2 * math.pi * (point.k2 + point.c**-2 + (1 + point.c) ** -2))
        body = math.exp(min(0.0, log_body))
        return math.log(max(body + self._beyond(epsilon, point.ends), 1e-300))

    def _single_jump(self, epsilon: float, point: Saddle) -> float:
        """log δ(ε) where the bulk is narrow: one release decides, moved by the mean of the others."""
        total = 0.0
        for part, grid, (end, _) in zip(self.parts, self.grids, point.ends, strict=True):
            low = int(np.searchsorted(grid.log[0], 0.1 * epsilon))
            density = np.exp(grid.log_density[:low]) * (1 + grid.excess[0][:low])
            moved = epsilon - (part.times - 1) * float(density @ grid.log[0][:low])
            p, q = part.beyond(float(np.interp(moved, grid.log[0][:end], grid.x[:end])))
            total += part.times * max(0.0, p - math.exp(min(700.0, moved)) * q)
        return math.log(max(total, 1e-300))

    def _beyond(self, epsilon: float, ends: list[Kept]) -> float:
        if self.sign < 0:
            return 0.0
        p = q = 0.0
        for part, grid, (end, kept) in zip(self.parts, self.grids, ends, strict=True):
            density = np.exp(grid.log_density)
            density[:end] *= -np.expm1(kept)
            q += part.times * math.log1p(-min(0.5, float(density.sum())))
            p += part.times * math.log1p(-min(0.5, float(density @ (1 + grid.excess[0]))))
        return max(0.0, -math.expm1(p) + math.exp(min(700.0, epsilon)) * math.expm1(q))

    def epsilon(self) -> float:
        """ε at which the estimate of log δ is log_delta, or 0: Newton with slope −c, in a bracket."""
        whole = [(len(grid.x), np.zeros(len(grid.x))) for grid in self.grids]
        _, k1, k2 = (float(v[0]) for v in self.cumulants(np.array([1e-9]), whole))
        low, high, before = 0.0, math.inf, math.inf
        epsilon = max(k1, 0.0) + math.sqrt(-k2 * self.log_delta)
        for _ in range(60):
            point = self.saddle(epsilon)
            gap = self._estimate(point) - self.log_delta
            if abs(gap) < 0.5 or high - low < 1e-3 * high:
                return epsilon
            low, high = (epsilon, high) if gap > 0 else (low, epsilon)
            if high < 1e-3 * self.sizes[0] and self.estimate(0.0) < self.log_delta:
                return 0.0
            moved = epsilon + gap / point.c
            if low < moved < high and abs(gap) < 0.7 * before:
                epsilon = moved
            else:
                epsilon = math.sqrt(max(low, 0.01 * high) * high) if high < math.inf else 2 * epsilon
            before = abs(gap)
        return epsilon


@dataclass(frozen=True)
class Saddle:
    """Where the contour crosses the real axis: c, K(c), K″(c), log of the integrand, and the cutoffs."""

    epsilon: float
    c: float
    k: float
    k2: float
    size: float
    ends: list[Kept] = field(repr=False)
    cutoffs: list[Cutoff]
    light: bool


def log_sum(exponents: Floats) -> Floats:
    """log Σ exp along the last axis."""
    top = exponents.max(axis=-1)
    return np.asarray(top + np.log(np.exp(exponents - top[..., None]).sum(axis=-1)))
