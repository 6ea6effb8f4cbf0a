"""Slow samplers that share nothing with the fast ones: neither their bits, nor floats, nor balls.

Discrete Laplace and discrete Gaussian after Canonne, Kamath and Steinke (2020), Algorithms 1 to 3. Rounded
Gaussian after Karney (2016), Algorithm N, whose normal deviate is revealed bit by bit until the integer it
rounds to is known. Only integers and fractions are compared, and bits come straight from the operating
system. They exist so that a flaw in one place cannot bias all noise unnoticed: the tests compare both.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from dalenius.noise.law import Ints
from dalenius.noise.reading import MOST_SCALE, Number, positive, whole

HALF = Fraction(1, 2)


def discrete_laplace(scale: Number, size: int) -> Ints:
    """P(k) ∝ e^{−|k|/scale}."""
    exact = positive(scale, "scale", most=MOST_SCALE)
    return _vector(lambda: _laplace(exact), size)


def discrete_gaussian(scale: Number, size: int) -> Ints:
    """P(k) ∝ e^{−k²/2scale²}."""
    exact = positive(scale, "scale", most=MOST_SCALE)
    return _vector(lambda: _gaussian(exact), size)


def rounded_gaussian(scale: Number, size: int) -> Ints:
    """P(k) = Φ((k + ½)/scale) − Φ((k − ½)/scale)."""
    exact = positive(scale, "scale", most=MOST_SCALE)
    return _vector(lambda: _rounded(exact), size)


def _vector(draw: Callable[[], int], size: int) -> Ints:
    return np.array([draw() for _ in range(whole(size, "size"))], np.int64)


def _bits(count: int) -> int:
    return int.from_bytes(os.urandom(-(-count // 8)), "little") & ((1 << count) - 1)


def _below(limit: int) -> int:
    """A uniform integer."""
    while (drawn := _bits((limit - 1).bit_length())) >= limit:
        pass
    return drawn


def _coin(chance: Fraction) -> bool:
    return _below(chance.denominator) < chance.numerator


def _coin_exp(exponent: Fraction) -> bool:
    """True with probability e^{−exponent} (Algorithm 1)."""
    if exponent > 1:
        return all(_coin_exp(Fraction(1)) for _ in range(math.floor(exponent))) and _coin_exp(exponent % 1)
    return _run(lambda n: _coin(exponent / n))


def _run(trial: Callable[[int], bool]) -> bool:
    """Whether the first failure of trials 1, 2, … is an odd one: e^{−x} for trials of probability x/n."""
    n = 1
    while trial(n):
        n += 1
    return n % 2 == 1


def _laplace(scale: Fraction) -> int:
    """Algorithm 2."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = _below(t)
        if not _coin_exp(Fraction(u, t)):
            continue
        v = 0
        while _coin_exp(Fraction(1)):
            v += 1
        y = (u + t * v) // s
        negative = _bits(1) == 1
        if y or not negative:
            return -y if negative else y


def _gaussian(scale: Fraction) -> int:
    """Algorithm 3."""
    t = math.floor(scale) + 1
    while True:
        y = _laplace(Fraction(t))
        if _coin_exp((abs(y) - scale**2 / t) ** 2 / (2 * scale**2)):
            return y


class _Uniform:
    """A uniform real number of [0, 1), known to lie between two fractions, as close as is asked for."""

    def __init__(self) -> None:
        self._start, self._known = 0, 0

    def ends(self, bits: int) -> tuple[Fraction, Fraction]:
        """The interval of length 2^{−bits}, or a shorter one, in which it lies."""
        if bits > self._known:
            self._start = (self._start << (bits - self._known)) | _bits(bits - self._known)
            self._known = bits
        return Fraction(self._start, 1 << self._known), Fraction(self._start + 1, 1 << self._known)


def _rounded(scale: Fraction) -> int:
    """Algorithm N, and the integer nearest to scale times the deviate."""
    while True:
        k = 0
        while _coin_exp(HALF):
            k += 1
        if not _coin_exp(Fraction(k * (k - 1), 2)):
            continue
        x = _Uniform()
        if all(_run(partial(_under, x, k)) for _ in range(k + 1)):
            sign = -1 if _bits(1) else 1
            return sign * _nearest(scale, k, x)


def _under(x: _Uniform, k: int, n: int) -> bool:
    """True with probability x(2k + x)/(2k + 2)n."""
    u, bits = _Uniform(), 16
    while True:
        (low, high), (least, most) = x.ends(bits), u.ends(bits)
        scale = (2 * k + 2) * n
        if most * scale <= low * (2 * k + low):
            return True
        if least * scale >= high * (2 * k + high):
            return False
        bits *= 2


def _nearest(scale: Fraction, k: int, x: _Uniform) -> int:
    """⌊scale·(k + x) + ½⌋. The half-way points themselves have probability zero."""
    bits = 16
    while True:
        low, high = x.ends(bits)
        first = math.floor(scale * (k + low) + HALF)
        if scale * (k + high) + HALF <= first + 1:
            return first
        bits *= 2
