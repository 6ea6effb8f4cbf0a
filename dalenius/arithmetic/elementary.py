"""Elementary functions of a dyadic number m·2^e: an interval that contains the value, a few units wide.

`bits` is the precision asked for: the interval's width is below 2^−bits of the value. All is done in integers
(`fixed`), with the errors counted in units of the last place.
"""

from __future__ import annotations

from math import inf, isqrt, ldexp
from math import log as float_log

from dalenius.arithmetic.fixed import Ends, exponential, log_two, pi, shifted

GUARD = 14
"""Bits beyond those asked for."""
NEAR = -32
"""Below 2^NEAR a series in the number itself is short."""
FAR = 4096
"""Exponents of two beyond which an exponential is not looked at more closely."""


def exp(m: int, e: int, bits: int) -> Ends | None:
    """e^x, or None where it is beyond all numbers here.

    x = n·log 2 + r. In units of 2^−w, w = bits + GUARD, r is off by less than two (x and n·log 2 are taken
    with as many more bits as n has), so e^r by less than five more than `exponential`: seven in all.
    """
    if m == 0:
        return 1, 1, 0
    size = m.bit_length() + e
    if size < -bits - 2:
        # |e^x − 1| ≤ 2|x|.
        q = bits + GUARD if size < -bits - GUARD - 1 else -size - 1
        return (1 << q) - 1, (1 << q) + 1, -q
    if size > FAR:
        # e^x < 2^x ≤ 2^−2^(size−1) for x < 0.
        return (0, 1, -(1 << FAR)) if m < 0 else None
    w = bits + GUARD
    more = max(size, 0) + 4
    n, r = divmod(shifted(m, e + w + more), log_two(w + more))
    value = exponential(r >> more, w)
    return value - 7, value + 7, n - w


def expm1(m: int, e: int, bits: int) -> Ends | None:
    """e^x − 1: near 0 as x·(1 + x/2·(1 + x/3·(…))), elsewhere from e^x with as many more bits as cancel."""
    size = m.bit_length() + e
    if m == 0:
        return 0, 0, 0
    if size < NEAR:
        return _multiplied(m, e, *_expm1_series(shifted(m, e + bits + GUARD), bits + GUARD), bits + GUARD)
    found = exp(m, e, bits + max(-size, 0) + 2)
    if found is None:
        return None
    low, high, unit = found
    top = bits + GUARD - min(size, 0)
    if high.bit_length() + unit < -top:
        # −1 < e^x − 1 < −1 + 2^−top.
        return -(1 << top), 1 - (1 << top), -top
    if unit > 0:
        return low - 1, high, unit
    return low - (1 << -unit), high - (1 << -unit), unit


