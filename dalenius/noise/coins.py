"""Bernoulli variables whose probability is a rational number or the exponential of one.

A coin is [V < p] for a uniform V. Its first 32 bits decide unless they are those of p, which `lazy` settles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb, workprec
from dalenius.noise.bits import Bits
from dalenius.noise.lazy import ball, below
from dalenius.noise.reading import Number, non_negative, probability_of, whole
from dalenius.noise.source import drawn_from

BITS = 32
"""Of V, to begin with."""

Flags = NDArray[np.bool_]


def bernoulli(probability: Number, size: int, *, bits: Bits | None = None) -> Flags:
    """True with the given probability; by the source, or by a stream that is given as `bits`."""
    chance = probability_of(probability, "probability")
    return drawn_from(bits, partial(_thrown, lambda: ball(chance), whole(size, "size")))


def bernoulli_exp(exponent: Number, size: int, *, bits: Bits | None = None) -> Flags:
    """True with probability e^{−exponent}, exponent ≥ 0."""
    minus = -non_negative(exponent, "exponent")
    return drawn_from(bits, partial(_thrown, lambda: ball(minus).exp(), whole(size, "size")))


def _thrown(chance: Callable[[], arb], size: int, source: Bits) -> Flags:
    bits = source.words(size, np.uint32)
    low, high = _bracket(chance)
    heads = bits < low
    for i in np.flatnonzero(~heads & (bits < high)).tolist():
        heads[i] = below(chance, source, int(bits[i]), BITS)
    return heads


def _bracket(chance: Callable[[], arb]) -> tuple[int, int]:
    """Integers around 2³²·chance, at most 2³²: below the first the answer is yes, from the second on no."""
    most = 1 << BITS
    with workprec(128):
        scaled = chance() * most
        middle = int(scaled.mid().floor().unique_fmpz() or 0)
        low = next((n for n in (middle, middle - 1) if scaled >= n), 0)
        high = next((n for n in (middle, middle + 1, middle + 2) if scaled <= n), most)
    return max(low, 0), min(high, most)
