"""The shares of δ that need no contour: outcomes settled by one large release, or by none.

Let χ₂ and χ₁ be the upper and the lower cutoff (docs/proofs/contour.md, Section 5). With L = λ under
the mixture (sign +): if some release is cut off by χ₂ the total is above ε but for a Chernoff-small
event, so this share of δ is (1 − ∏(1−p)ᵀ) − e^ε (1 − ∏(1−q)ᵀ) up to that event, p and q being what 1 − χ₂
takes of the mixture and of N(0, 1); if every release is under χ₁ the total is below ε likewise and
the share is nothing. With L = −λ under N(0, 1) (sign −) a release cut off leaves next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.arm import Arm, sum_bound
from dalenius.profiles.contour import log_kappa
from dalenius.profiles.cutoff import Cutoff
from dalenius.profiles.moments import log_lowered, log_moment
from dalenius.profiles.nodes import FUNCTION, Nodes, Part, normal_tail
from dalenius.profiles.pair import Floats
from dalenius.profiles.plan import NEARLY
from dalenius.profiles.rounding import U, exp_bound
from dalenius.profiles.window import Window


@dataclass(frozen=True, eq=False)
class Upper:
    """What the upper cutoffs take of each part.

    `windows` reach from where 1 − χ begins to where the part ends, `ends` are the ends of the
    contour's grids, beyond which nothing is kept, and `exponent` serves the Chernoff bound, if any.
    """

    windows: tuple[Window, ...]
    times: tuple[int, ...]
    ends: tuple[tuple[float, float], ...]
    sign: int
    exponent: float | None
    squared: float = 0.0

    def share(self, epsilon: float) -> tuple[float, float]:
        """Enclose the share of δ of outcomes in which some release is cut off."""
        p_low, p_high = self._mixture if self.sign > 0 else self._plain
        late = self._late(epsilon)
        if self.sign < 0:
            return 0.0, min(p_high, late)
        q_low, q_high = self._plain
        slip = 4 * U * (abs(epsilon) + 700) + 2 * FUNCTION
        most = exp_bound(epsilon + math.log(q_high + 1e-300) + slip)
        least = math.exp(min(0.0, epsilon + math.log(q_low) - slip)) if q_low > 0 else 0.0
        return max(0.0, p_low - most), max(0.0, min(p_high, p_high - least + late))

    @cached_property
    def left(self) -> float:
        """The mass that the grids leave out on the left, which may count or not."""
        return 1.01 * sum(n * normal_tail(-x) for (x, _), n in zip(self.ends, self.times, strict=True))

    @cached_property
    def _mixture(self) -> tuple[float, float]:
        return self._some(1)

    @cached_property
    def _plain(self) -> tuple[float, float]:
        return self._some(0)

    def _some(self, s: int) -> tuple[float, float]:
        """1 − ∏ (1 − removed)^T, enclosed."""
        low = high = 0.0
        for window, (_, right), n in zip(self.windows, self.ends, self.times, strict=True):
            value, error = removed(window, s)
            error += float(window.cutoff.inside(np.array([right]))[0]) * window.nodes.part.tail(right, s)
            low += n * math.log1p(-max(0.0, value - error))
            high += n * math.log1p(-value - error) if value + error < 1 else -math.inf
        return max(0.0, -math.expm1(low) * (1 - 64 * U - self.left)), -math.expm1(high) * (1 + 64 * U)

    def _late(self, epsilon: float) -> float:
        """A release was cut off and yet the total is on the other side of ε.

        For releases below the level that settles the outcome, only the smallness of 1 − χ is used.
        """
        if self.exponent is None:
            return math.inf
        early = exp_bound(epsilon if self.sign > 0 else 0.0) * self._early
        moved = (1 + self.exponent) * epsilon if self.sign > 0 else -self.exponent * epsilon
        return 1.01 * (early + sum(exp_bound(moved + one) for one in self._late_logs))

    @cached_property
    def _early(self) -> float:
        each = zip(self.windows, self.ends, self.times, strict=True)
        return sum(n * below_level(w, right) for w, (_, right), n in each)

    @cached_property
    def _late_logs(self) -> list[float]:
        t = self.exponent or 1.0
        total = log_kappa(t) + self.squared * t * (t + 1) / 2
        for window, (left, _), n in zip(self.windows, self.ends, self.times, strict=True):
            total += n * log_lowered(whole(window.nodes.part, left, float(window.nodes.edges[-1])), t)
        each = zip(self.windows, self.ends, self.times, strict=True)
        return [total + math.log(n) + log_settled(w, t, right) for w, (_, right), n in each]


@dataclass(frozen=True, eq=False)
class Lower:
    """What lies under the lower cutoff altogether, for sign +: next to nothing."""

    window: Window
    times: int
    exponent: float

    def share(self, epsilon: float) -> tuple[float, float]:
        """Enclose the share of δ of outcomes in which every release is under the lower cutoff."""
        value, error = self._moment
        return 0.0, 1.01 * exp_bound(
            log_kappa(self.exponent) + self.times * (value + error) - self.exponent * epsilon
        )

    @cached_property
    def _moment(self) -> tuple[float, float]:
        return log_moment(Arm(self.window, 1 + self.exponent))


def whole(part: Part, left: float, right: float) -> Window:
    """The part on the whole line, as far as its mass matters."""
    step = 2.0 ** math.floor(math.log2(min(2.0**-6, 0.16 / max(part.shifts))))
    nodes = Nodes(part, step, math.floor(left / step), math.ceil(right / step))
    return Window(nodes, Cutoff(float(nodes.edges[-1]) + 64.0, 1.0))


def taken(part: Part, cutoff: Cutoff, tail: float) -> Window:
    """The window on which what a cutoff takes is integrated: from 14 widths below its middle to the tail."""
    step = taken_step(cutoff)
    nodes = Nodes(
        part,
        step,
        math.floor((cutoff.middle - 14 * cutoff.width) / step),
        math.ceil(max(tail, cutoff.middle + 1) / step),
    )
    return Window(nodes, cutoff)


def taken_step(cutoff: Cutoff) -> float:
    """The step of that window; the cutoff must be in the middle of two of its cells."""
    return 2.0 ** math.floor(math.log2(cutoff.width / 2.6))


def removed(window: Window, s: int) -> tuple[float, float]:
    """∫ (1 − χ) φ wˢ over the line for s = 0 or 1, and a bound on its error.

    1 − χ(x) is the probability that m + vG/√2 < x, G standard normal, so the integral is
    Σ pᵢ Φ((s·aᵢ − m)/√(1 + v²/2)).
    """
    part, cutoff = window.nodes.part, window.cutoff
    spread = math.sqrt(1 + cutoff.width**2 / 2)
    places = [(p, (cutoff.middle - s * a) / spread) for p, a in zip(part.weights, part.shifts, strict=True)]
    tails = [(p * 0.5 * math.erfc(x / math.sqrt(2)), x) for p, x in places]
    value = math.fsum(tail for tail, _ in tails)
    return value, sum(tail * (2 * FUNCTION + 32 * U * (1 + x * x)) for tail, x in tails) + 1e-300


def _level(window: Window) -> int:
    """A cell edge beyond the level which settles the outcome, where 1 − χ is still small."""
    return int(
        np.searchsorted(window.nodes.edges, window.cutoff.middle - (NEARLY - 0.7) * window.cutoff.width)
    )


def _taken_edges(window: Window, right: float) -> Floats:
    """log(1 − χ) at the edges, and 0 beyond the end of the contour's grid, where nothing is kept."""
    return np.where(window.nodes.edges > right, 0.0, window.log_outside_edges)


def below_level(window: Window, right: float) -> float:
    """At least ∫ (1 − χ) φ left of the level."""
    at = _level(window)
    cells = window.log_height[:at] + _taken_edges(window, right)[1 : at + 1]
    return 1.01 * (sum_bound(cells) + math.exp(float(window.log_outside_edges[0])))


def log_settled(window: Window, t: float, right: float) -> float:
    """At least log ∫ (1 − χ) φ w^{−t} right of the level."""
    at = _level(window)
    log = window.line(0.0)[0][at:]
    exponent = window.log_height[at:] - t * log[:-1] + t * 16 * U * (1 + np.abs(log[:-1]))
    exponent = exponent + _taken_edges(window, right)[at + 1 :]
    value = np.exp(exponent - exponent.max()).sum()
    tail = math.log(normal_tail(float(window.nodes.edges[-1]))) - t * float(log[0])
    return max(float(exponent.max()) + math.log(1.001 * float(value)), tail) + math.log(2)
