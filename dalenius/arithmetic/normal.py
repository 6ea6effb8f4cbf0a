"""The error function and its complement, of a dyadic number m·2^e.

Near zero erf x = 2x/√π·e^(−x²)·S, S = Σ (2x²)ⁿ/(1·3·…·(2n + 1)), all of whose terms are positive. Far out
erfc x = e^(−x²)/(x√π)·A, A = Σ (−1)ⁿ (2n−1)!!/(2x²)ⁿ, which is nearer than its first term left out.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

from dalenius.arithmetic.elementary import exp
from dalenius.arithmetic.fixed import Ends, pi, raised, shifted

GUARD = 16
"""Bits beyond those asked for."""
LOG_TWO = 0.6932
"""A little more than log 2."""


def erf(m: int, e: int, bits: int) -> Ends:
    """erf x, within 2^−bits of itself: by S, and near 1 as 1 − erfc x with 0 < erfc x < e^(−x²)."""
    if m == 0:
        return 0, 0, 0
    if m < 0:
        low, high, unit = erf(-m, e, bits)
        return -high, -low, unit
    if beyond(m, e, bits + GUARD):
        return (1 << bits + GUARD) - 1, 1 << bits + GUARD, -bits - GUARD
    return _by_series(m, e, bits)


def erfc(m: int, e: int, bits: int) -> Ends:
    """erfc x, within 2^−bits of itself: 1 − erf x up to where A is near enough, then by A."""
    size = m.bit_length() + e
    if m == 0 or size < -bits - 4:
        # |erf x| < 2|x|.
        q = bits + GUARD if m == 0 else min(-size - 1, bits + GUARD)
        return ((1 << q) - (m > 0), (1 << q) + (m < 0), -q)
    if m < 0:
        low, high, unit = erf(-m, e, bits)
        one = 1 << -unit
        return one + low, one + high, unit
    if beyond(m, e, bits + GUARD) and (found := _far_out(m, e, bits)):
        return found
    # erfc x > e^(−x²)/(2x + 2): so many bits are lost to 1 − erf x.
    square = raised(m * m, 2 * e + 4)
    lost = square * 6 // 64 + square.bit_length() + 4
    low, high, unit = _by_series(m, e, bits + lost)
    one = 1 << -unit
    return one - high, one - low, unit


def beyond(m: int, e: int, bits: int) -> bool:
    """Whether x² > bits·log 2, so that e^(−x²) < 2^−bits; x > 0."""
    size = m.bit_length() + e
    return size > 32 or (size > 0 and shifted(m * m, 2 * e + 16) > bits * LOG_TWO * 65536)


def _by_series(m: int, e: int, bits: int) -> Ends:
    """2x/√π·e^(−x²)·S.

    In units u of 2^−w: a term of S is q/(2n + 3) times the one before, q = 2x². Two roundings and that of q
    make it off by less than 3(n + 1)u times the largest term so far, or times 1: while terms grow they are
    above 1 and q > 1, so the relative error grows by 3u a step; later the error itself does, by 3u times the
    largest. N terms are off by less than 2N²u·S. The first of less than a unit, once q/(2n + 3) ≤ ½, is more
    than all that follow: less than u + 3Nu·S. So S is off by less than (2N² + 3N + 1)u·S, and is no smaller
    than found; as that is below ½, it is no larger than found times 1 + 2(2N² + 3N + 1)u.
    """
    w = bits + GUARD + 2 * bits.bit_length()
    q = shifted(m * m, 2 * e + 1 + w)
    term, total, n = 1 << w, 1 << w, 1
    least = 2 * (q >> w) + 2
    while term or 2 * n + 1 < least:
        term = (term * q >> w) // (2 * n + 1)
        total += term
        n += 1
    off = 4 * n * n + 6 * n + 2
    ends = total, total + (total * off >> w) + 1
    low, high, unit = _by_square(m, e, w)
    root = _root_pi(w)
    return (
        (m * ends[0] * low << w) // root[1],
        -((-m * ends[1] * high << w) // root[0]),
        e - w + 1 + unit,
    )


def _far_out(m: int, e: int, bits: int) -> Ends | None:
    """e^(−x²)/(x√π)·A, or None where terms of A do not become small enough.

    In units u of 2^−w: a term is (2n + 1)·v times the one before, v = 1/2x² off by less than u. While this
    factor is below 1, a term t is off by what the last was, by (2n + 1)·t·u and by u: by n(2n + 2)u after n
    steps. N terms are off by less than N²(2N + 2)u; A, by as much and the first term left out.
    """
    w = bits + GUARD + 3 * bits.bit_length()
    square, shift = m * m, w - 2 * e - 1
    v = (1 << shift) // square if shift >= 0 else 0
    term, total, n = 1 << w, 0, 0
    small = 1 << (w - bits - 6)
    while term > small:
        total += -term if n % 2 else term
        if (2 * n + 1) * (v + 1) >= 1 << w:
            return None
        term = term * (2 * n + 1) * v >> w
        n += 1
    off = n * n * (2 * n + 2) + term + n * (2 * n + 2) + 1
    low, high, unit = _by_square(m, e, w)
    root, more = _root_pi(w), m.bit_length() + 8
    return (
        ((total - off) * low << more) // (m * root[1]),
        -((-(total + off) * high << more) // (m * root[0])),
        unit - e - more,
    )


def _by_square(m: int, e: int, bits: int) -> Ends:
    """e^(−x²)."""
    found = exp(-m * m, 2 * e, bits)
    if found is None:
        raise ArithmeticError("e^(−x²) is at most 1.")
    return found


@lru_cache(256)
def _root_pi(bits: int) -> tuple[int, int]:
    """√π from below and from above, in units of 2^−bits; π·4^bits is off by less than three."""
    value = pi(2 * bits)
    return isqrt(value - 3), isqrt(value + 3) + 1