def _expm1_series(x: int, bits: int) -> tuple[int, int]:
    """(e^x − 1)/x in units, |x| < 2^−32, and how much it is off.

    N terms by Horner's rule: each step is off by less than two units, and what it takes over from the step
    before counts less than 2^−32 of that. Terms left out are less than 2^(−32N) < 2^−bits.
    """
    one = 1 << bits
    value = one
    for n in range(bits // -NEAR + 2, 1, -1):
        value = one + (value * x >> bits) // n
    return value, 4


def log(m: int, e: int, bits: int) -> Ends:
    """log x for x > 0, which is f·2^k with 0.7 < f < 1.42: log f + k·log 2.

    With y near log f, a float, log f = y + log(1 + t), t = f·e^−y − 1, whose error is below six units: e^±y
    is off by two, f by one. So the sum is off by less than the series, six, and three for each unit of k.
    """
    length = m.bit_length()
    k = length + e
    # 0.7·2^16 = 45875.2
    if shifted(m, 16 - length) <= 45875:
        k -= 1
    unit = e - k
    if k == 0:
        d = m - (1 << -e) if e < 0 else 0
        if d == 0:
            return 0, 0, 0
        size = d.bit_length() + e
        if size < NEAR:
            return _near_one(d, e, bits)
        w = bits + GUARD - size
    else:
        w = bits + GUARD
    f = shifted(m, unit + w)
    y = int(float_log(ldexp(shifted(m, unit + 60), -60)) * 2.0**52)
    fixed = shifted(y, w - 52)
    size_of_y = exponential(abs(fixed), w)
    t = (f * size_of_y >> w) - (1 << w) if fixed < 0 else ((f - size_of_y) << w) // size_of_y
    series, off = _log1p_series(t, w)
    total, off = fixed + series, off + 7
    if k:
        total, off = total + k * log_two(w), off + 3 * abs(k)
    return total - off, total + off, -w


def _log1p_series(t: int, bits: int) -> tuple[int, int]:
    """log(1 + t) in units, |t| < 1/4, and how much it is off.

    A power is off by less than two units, a term by less than three. The first power of at most one unit is
    less than three, and all that follow less than 4 together.
    """
    power, total, n = t, t, 1
    while not -1 <= power <= 1:
        n += 1
        power = -(power * t >> bits)
        total += power // n
    return total, 3 * n + 4


def _near_one(d: int, e: int, bits: int) -> Ends:
    """log(1 + x) of a small x = d·2^e, as x·(1 − x/2 + x²/3 − …)."""
    w = bits + GUARD
    x = shifted(d, e + w)
    power, total, n = 1 << w, 1 << w, 1
    while not -1 <= power <= 1:
        n += 1
        power = -(power * x >> w)
        total += power // n
    return _multiplied(d, e, total, 3 * n + 4, w)


def log1p(m: int, e: int, bits: int) -> Ends:
    """log(1 + x) for x > −1: near 0 by its series, elsewhere from 1 + x, exact or rounded outward."""
    if m == 0:
        return 0, 0, 0
    size = m.bit_length() + e
    if size < NEAR:
        return _near_one(m, e, bits)
    if e <= 0:
        return log(m + (1 << -e), e, bits)
    if size < 4 * bits + 2 * GUARD:
        return log((m << e) + 1, 0, bits)
    more = max(bits + GUARD - m.bit_length(), 0)
    m, e = m << more, e - more
    return joined(log(m, e, bits), log(m + 1, e, bits))


def _multiplied(m: int, e: int, value: int, off: int, bits: int) -> Ends:
    """m·2^e times a positive number in units."""
    ends = m * (value - off), m * (value + off)
    return min(ends), max(ends), e - bits


def joined(one: Ends, two: Ends) -> Ends:
    """The interval from the lower end of one to the upper end of the other."""
    unit = min(one[2], two[2])
    return one[0] << (one[2] - unit), two[1] << (two[2] - unit), unit


def sqrt(m: int, e: int, bits: int) -> Ends:
    """√x for x ≥ 0: the integer part of a root in units, off by less than one, or exact."""
    if m == 0:
        return 0, 0, 0
    more = max(2 * bits + 4 - m.bit_length(), 0)
    more += (e - more) % 2
    root = isqrt(m << more)
    return root, root + (root * root != m << more), (e - more) // 2


def cos_sin(m: int, e: int, bits: int) -> tuple[Ends, Ends]:
    """cos x and sin x, each to a few units of 2^−bits: by series of r, x = n·π/2 + r.

    r is off by less than 3 units, as in `exp`; a term by less than 4, N terms and what follows by 4N + 4.
    """
    size = max(m.bit_length() + e, 0)
    w = bits + GUARD
    more = size + 6
    n, r = divmod(shifted(m, e + w + more), pi(w + more - 1))
    r >>= more
    sums, term, count = [1 << w, r], r, 1
    while term:
        count += 1
        term = (term * r >> w) // count
        sums[count % 2] += term if count % 4 < 2 else -term
    off = 4 * count + 8
    cos, sin = ((value - off, value + off, -w) for value in sums)
    for _ in range(n % 4):
        cos, sin = (-sin[1], -sin[0], -w), cos
    return cos, sin


def nearest(m: int, e: int) -> float:
    """The float next to m·2^e, infinite past the largest."""
    spare = m.bit_length() - 128
    if spare > 0:
        # The last bit says that there is more.
        m, e = m >> spare | 1, e + spare
    try:
        return ldexp(m, max(e, -5000))
    except OverflowError:
        return inf if m > 0 else -inf
