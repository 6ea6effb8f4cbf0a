"""Ends of intervals as integers in units of a power of two: rounded outward, compared, divided, raised."""

from __future__ import annotations

from dalenius.arithmetic.fixed import Ends, raised, shifted

SPARE = 16
"""Bits beyond the working precision that ends keep where they would have too many."""


def below(m: int, e: int, n: int, f: int) -> bool:
    """Whether m·2^e < n·2^f."""
    if e == f or m <= 0 <= n or n <= 0 <= m:
        return m < n
    sizes = m.bit_length() + e, n.bit_length() + f
    if sizes[0] != sizes[1]:
        return (sizes[0] < sizes[1]) == (m > 0)
    return m << (e - f) < n if e > f else m < n << (f - e)


def hull(m: int, e: int, n: int, f: int, bits: int) -> Ends:
    """The interval from m·2^e to n·2^f in one unit, rounded outward if these are far apart."""
    if e == f:
        return m, n, e
    sizes = [one.bit_length() + unit for one, unit in ((m, e), (n, f)) if one]
    unit = max(min(e, f), max(sizes, default=0) - bits - SPARE)
    return shifted(m, e - unit) if m else 0, raised(n, f - unit) if n else 0, unit


def added(a: Ends, b: Ends, bits: int) -> Ends:
    """The sum of two intervals of units that may be far apart."""
    low, high, unit = a
    size = max(
        (max(abs(one[0]), abs(one[1])).bit_length() + one[2] for one in (a, b) if one[0] or one[1]), default=0
    )
    unit = max(min(a[2], b[2]), size - bits - SPARE)
    low = shifted(a[0], a[2] - unit) if a[0] else 0
    high = raised(a[1], a[2] - unit) if a[1] else 0
    low += shifted(b[0], b[2] - unit) if b[0] else 0
    high += raised(b[1], b[2] - unit) if b[1] else 0
    return low, high, unit


def product(a: Ends, b: Ends) -> Ends:
    """Of two intervals of any signs."""
    if a[0] == a[1] and b[0] == b[1]:
        only = a[0] * b[0]
        return only, only, a[2] + b[2]
    found = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(found), max(found), a[2] + b[2]


def quotient(a: Ends, b: Ends, bits: int) -> Ends:
    """Of an interval and one of positive numbers: rounded outward, exact where it can be."""
    top = max(a[0].bit_length(), a[1].bit_length())
    more = max(bits + 2 + b[1].bit_length() - top, 0)
    low, high, (least, most, _) = a[0] << more, a[1] << more, b
    low //= most if low > 0 else least
    high = -(-high // (least if high > 0 else most))
    return low, high, a[2] - b[2] - more


def power(low: int, high: int, unit: int, n: int, bits: int) -> Ends:
    """The n-th power, n > 0, of an interval of numbers that are not negative."""
    if low == high and low & (low - 1) == 0 and low:
        return 1, 1, (unit + low.bit_length() - 1) * n
    found = None
    while True:
        if n & 1:
            found = (low, high, unit) if found is None else (found[0] * low, found[1] * high, found[2] + unit)
            spare = found[1].bit_length() - bits - SPARE
            if spare > 0:
                found = found[0] >> spare, -(-found[1] >> spare), found[2] + spare
        n >>= 1
        if not n:
            return found or (1, 1, 0)
        low, high, unit = low * low, high * high, 2 * unit
        spare = high.bit_length() - bits - SPARE
        if spare > 0:
            low, high, unit = low >> spare, -(-high >> spare), unit + spare
