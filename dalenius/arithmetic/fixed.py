"""Numbers as integers in units of 2^−bits: constants, and the exponential of a small number.

Errors are counted in units. A shift or a quotient of integers is rounded down and so is off by less than one
unit; a bound on an error is the sum of what each operation adds, as the docstrings say.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

Dyadic = tuple[int, int]
"""(m, e): the number m·2^e."""
Ends = tuple[int, int, int]
"""(low, high, e): the interval from low·2^e to high·2^e."""
ROUND = 64
"""Constants are kept for multiples of so many bits."""


def shifted(m: int, by: int) -> int:
    """m·2^by, rounded down."""
    return m << by if by >= 0 else m >> -by


def raised(m: int, by: int) -> int:
    """m·2^by, rounded up."""
    return m << by if by >= 0 else -(-m >> -by)


def _inverse(q: int, bits: int, sign: int) -> tuple[int, int]:
    """Σ sign^n/((2n + 1)·q^(2n+1)), in units, and how many units it is off at most.

    Each power is off by less than two units (one of its own, and less than one from before), each term by
    less than three. Past the last term, less than one unit, there is less than two more.
    """
    power, square, total, n = (1 << bits) // q, q * q, 0, 0
    while power:
        term = power // (2 * n + 1)
        total += -term if sign < 0 and n % 2 else term
        power //= square
        n += 1
    return total, 3 * n + 2


@lru_cache(256)
def _constant(parts: tuple[tuple[int, int], ...], sign: int, bits: int) -> int:
    guard = 24
    total, off = 0, 0
    for factor, q in parts:
        value, error = _inverse(q, bits + guard, sign)
        total, off = total + factor * value, off + abs(factor) * error
    if off >= 1 << (guard - 1):
        raise ArithmeticError("too many bits for the constant's guard")
    return total >> guard


def _kept(parts: tuple[tuple[int, int], ...], sign: int, bits: int) -> int:
    wide = -(-bits // ROUND) * ROUND
    return _constant(parts, sign, wide) >> (wide - bits)


def log_two(bits: int) -> int:
    """log 2 in units, off by less than three: 18·artanh(1/26) − 2·artanh(1/4801) + 8·artanh(1/8749).

    The sum is off by half a unit at most, and two shifts by less than one each.
    """
    return _kept(((18, 26), (-2, 4801), (8, 8749)), 1, bits)


def pi(bits: int) -> int:
    """π in units, off by less than three: 16·arctan(1/5) − 4·arctan(1/239), as `log_two`."""
    return _kept(((16, 5), (-4, 239)), -1, bits)


def exponential(r: int, bits: int) -> int:
    """e^r in units of 2^−bits for 0 ≤ r < 0.7, r in units too, off by less than two.

    With x = r/2^k, k ≈ √bits, in units of 2^−(bits + k + guard), exactly: the n-th term of Σ xⁿ/n! is
    off by less than 3 (two roundings, and what the term before was off times x/n < ½), N terms by less than
    3N, and what follows a term of 0 by less than 5. A square of v < 2, v off by E, is off by less than
    2vE + 2; the k factors 2v multiply to less than 2^k·e^r < 2^(k+2): in all, less than
    2^(k+2)·(3N + 7) units. As N ≤ √bits + 12 this is less than one unit of 2^−bits; the last shift is one
    more.
    """
    k = isqrt(bits)
    guard = 8 + bits.bit_length()
    wide = bits + k + guard
    x = r << guard
    term = x
    total = (1 << wide) + x
    n = 2
    while term:
        term = (term * x >> wide) // n
        total += term
        n += 1
    for _ in range(k):
        total = total * total >> wide
    return total >> (k + guard)
