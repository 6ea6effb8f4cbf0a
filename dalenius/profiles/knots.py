"""The hockey-stick divergence of a finite law, by its knots.

Let l₁ < … < lₙ be the losses and pᵢ their masses under P. With
    Wₙ = pₙ,        W_k = p_k + e^{l_k − l_{k+1}} W_{k+1}            (= e^{l_k} Q(L ≥ l_k)),
    Hₙ = P(L = ∞),  H_k = H_{k+1} + (1 − e^{l_k − l_{k+1}}) W_{k+1}   (= H(l_k)),
H(ε) = H_k + (1 − e^{ε − l_k}) W_k for l_{k−1} ≤ ε ≤ l_k. Every term is non-negative, so nothing
cancels and the result keeps its relative accuracy in the tail.

Rounding. A term of H_k passes through at most n − k steps, each with one exponential (2·ULPS), its
argument (relative error U of d, so e^{−d} moves by dU; the d of all steps sum to the range R, and an
exponential of less than −746 is 0), one product and one sum: 2·ULPS·n + 3n + min(R, 746n) units of
U in all, and `spread` turns that into an enclosure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.profiles.enclosure import ELEMENTARY, below, spread
from dalenius.profiles.pair import Floats


@dataclass(frozen=True, eq=False)
class Knots:
    """H at the losses, and the weight of what lies above each: H is a line in e^ε between them."""

    losses: Floats
    height: Floats
    weight: Floats
    units: float

    @staticmethod
    def through(losses: Floats, masses: Floats, infinite: float) -> Knots:
        """The recursion of the module, from the top loss down."""
        order = np.argsort(losses, kind="stable")
        losses, masses = losses[order], masses[order]
        weights, heights = [0.0], [infinite]
        down = np.append([0.0], -np.diff(losses)[::-1])[: len(losses)]
        columns = (np.exp(down).tolist(), (-np.expm1(down)).tolist(), masses[::-1].tolist())
        for shrink, rise, mass in zip(*columns, strict=True):
            heights.append(heights[-1] + rise * weights[-1])
            weights.append(mass + shrink * weights[-1])
        span = float(losses[-1] - losses[0]) if len(losses) else 0.0
        units = (ELEMENTARY + 3) * len(losses) + min(span, 746.0 * len(losses))
        above = np.append(losses, math.inf)
        return Knots(above, np.array([*heights[:0:-1], infinite]), np.array([*weights[:0:-1], 0.0]), units)

    def at(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose H(ε) of these very floats."""
        k = np.searchsorted(self.losses[:-1], epsilon)
        rise = below(epsilon - self.losses[k])
        lo, hi = (self.height[k] + end * self.weight[k] for end in rise)
        return spread(lo, self.units + 2)[0], spread(hi, self.units + 2)[1]
