"""The least ρ with D_α ≤ ρα for all α > 1, enclosed.

A kind may know it; in a composition the ρ of all parts add up. Else it is searched for. With t = α − 1,
D_α/α = K(t)/(t(1+t)), and K is convex with K(0) = 0: on a cell [a, b] it lies below its chord c₀ + c₁t,
c₀ ≤ 0, and (c₀ + c₁t)/(t(1+t)) is largest at t = (−c₀ + √(c₀² − c₀c₁))/c₁, or at the end of the cell
nearest to it. The cell with the largest such bound is halved until the bound is close to the largest
value seen. Beyond the last order A, a part adds at most its own ρ, if it knows one, or its largest loss
over A.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dalenius.arithmetic import workprec
from dalenius.losses import divergence
from dalenius.losses.composition import Composition
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Concentrated
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.enclosure import Interval
from dalenius.profiles.rounding import U, ceiling, floor

HALVINGS = 400
"""How often a cell is halved, at most."""
CLOSE = 1e-4
"""The relative width at which the search stops."""


def enclose(loss: Loss) -> Interval:
    """Enclose the least ρ."""
    terms = loss.terms if isinstance(loss, Composition) else ((loss, 1),)
    known = [(part.concentration(), n) for part, n in terms if isinstance(part, Concentrated)]
    sums = [(pair[0] * n, pair[1] * n) for pair, n in known if pair is not None]
    if len(sums) < len(terms):
        return _search(loss, terms)
    least = max(floor(sum((low for _, low in sums), Fraction(0))), _seen(loss))
    return (least, ceiling(sum((high for high, _ in sums), Fraction(0))))


def _seen(loss: Loss) -> float:
    """The largest D_α/α at a few orders, from below."""
    orders = (Fraction(1) + Fraction(2) ** k for k in range(-6, 7, 2))
    return max(divergence.lower(loss, alpha) / float(alpha) * (1 - 4 * U) for alpha in orders)


def _search(loss: Loss, terms: tuple[tuple[Loss, int], ...]) -> Interval:
    best = max(_seen(loss), divergence.lower(loss, Fraction(1)) * (1 - 4 * U))
    last, rest = _far(terms, best)
    if math.isinf(rest):
        return (best, math.inf)
    cells = _first_cells(loss, last)
    for _ in range(HALVINGS):
        cell = cells[0]
        if cell.bound <= max(best, rest) * (1 + CLOSE):
            break
        middle = (cell.a + cell.b) / 2
        height = _log_moment(loss, middle)
        best = max(best, divergence.lower(loss, 1 + Fraction(middle)) / (1 + middle) * (1 - 4 * U))
        heapq.heapreplace(cells, Cell.over(cell.a, cell.at_a, middle, height))
        heapq.heappush(cells, Cell.over(middle, height, cell.b, cell.at_b))
    return (best, max(cells[0].bound, rest))


@dataclass(frozen=True, order=True)
class Cell:
    """Orders from a to b, K at both from above, and the bound on K(t)/(t(1+t)) between."""

    negated: float
    a: float
    at_a: float
    b: float
    at_b: float

    @property
    def bound(self) -> float:
        """What no K(t)/(t(1+t)) in the cell exceeds."""
        return -self.negated

    @staticmethod
    def over(a: float, at_a: float, b: float, at_b: float) -> Cell:
        """The largest value below the chord, or below the line from the origin where that is lower at 0."""
        with workprec(BITS):
            slope = (ball(at_b) - ball(at_a)) / (ball(b) - ball(a))
            start = ball(at_a) - slope * ball(a)
            if a == 0.0 or not start < 0:
                return Cell(-upper(ball(at_b) / ball(b) / (1 + ball(a))), a, at_a, b, at_b)
            peak = float((-start + (start**2 - start * slope).sqrt()) / slope)
            # The peak lies between these two ends, and the numerator grows while the denominator does.
            low, high = (min(max(peak * side, a), b) for side in (1 - 1e-9, 1 + 1e-9))
            bound = upper((start + slope * ball(high)) / (ball(low) * (1 + ball(low))))
        return Cell(-bound, a, at_a, b, at_b)


def _first_cells(loss: Loss, last: float) -> list[Cell]:
    """Cells that double in length, up to the last order, as a heap."""
    edges = [0.0, *(last / 2**k for k in range(11, -1, -1))]
    heights = [0.0, *(_log_moment(loss, t) for t in edges[1:])]
    ends = list(zip(edges, heights, strict=True))
    cells = [Cell.over(*left, *right) for left, right in pairwise(ends)]
    heapq.heapify(cells)
    return cells


def _log_moment(loss: Loss, t: float) -> float:
    return t * divergence.upper(loss, 1 + Fraction(t)) * (1 + 4 * U)


def _far(terms: tuple[tuple[Loss, int], ...], best: float) -> tuple[float, float]:
    """An order A − 1, and a bound on D_α/α from A on."""
    own, bounded = 0.0, 0.0
    for loss, n in terms:
        rho = loss.concentration() if isinstance(loss, Concentrated) else None
        own += n * ceiling(rho[0]) if rho is not None else 0.0
        bounded += n * _top(loss) if rho is None else 0.0
    if math.isinf(bounded) or not best > 0:
        return (1.0, math.inf if bounded else own)
    last = 2.0 ** math.ceil(math.log2(1 + 2 * bounded / max(best - own, best * CLOSE)))
    return (last, (own + bounded / last) * (1 + 16 * U * (len(terms) + 1)))


def _top(loss: Loss) -> float:
    """The largest loss of a part; infinite where some outcome is."""
    directions = loss.directions()
    if directions is None:
        return math.inf
    tops = [[(pair.infinite_mass[1], pair.support[1], n) for pair, n in worst] for worst in directions]
    sums = [sum(math.inf if leak > 0 else n * top for leak, top, n in row) for row in tops]
    return max(*sums, 0.0)
