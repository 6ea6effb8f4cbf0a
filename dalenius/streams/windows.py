"""`WindowSum`: sums of the last `window` steps, for any number of steps on one charge.

The window (t − w, t] is a union of at most two dyadic blocks of each length up to w, as in a segment tree.
Each block of length 2^h ≤ w, complete, has its sum released once with noise of `scale`.

Theorem. A step lies in L = ⌊log₂w⌋ + 1 blocks, however long the stream is. For one unit that takes part in
one step by Δ = `largest`, Gaussian noise: dominated by N(μ, 1), μ = √L·Δ/scale; Laplace noise: ε = L·Δ/scale.
For `most` steps both are times `most`, by the triangle inequality. Windows are functions of released sums.

Error. That of at most 2L blocks, with no account of how long the stream runs; the first windows are shorter.
Memory: the steps of a window, and the noise of its blocks. They are secret.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.bound import Bound
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.losses.streams.binary_tree import BinaryTree
from dalenius.losses.streams.correlated import gaussian
from dalenius.mechanisms.mechanism import Floats
from dalenius.noise.buffered import block_steps
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.streams.continual import Continual, fitted
from dalenius.streams.tallies import Ints, Recent, Tally
from dalenius.streams.tree_noise import Law, Nodes
from dalenius.streams.trees import wide

MOST_WINDOW = 10**6


@dataclass(frozen=True)
class WindowSum(Continual, kind="window_sum"):
    """Sums of the last `window` steps, by noise of `scale` on dyadic blocks."""

    _: KW_ONLY
    window: Parameter[int] = Parameter(whole)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    law: Law = "gaussian"
    largest: Parameter[int] = Parameter(whole, 1)
    categories: int | None = None
    separation: Parameter[int] = Parameter(whole, 1)
    most: int | None = None
    horizon = None

    def __post_init__(self) -> None:
        numbers.count(self.window, "window", most=MOST_WINDOW)
        if self.law not in ("gaussian", "laplace"):
            raise InvalidArgument("law must be gaussian or laplace.", remedy="Pass one of these names.")
        self._check()

    @property
    def levels(self) -> int:
        """⌊log₂w⌋ + 1."""
        return self.window.bit_length()

    @cached_property
    def loss(self) -> Loss:
        """Of all outputs together."""
        times = self.most or 1
        if self.law == "gaussian":
            once = BinaryTree(self.window).sensitivity()
            known = once if times == 1 else Bound(once.lower, times * once.upper, False)
            return gaussian(self.scale / self.largest, known, "add_remove")
        if times == 1:
            return DiscreteLaplace(self.scale, sensitivity=self.largest) * self.levels
        return Pure(Fraction(times * self.levels * self.largest) / self.scale)

    def blocks(self, key: StreamKey, width: int) -> WindowBlocks:
        """Noise of the blocks of each window."""
        nodes = Nodes(self.law, lambda _: self.scale, self.levels, "plain")
        return WindowBlocks(nodes, key, width, self.window)

    def tally(self, width: int) -> Tally:
        """The steps of a window."""
        return Recent(width, self.window)

    def reach(self, steps: Ints, alpha: Fraction) -> Floats:
        """By the number of blocks of each window."""
        lengths = counts(steps, self.window, self.levels)
        found = {many: self._reach(many, alpha) for many in set(lengths.tolist())}
        return np.array([found[many] for many in lengths.tolist()])

    def _reach(self, many: int, alpha: Fraction) -> float:
        if self.law == "gaussian":
            return wide(alpha, self.law) * float(self.scale) * math.sqrt(many) + many / 2
        return wide(alpha, self.law) * float(self.scale) * math.sqrt(2 * many) + 1

    @staticmethod
    def calibrate(
        *,
        window: int,
        epsilon: Number,
        delta: Number = 0,
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> WindowSum:
        """The least noise that keeps the promise: Laplace at delta 0, Gaussian otherwise."""
        law: Law = "gaussian" if numbers.delta(delta) else "laplace"
        limit, levels = numbers.epsilon(epsilon), BinaryTree(window).levels

        def make(scale: Fraction) -> WindowSum:
            return WindowSum(
                window=window,
                scale=scale,
                law=law,
                largest=largest,
                categories=categories,
                separation=separation,
                most=most,
            )

        if law == "laplace":
            return make((most or 1) * levels * largest / limit)
        multiplier = Gaussian.calibrate(epsilon=limit, delta=delta).noise_multiplier * (most or 1)
        return fitted(make, multiplier, BinaryTree(window).sensitivity().upper, largest)


class WindowBlocks:
    """The noise of windows, with that of all nodes that a window may still need."""

    def __init__(self, nodes: Nodes, key: StreamKey, width: int, window: int) -> None:
        self.nodes, self.key, self.width, self.window = nodes, key, width, window
        longest = 1 << (window.bit_length() - 1)
        self.steps = max(block_steps(width), longest)
        self._past = -(-window // self.steps)
        self._held = list[list[Ints]]()
        self.blocks = 0

    def next(self) -> Ints:
        """The noise of the next block's windows."""
        held = [*self._held[-self._past :], self._tables()]
        first = self.blocks + 1 - len(held)
        tables = [np.concatenate(level) for level in zip(*held, strict=True)]
        ends = np.arange(self.blocks * self.steps + 1, (self.blocks + 1) * self.steps + 1)
        total = np.zeros((self.steps, self.width), np.int64)
        for h, which, node in covered(ends, self.window, len(tables)):
            total[which] += tables[h][node - (first * self.steps >> h)]
        self._held, self.blocks = held, self.blocks + 1
        return total

    def _tables(self) -> list[Ints]:
        found = []
        for h in range(self.nodes.levels or 0):
            many = self.steps >> h
            own = self.nodes.drawn(self.key, h, self.blocks, many * self.width)
            found.append(own.reshape(many, self.width))
        return found


def covered(ends: Ints, window: int, levels: int) -> list[tuple[int, Ints, Ints]]:
    """Level by level: which windows have a node there, and which; disjoint, and together the window."""
    left, right, found = np.maximum(ends - window, 0), ends.copy(), []
    for h in range(levels):
        last = h == levels - 1
        # On the highest level whatever is left is at most two nodes wide.
        for _ in range(3 if last else 1):
            which = np.flatnonzero((left < right) & ((left & 1 == 1) | last))
            found.append((h, which, left[which]))
            left[which] += 1
        which = np.flatnonzero((left < right) & (right & 1 == 1))
        right[which] -= 1
        found.append((h, which, right[which]))
        left, right = left >> 1, right >> 1
    return found


def counts(ends: Ints, window: int, levels: int) -> Ints:
    """How many nodes each window has."""
    total = np.zeros(len(ends), np.int64)
    for _, which, _ in covered(ends, window, levels):
        total[which] += 1
    return total
