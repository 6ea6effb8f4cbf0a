"""Contours without cutoffs, for compositions in which no release stands out.

A thousand different releases cost a thousand rows of small tables. Besides mixtures and Gaussians
any pair with a closed transform E e^{zL} may take part: its modulus on the line is at most its value at c,
and the others see to the decay. Proved in docs/proofs/contour.md, Sections 2 and 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.contour import Contour, Logs, over_kernel
from dalenius.profiles.enclosure import Interval
from dalenius.profiles.layout import Spacing, spacing
from dalenius.profiles.nodes import Part
from dalenius.profiles.outlook import Outlook, Point
from dalenius.profiles.pair import Floats, Indices, Transformed
from dalenius.profiles.plan import LOG_TAU
from dalenius.profiles.rounding import U
from dalenius.profiles.rows import STRIP, Rows, Table, Tilted

ROWS = 64
"""How many mixtures share a table."""
MOST_NODES, MOST_VALUES = 1 << 13, 1 << 24
"""Contours with more nodes in Im z are left to other routes, or with more values of transforms at them."""
MOST_CELLS = 4096
"""So are tables with more columns."""
EXTENTS = np.array([1.0, 1.08, 1.17, 1.27, 1.4, 1.6, 1.9, 2.4])
"""How far in Im z is tried, over what a normal law would need."""
FARTHER = np.concatenate([EXTENTS, 3.2 * 1.4 ** np.arange(20)])
"""The same where some transforms decay late."""
LOOSE = 9.0
"""By how much the integrand may exceed δ, in logarithms."""
Block = tuple[Tilted, Indices]
"""Mixtures on a common table, and their numbers."""


@dataclass(frozen=True, eq=False)
class PlainReading:
    """A contour that holds all of δ but the infinite losses."""

    contour: Contour
    infinite: Interval

    def read(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        low, high = self.reads(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def reads(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an array."""
        low, high = self.contour.reads(epsilon)
        low, high = (low + self.infinite[0]) * (1 - 4 * U), (high + self.infinite[1]) * (1 + 4 * U)
        fine = low <= high
        return np.where(fine, np.maximum(low, 0.0), 0.0), np.where(fine, np.minimum(high, 1.0), 1.0)


