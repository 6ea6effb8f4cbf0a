"""A part seen through a smooth cutoff: tables shared by all tilts, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dalenius.profiles.cutoff import Cutoff
from dalenius.profiles.nodes import FUNCTION, LOG_ROOT_TWO_PI, Nodes
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import U


@dataclass(frozen=True, eq=False)
class Window:
    """`nodes` under `cutoff`, whose middle lies on a cell edge."""

    nodes: Nodes
    cutoff: Cutoff
    _lines: dict[float, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @cached_property
    def log_inside(self) -> Floats:
        """log χ at the nodes."""
        return self.cutoff.log_inside(self.nodes.x)

    @cached_property
    def log_outside(self) -> Floats:
        """log(1 − χ) at the nodes."""
        return self.cutoff.log_outside(self.nodes.x)

    @cached_property
    def log_inside_edges(self) -> Floats:
        """log χ at the edges."""
        return self.cutoff.log_inside(self.nodes.edges)

    @cached_property
    def log_outside_edges(self) -> Floats:
        """log(1 − χ) at the edges."""
        return self.cutoff.log_outside(self.nodes.edges)

    def log_kept(self, end: int) -> float:
        """log κ with |χ(x+iτ)| ≤ κ e^{(τ/v)²} at an edge: χ beyond the middle, 1 + (1 − χ) before it."""
        if self.nodes.edges[end] >= self.cutoff.middle:
            return float(self.log_inside_edges[end])
        return math.log1p(math.exp(float(self.log_outside_edges[end])))

    @cached_property
    def _beyond_middle(self) -> NDBool:
        return self.nodes.edges[:-1] >= self.cutoff.middle

    def log_most_inside(self, t: float) -> Floats:
        """At least log|χ(x+it)| for all x of each cell."""
        grown = (t / self.cutoff.width) ** 2
        beyond, before = grown + self.log_inside_edges[:-1], grown + self.log_outside_edges[1:]
        return np.where(self._beyond_middle, beyond, np.logaddexp(0.0, before))

    @cached_property
    def log_height(self) -> Floats:
        """log of h times the most that φ is on each cell."""
        edges = self.nodes.edges
        nearest = np.where(
            (edges[:-1] < 0) & (edges[1:] > 0), 0.0, np.minimum(np.abs(edges[:-1]), np.abs(edges[1:]))
        )
        return -nearest * nearest / 2 + (math.log(self.nodes.step) - LOG_ROOT_TWO_PI)

    def line(self, t: float) -> tuple[Floats, Floats]:
        """log|w| and arg w at the edges + it."""
        if t not in self._lines:
            self._lines[t] = self.nodes.polar(t, self.nodes.edges)
        return self._lines[t]

    @property
    def width(self) -> float:
        """v, by which bounds off the real axis grow."""
        return self.cutoff.width

    @property
    def blur(self) -> float | Floats:
        """The relative error of χ at the nodes from cancellation."""
        return 0.0

    @cached_property
    def height(self) -> float:
        """The height of the strip used for the midpoint rule."""
        return min(math.pi / 2 / max(self.nodes.part.shifts), 4.0, 4 * self.width)


@dataclass(frozen=True, eq=False)
class Gap(Window):
    """What lies between two cutoffs: χ₂ − χ₁ in place of χ, with χ₁ = `lower` ≤ χ₂ = `cutoff`.

    Off the real axis |χ₂ − χ₁| is at most the sum of the two, and of their complements.
    """

    lower: Cutoff = field(kw_only=True)

    @property
    def width(self) -> float:
        """The lesser width."""
        return min(self.cutoff.width, self.lower.width)

    @cached_property
    def log_inside(self) -> Floats:
        """log(χ₂ − χ₁) at the nodes."""
        return self._log_between(self.nodes.x)

    @cached_property
    def log_inside_edges(self) -> Floats:
        """log(χ₂ − χ₁) at the edges."""
        return self._log_between(self.nodes.edges)

    @cached_property
    def blur(self) -> Floats:
        """Where χ₁ comes close to χ₂."""
        more, less = self._sides(self.nodes.x)
        return np.asarray(
            (4 * FUNCTION + 24 * U * np.abs(less))
            * np.exp(np.minimum(less - more, 0.0))
            / -np.expm1(np.minimum(less - more, -1e-300))
        )

    def _log_between(self, x: Floats) -> Floats:
        """log(χ₂ − χ₁)."""
        more, less = self._sides(x)
        return np.asarray(more + np.log(-np.expm1(np.minimum(less - more, -1e-300))))

    def _sides(self, x: Floats) -> tuple[Floats, Floats]:
        """Logarithms of what is subtracted: complements below the middle of χ₁, cutoffs above it."""
        below = x < self.lower.middle
        more = np.where(below, self.lower.log_outside(x), self.cutoff.log_inside(x))
        less = np.where(below, self.cutoff.log_outside(x), self.lower.log_inside(x))
        return more, less

    @cached_property
    def _edge_logs(self) -> tuple[Floats, Floats, Floats, Floats]:
        """log(1 − χ₁), log(1 − χ₂), log χ₁ and log χ₂ at the edges."""
        edges, cutoffs = self.nodes.edges, (self.lower, self.cutoff)
        below, above = ([getattr(k, side)(edges) for k in cutoffs] for side in ("log_outside", "log_inside"))
        return below[0], below[1], above[0], above[1]

    def log_kept(self, end: int) -> float:
        """log κ with |χ₂ − χ₁|(x+iτ) ≤ κ e^{(τ/v)²} at an edge."""
        out_1, out_2, in_1, in_2 = (logs[end] for logs in self._edge_logs)
        return float(min(np.logaddexp(out_1, out_2), np.logaddexp(in_1, in_2)))

    def log_most_inside(self, t: float) -> Floats:
        """At least log|χ₂ − χ₁|(x+it) for all x of each cell: complements grow with x, cutoffs fall."""
        low, high = (t / self.lower.width) ** 2, (t / self.cutoff.width) ** 2
        out_1, out_2, in_1, in_2 = self._edge_logs
        below = np.logaddexp(low + out_1[1:], high + out_2[1:])
        above = np.logaddexp(low + in_1[:-1], high + in_2[:-1])
        middle = np.logaddexp(np.logaddexp(0.0, high + out_2[1:]), low + in_1[:-1])
        return np.minimum(np.minimum(below, above), middle)


NDBool = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
