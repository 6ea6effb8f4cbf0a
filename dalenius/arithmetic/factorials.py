"""The gamma function of positive numbers, by Stirling's series.

log Γ(x) = (x − ½)·log x − x + ½·log 2π + Σ B₂ₖ/(2k(2k − 1)x^(2k−1)), k < K, off by less than the first
term left out (x > 0; Whittaker and Watson, 12.33). A small x is raised to x + n, Γ(x + n) being
x(x + 1)…(x + n − 1)·Γ(x).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Any

from dalenius.arithmetic.reals import Real, plain, read, undefined
from dalenius.arithmetic.working import WORKING, workprec

GUARD = 16


@lru_cache(1024)
def _bernoulli(n: int) -> Fraction:
    """B_n, exactly, by the recursion of all before it."""
    if n < 2:
        return Fraction(1) if n == 0 else Fraction(-1, 2)
    if n % 2:
        return Fraction(0)
    return -sum((comb(n + 1, k) * _bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


def log_gamma(x: Real) -> Any:
    """log Γ(x); undefined where the interval reaches 0."""
    if x.low <= 0:
        return undefined()
    bits = WORKING.bits
    with workprec(bits + GUARD + max(x.high.bit_length() + x.unit, 0).bit_length()):
        large = bits // 3 + 8
        steps = 0 if x > large else large - int(float(x.lower()))
        product = plain(1, 1, 0)
        for n in range(steps):
            product = product * (x + n)
        found = _stirling(x + steps, bits + GUARD) - product.log()
    return found + plain(0, 0, 0)


def _stirling(x: Real, bits: int) -> Any:
    total = (x - 0.5) * x.log() - x + (2 * Real.pi()).log() / 2
    power, square = 1 / x, 1 / (x * x)
    for k in range(1, bits):
        term = read(_bernoulli(2 * k) / (2 * k * (2 * k - 1))) * power
        if abs(term) < read(2) ** -bits or k > bits // 2:
            return total + term.union(plain(0, 0, 0)).union(-term)
        total, power = total + term, power * square
    return undefined()


def gamma(x: Real) -> Any:
    """Γ(x) = e^(log Γ(x)), with as many more bits as the logarithm has before its point."""
    if x.low <= 0:
        return undefined()
    size = x.high.bit_length() + x.unit
    with workprec(WORKING.bits + 2 * max(size, 0) + GUARD):
        found = log_gamma(x).exp()
    return found + plain(0, 0, 0)