@dataclass(frozen=True, eq=False)
class Plain:
    """A composition to be read without cutoffs: mixtures, Gaussians with μ² = `squared`, and others."""

    parts: tuple[Part, ...]
    sign: int
    squared: float
    others: tuple[tuple[Transformed, int], ...] = ()
    infinite: Interval = (0.0, 0.0)

    @cached_property
    def outlook(self) -> Outlook:
        """The first look at it."""
        return Outlook(Rows.of(self.parts), self.sign, self.squared, self.others)

    @np.errstate(all="ignore")
    def at_delta(self, delta: float) -> tuple[float, PlainReading] | None:
        """An ε near the one that `delta` asks for, and a reading there; None where this is not the route."""
        return self._at(log_delta=math.log(delta))

    @np.errstate(all="ignore")
    def at_epsilon(self, epsilon: float) -> PlainReading | None:
        """A reading at ε."""
        found = self._at(epsilon=epsilon)
        return None if found is None else found[1]

    def _at(
        self, *, log_delta: float | None = None, epsilon: float | None = None
    ) -> tuple[float, PlainReading] | None:
        try:
            point = self.outlook.point(log_delta=log_delta, epsilon=epsilon)
            if point is None or not (point.epsilon >= 0 and point.loose < LOOSE):
                return None
            contour = self._contour(point)
        except (ArithmeticError, ValueError):
            return None
        return None if contour is None else (point.epsilon, PlainReading(contour, self.infinite))

    def _contour(self, point: Point) -> Contour | None:
        target = point.log_delta + LOG_TAU
        chosen = spacing(point.c, point.epsilon, target, lambda c: self.outlook.cumulants(c)[0])
        each = self.outlook.each(np.array([chosen.c]))[2]
        k, _, k2 = (float(v[0]) for v in self.outlook.cumulants(np.array([chosen.c])))
        need = target + chosen.c * point.epsilon
        extents = math.sqrt(2 * max(1.0, k - need) / k2) * (FARTHER if self.others else EXTENTS)
        extents = extents[extents * chosen.wave < 2 * math.pi * self._most_nodes]
        if not len(extents):
            return None
        blocks = self._blocks(chosen, float(extents[min(4, len(extents) - 1)]))
        if blocks is None:
            return None
        far = self._far(blocks, each, chosen.c, extents)
        enough = np.flatnonzero(far < need)
        i = int(enough[0]) if len(enough) else int(np.argmin(far))
        if i > 4:
            blocks = self._blocks(chosen, float(extents[i]))
        if blocks is None or not far[i] < math.inf:
            return None
        count = math.ceil(extents[i] * chosen.wave / (2 * math.pi)) + 2
        return self._laid(blocks, chosen, float(extents[i]) / (count - 1), count, float(far[i]))

    @property
    def _most_nodes(self) -> float:
        return min(MOST_NODES, MOST_VALUES / (1 + len(self.others) + 8 * len(self.parts)))

    def _laid(self, blocks: list[Block], chosen: Spacing, step: float, count: int, far: float) -> Contour:
        logs = [
            Logs.of(*block.ratios(self.sign, step, count), block.table.rows.times, *block.log_moment)
            for block, _ in blocks
        ]
        logs += [_transformed(pair, times, chosen.c, step, count) for pair, times in self.others]
        if not logs:
            logs = [Logs.of(*np.zeros((2, 1, count)), *np.zeros((3, 1)))]
        additions = len(self.parts) + len(self.others) + 1
        laid = over_kernel(Logs.product(logs), additions, c=chosen.c, step=step, squared=self.squared)
        alias = (chosen.steeper, self._log_most(blocks, chosen.steeper))
        return Contour(laid[0], laid[1], chosen.c, step, laid[2], laid[3], far, alias)

    def _far(self, blocks: list[Block], each: Floats, c: float, extents: Floats) -> Floats:
        """At least log of what |Im z| > extent adds, e^{−cε} aside, for each extent."""
        total = self.squared * (c * (c + 1) - extents**2) / 2
        for block, rows in blocks:
            most = 0.6 * STRIP / block.table.rows.shift
            theta = np.minimum(most, extents[min(2, len(extents) - 1)] * np.sqrt(each[rows]))
            total = total + block.table.rows.times @ block.log_decay(extents, theta)
        for pair, times in self.others:
            total = total + times * pair.log_beyond(c, extents)
        return np.asarray(total + 1e-12 * np.abs(total) + 0.01 - np.log(math.pi * extents))

    def _log_most(self, blocks: list[Block], c: float) -> float:
        """At least K(c)."""
        total = self.squared * c * (c + 1) / 2
        s = 1 + c if self.sign > 0 else -c
        for block, _ in blocks:
            total += float(block.table.rows.times @ np.log(Tilted(block.table, s).most)[:, 0])
        for pair, times in self.others:
            value, error = pair.transform(np.array([c + 0j]))
            total += times * math.log(float(value[0].real + error[0]))
        return total + 1e-12 * abs(total) + 1e-9

    def _blocks(self, chosen: Spacing, extent: float) -> list[Block] | None:
        """Rows of like shifts on common tables, fine and long enough up to `extent`."""
        order = np.argsort([max(part.shifts) for part in self.parts], kind="stable")
        found = []
        for rows in np.array_split(order, -(-len(order) // ROWS)) if len(order) else []:
            table = self._table(rows, chosen, extent)
            if table is None:
                return None
            found.append((Tilted(table, 1 + chosen.c if self.sign > 0 else -chosen.c), rows))
        return found

    def _table(self, rows: Indices, chosen: Spacing, extent: float) -> Table | None:
        group = Rows.of([self.parts[i] for i in rows])
        shift, room = float(group.shift.max()), 44 + math.log(float(group.times.max()))
        if self.sign > 0:
            left, bend = math.sqrt(2 * room), 1.0
            right = max(self._reach(rows, 1 + chosen.c, room), (1 + chosen.steeper) * shift + 2)
        else:
            left = math.sqrt(2 * (room - chosen.c * math.log(float(group.still.min()))))
            right, bend = max(left, shift + 1), 1 + chosen.c * shift * shift / 4
        t = min(math.sqrt(90.0 / bend), 0.9 * STRIP / shift)
        step = short(2 * math.pi / (extent * shift + (room - 6) / t + bend * t / 2))
        if not (left + right) / step < MOST_CELLS:
            return None
        return Table(group, step, -math.ceil(left / step), math.ceil(right / step))

    def _reach(self, rows: Indices, s: float, room: float) -> float:
        """Where the tilted mass of all these rows has fallen by e^{−room}."""
        coarse = self.outlook.table
        tilted = coarse.log_density + s * coarse.log[0][rows]
        near = np.flatnonzero((tilted > tilted.max(axis=1, keepdims=True) - room).any(axis=0))
        return float(coarse.x[near[-1]]) + 0.5


def _transformed(pair: Transformed, times: int, c: float, step: float, count: int) -> Logs:
    """A closed transform at the nodes."""
    value, error = pair.transform(np.asarray(c + 1j * step * np.arange(count), dtype=np.complex128))
    mass = float(value[0].real)
    slip = float(error[0]) / mass
    if not slip < 0.005:
        raise ArithmeticError("a transform without digits")
    ratio = (value - mass) / mass
    off = 1.01 * (error / mass + slip * np.abs(value) / mass) + 4 * U * (1 + np.abs(ratio))
    moment = math.log(mass)
    return Logs.one(ratio, off, times, moment, 1.01 * slip + 8 * U * (1 + abs(moment)))


def short(value: float) -> float:
    """The next lower float of four binary digits: its multiples are exact."""
    unit = 2.0 ** (math.floor(math.log2(value)) - 3)
    return math.floor(value / unit) * unit
