"""Continuous Laplace noise rounded to whole steps, drawn exactly by a way on which its scale is met last.

The scale may be private: the nearest integer to ±E·scale is taken, with E exponential of mean 1 and drawn
without it, to 126 binary digits after the point and to more where these do not decide. With a scale of 2^50
steps they leave a draw open with a probability below 2^−70.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.privacy.quantized import MOST, Steps

DIGITS = 126
"""Binary digits after the point to which an exponential variable is drawn at first."""
HALF = 2 ** (DIGITS // 2)


def rounded_laplace(scale: Fraction, size: int) -> Steps:
    """Continuous Laplace noise, rounded: ±E·scale to the nearest step, E exponential of mean 1.

    The scale is private. E is drawn without it, so neither a table nor the number of draws tells of it.
    """
    signs = 2 * np.asarray(noise.uniform(2, size), dtype=np.int64) - 1
    far = [_rounded(scale, digits, DIGITS) for digits in _exponential(size)]
    return np.asarray(signs * np.array([min(k, MOST) for k in far], dtype=np.int64))


def _rounded(scale: Fraction, digits: int, known: int) -> int:
    """The nearest integer to E·scale, by as many more digits of E as decide it."""
    parts = 2 * scale.denominator << known
    while True:
        low = 2 * scale.numerator * digits + (parts >> 1)
        found = low // parts
        # The end of the cell is not part of it.
        if (low + 2 * scale.numerator - 1) // parts == found:
            return found
        known, parts = known + 1, 2 * parts
        digits = 2 * digits + _digit(known)


def _exponential(size: int) -> list[int]:
    """E in units of 2^−DIGITS, rounded down: a geometric number of ratio 1/e, and a fraction of law e^{−f}.

    P(⌊2^DIGITS·f⌋ = k) ∝ e^{−k/2^DIGITS}: a uniform k is kept with that probability.
    """
    whole = noise.discrete_laplace(1, size)
    while (again := np.flatnonzero(whole < 0)).size:
        whole[again] = noise.discrete_laplace(1, again.size)
    high, low = (np.asarray(noise.uniform(HALF, size), dtype=np.int64) for _ in range(2))
    todo = np.arange(size)
    while (todo := todo[~_kept(high[todo], low[todo])]).size:
        high[todo], low[todo] = noise.uniform(HALF, todo.size), noise.uniform(HALF, todo.size)
    parts = zip(whole.tolist(), high.tolist(), low.tolist(), strict=True)
    return [(n << DIGITS) + h * HALF + rest for n, h, rest in parts]


def _kept(high: Steps, low: Steps) -> NDArray[np.bool_]:
    """Coins of e^{−x}, x = (high·HALF + low)/HALF²: coins of x/1, x/2, … until one fails, at an odd place.

    All of the first n succeed with probability xⁿ/n! (Canonne, Kamath and Steinke 2020).
    """
    kept = np.zeros(high.size, dtype=bool)
    todo, place = np.arange(high.size), 1
    while todo.size:
        first, second = (np.asarray(noise.uniform(HALF, todo.size), dtype=np.int64) for _ in range(2))
        under = (first < high[todo]) | ((first == high[todo]) & (second < low[todo]))
        passed = under & noise.bernoulli(Fraction(1, place), todo.size)
        kept[todo[~passed]] = place % 2 == 1
        todo, place = todo[passed], place + 1
    return kept


def _digit(place: int) -> int:
    """One more binary digit of E: those of an exponential variable are independent, of odds e^{−2^−place}."""
    while noise.uniform(2, 1)[0]:
        if noise.bernoulli_exp(Fraction(1, 2**place), 1)[0]:
            return 1
    return 0
