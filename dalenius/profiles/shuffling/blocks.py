"""E[C_N(κx)/N] over a crowd, x = aN + b + ρc, by few nodes below and above it.

C_N(t) grows with N, and is convex and decreasing in t (see `rows`). Let N lie in a block from N₁
to N₂, and c, given N, be binomial of n − N trials. From above, C_N becomes C_{N₂}; N goes to the
block's ends, keeping its mean; c becomes binomial of n − N₂ trials, which is stochastically less, and goes to
the ends of its cell of a coarse lattice, keeping its mean. From below, C_N becomes that of the last N before
the block; N becomes its mean over the block; c becomes binomial of that many trials more, and its mean over
each cell. Blocks of one N each give C_N itself. docs/proofs/shuffling.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.profiles.pair import Floats, Indices
from dalenius.profiles.rounding import TINY, U
from dalenius.profiles.shuffling.rows import REACH, Walks, reach, weights

NEAR = 128 * U
"""Relative error of κx, at most."""
CELLS, SHARE = 16, 40
"""Cells of the lattice for c, at least; more where all rows together have fewer than entries/SHARE."""
LEAST = 4
"""Blocks, at least."""
LOST = 1e-290
"""More than all that underflow may lose."""


@dataclass(frozen=True)
class Crowd:
    """n reports: a pair of kinds with the odds `pairs`; of all others a third kind with the odds `thirds`.

    x = `slope`·N + `base` + `weight`·c. Where `thirds` is 0 there is no c. The floats are within 2U.
    """

    reporters: int
    pairs: float
    thirds: float
    slope: float
    base: float
    weight: float


@dataclass(frozen=True, eq=False)
class Nodes:
    """Places x and their weights, each for one row of the walks."""

    row: Indices
    x: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class Blocks:
    """Nodes below and above; `missing` is the chance left out; `units` bounds roundings in weights."""

    walks: Walks
    below: Nodes
    above: Nodes
    missing: float
    units: float

    def mean(self, slope: Floats, *, below: bool) -> tuple[Floats, Floats]:
        """Enclose the sum over the nodes below, or above, for each κ, itself within 32U.

        What is left out counts once above, as C_N ≤ N.
        """
        nodes = self.below if below else self.above
        slack = 2 * U * (self.units + self.walks.units + len(nodes.x) + 64) + self.missing
        low, high = (self._sum(nodes, slope * (1 + side * NEAR)) for side in (1, -1))
        spill = 0.0 if below else float(np.sum(self.walks.spill[nodes.row] * nodes.weight)) + self.missing
        return low * (1 - slack), (high + spill) * (1 + slack)

    def _sum(self, nodes: Nodes, slope: Floats) -> Floats:
        value = self.walks.above(nodes.row, np.multiply.outer(slope, nodes.x))
        return np.asarray(np.sum(value * nodes.weight, axis=-1))


def blocks(crowd: Crowd, entries: int) -> Blocks:
    """As many blocks as make about `entries` numbers in the tables."""
    law = weights(np.array([crowd.reporters - 1.0]), crowd.pairs)
    counts = law.first[0] + 1 + np.arange(law.shares.shape[1])
    there = law.shares[0] > 0
    counts, shares = counts[there], law.shares[0][there] / counts[there]
    last = _lasts(crowd, counts, shares, entries)
    first = np.append(0, last[:-1] + 1)
    start, stop = counts[first], counts[last]
    mass = np.maximum(np.add.reduceat(shares, first), TINY)
    over = np.add.reduceat(shares * (counts - np.repeat(start, last - first + 1)), first) / mass
    thirds = _thirds(crowd, stop, entries) if crowd.thirds else None
    units = 2 * law.units + (2 * thirds.units if thirds else 0.0)
    share = over / np.maximum(stop - start, 1.0) * (1 - 4 * U * units)
    rows, kept = np.arange(len(last)), np.arange(0 if len(last) == len(counts) else 1, len(last))
    above = [_ends(crowd, rows, part, thirds) for part in ((start, mass * (1 - share)), (stop, mass * share))]
    middle = start + over * (1 + 4 * U * units)
    below = _means(crowd, rows[: len(kept)], (middle[kept], mass[kept]), thirds)
    missing = float(law.left[0] + law.right[0]) * (1 + 2 * U * units) + LOST
    return Blocks(Walks.of(stop), below, _join(above), missing, units)


def _lasts(crowd: Crowd, counts: Floats, shares: Floats, entries: int) -> Indices:
    """Where blocks end: closer together about the middle of the window."""
    size = len(counts)
    row = REACH / 2 * math.sqrt(counts[-1])
    if crowd.thirds:
        row = (row + reach(crowd.reporters * crowd.thirds / (1 + crowd.thirds) ** 2)) / 3
    count = max(LEAST, int(entries / row))
    if 2 * count >= size:
        return np.arange(size)
    u = np.linspace(-1, 1, count + 1)[1:]
    places = 0.3 * u + 0.7 * u**3
    top = int(np.argmax(shares))
    scaled = np.where(places < 0, top * (1 + places), top + (size - 1 - top) * places)
    return np.unique(np.append(np.rint(scaled), size - 1).astype(np.intp))


@dataclass(frozen=True, eq=False)
class Thirds:
    """The laws of c on cells, one a row.

    Edges, masses, means past the left edge, how far these may be off, and what is left out.
    """

    edge: Floats
    mass: Floats
    over: Floats
    slack: float
    left: Floats
    right: Floats
    units: float


def _thirds(crowd: Crowd, taken: Floats, entries: int) -> Thirds:
    law = weights(crowd.reporters - taken, crowd.thirds)
    size = law.shares.shape[1]
    width = -(-size // max(CELLS, entries // SHARE // len(taken)))
    edges = np.arange(0, size, width)
    mass = np.add.reduceat(law.shares, edges, axis=1)
    over = np.add.reduceat(law.shares * (np.arange(size) % width), edges, axis=1) / np.maximum(mass, TINY)
    # A window may begin below 0, where nothing is: cells begin at 0 then.
    start = law.first[:, None] + edges
    edge = np.maximum(np.hstack([start, start[:, -1:] + width]), 0.0)
    slack = 4 * U * law.units * width
    return Thirds(edge, mass, start + over - edge[:, :-1], slack, law.left, law.right, law.units)


Part = tuple[Floats, Floats]
"""Counts N with their weights, one for each row."""


def _ends(crowd: Crowd, rows: Indices, part: Part, thirds: Thirds | None) -> Nodes:
    """c to the ends of its cell; what is left of its window to 0, what is right of it to the last start."""
    x = crowd.slope * part[0] + crowd.base
    if thirds is None:
        return _spread(rows, x[:, None], part[1][:, None])
    far = np.maximum(thirds.over - thirds.slack, 0.0) / np.maximum(np.diff(thirds.edge, axis=1), 1.0)
    none = np.zeros((len(rows), 1))
    chances = np.hstack([thirds.left[:, None], thirds.mass * (1 - far), none])
    chances[:, 2:] += thirds.mass * far
    chances[:, -2] += thirds.right
    places = np.hstack([none, thirds.edge])
    return _spread(rows, x[:, None] + crowd.weight * places, part[1][:, None] * chances)


def _means(crowd: Crowd, rows: Indices, part: Part, thirds: Thirds | None) -> Nodes:
    """c to the mean of its cell."""
    x = crowd.slope * part[0] + crowd.base
    if thirds is None:
        return Nodes(rows, x, part[1])
    places = thirds.edge[:, :-1] + np.maximum(thirds.over, 0.0) + thirds.slack
    chances = thirds.mass * (1 - thirds.left - thirds.right)[:, None]
    return _spread(rows, x[:, None] + crowd.weight * places[rows], part[1][:, None] * chances[rows])


def _spread(rows: Indices, x: Floats, weight: Floats) -> Nodes:
    row, kept = np.repeat(rows, x.shape[1]), weight.ravel() > 0
    return Nodes(row[kept], x.ravel()[kept], weight.ravel()[kept])


def _join(parts: list[Nodes]) -> Nodes:
    rows, places, chances = ([getattr(p, name) for p in parts] for name in ("row", "x", "weight"))
    return Nodes(np.concatenate(rows), np.concatenate(places), np.concatenate(chances))
