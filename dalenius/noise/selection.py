"""Choosing one of many candidates by their utilities, which are private.

Utilities are integers, on whatever grid, and clipped to ±2⁶¹, which brings no two farther apart; the rate, or
the scale, is rational and per step. With d how far a candidate is below the best:

- `exponential_mechanism`: P(i) ∝ e^{−rate·d_i}. With integers n_i ≥ 2^q·e^{−rate·d_i}, candidate i is
  proposed with probability n_i/Σn and accepted with probability 2^q·e^{−rate·d_i}/n_i, both exactly.
- `permute_and_flip`: candidates in random order flip coins of e^{−rate·d_i} until the first success (McKenna
  and Sheldon 2020). As coins do not depend on the order, that is a uniform choice among all whose coins
  succeed; the best one's always does.
- `noisy_max`: the greatest of u_i + Z_i, Z_i independent discrete Laplace, ties broken uniformly.

Neither errors nor shapes depend on utilities. How long it takes may, a little: duration is not protected.

    >>> from dalenius import noise
    >>> noise.exponential_mechanism([0, 0, 500], rate=1)
    array([2])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.arithmetic import arb
from dalenius.noise import source as sources
from dalenius.noise.candidates import CLIP, Weights, integers
from dalenius.noise.draws import discrete_laplace
from dalenius.noise.integers import int64_below
from dalenius.noise.law import Floats, Ints
from dalenius.noise.lazy import below
from dalenius.noise.reading import Number, non_negative, whole
from dalenius.noise.source import Source

ROOM = 2**63 - 1 - CLIP
"""Noise saturates there, beside a utility, with probability below e^−6143 at the largest scale."""
GRAIN = 2.0**-32
"""A uniform V is first known to so much."""


def exponential_mechanism(utilities: ArrayLike, rate: Number, size: int = 1) -> Ints:
    """Independent choices as indices, P(i) ∝ e^{rate·u_i}."""
    weights = Weights.of(utilities, non_negative(rate, "rate"))
    return sources.drawn(partial(_proposed, weights, whole(size, "size")))


def _proposed(weights: Weights, size: int, source: Source) -> Ints:
    chosen = np.empty(size, np.int64)
    unit = 2 ** (61 - weights.value.size.bit_length())
    slots = ((weights.value + weights.off) * unit).astype(np.int64) + 1
    ends = np.cumsum(slots)
    todo = np.arange(chosen.size)
    while todo.size:
        index = np.searchsorted(ends, int64_below(int(ends[-1]), todo.size, source), side="right")
        accepted = _propose(weights, index, unit, slots[index], source)
        chosen[todo] = index
        todo = todo[~accepted]
    return chosen


def permute_and_flip(utilities: ArrayLike, rate: Number, size: int = 1) -> Ints:
    """Independent choices as indices, by the first success in random order of coins e^{−rate·d}."""
    weights = Weights.of(utilities, non_negative(rate, "rate"))
    low, high = weights.value - weights.off, weights.value + weights.off
    count = whole(size, "size")

    def flipped(source: Source) -> Ints:
        flips = (_coins(low, high, weights.exact, source) for _ in range(count))
        return np.array([_any(heads, source) for heads in flips], np.int64)

    return sources.drawn(flipped)


def noisy_max(utilities: ArrayLike, scale: Number, size: int = 1) -> Ints:
    """Independent choices as indices: the greatest utility after discrete Laplace noise of this scale."""
    exact, count = integers(utilities), whole(size, "size")
    discrete_laplace(scale, 0)

    def greatest(source: Source) -> Ints:
        chosen = np.empty(count, np.int64)
        for i in range(count):
            noisy = exact + np.clip(discrete_laplace(scale, exact.size), -ROOM, ROOM)
            chosen[i] = _any(noisy == noisy.max(), source)
        return chosen

    return sources.drawn(greatest)


def _propose(weights: Weights, index: Ints, unit: int, slots: Ints, source: Source) -> NDArray[np.bool_]:
    """Which proposals pass, each with probability unit·weight/slots."""
    share = unit / slots
    value, off = weights.value[index], weights.off[index]

    def exact(i: int) -> arb:
        return weights.exact(int(index[i])) * unit / int(slots[i])

    return _coins((value - off) * share, (value + off) * share, exact, source)


def _coins(low: Floats, high: Floats, exact: Callable[[int], arb], source: Source) -> NDArray[np.bool_]:
    """Independent coins of probabilities between `low` and `high`, known exactly on demand."""
    bits = source.words(low.size, np.uint32)
    least = bits * GRAIN
    heads = least + GRAIN <= low
    for i in np.flatnonzero(~heads & (least < high)).tolist():
        heads[i] = below(partial(exact, i), source, int(bits[i]), 32)
    return heads


def _any(flags: NDArray[np.bool_], source: Source) -> int:
    """One of those that are set, each with the same probability."""
    able = np.flatnonzero(flags)
    return int(able[int64_below(able.size, 1, source)[0]])
