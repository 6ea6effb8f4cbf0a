"""Moments of a mean S of t likelihood ratios at whole orders, from those of one.

E S^α = α!/t^α times the coefficient of x^α in (Σ E[X^j]x^j/j!)^t.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import ball
from dalenius.profiles.enclosure import Interval, between, interval
from dalenius.profiles.pair import Pair


@lru_cache(maxsize=4096)
def whole_moment(pair: Pair, steps: int, order: int) -> Interval:
    """log E S^α at α = order + 1: the coefficients c of a power of a series p, p₀ = 1, follow each other by
    n·cₙ = Σ_{k≤n} (k(t + 1) − n)·p_k·c_{n−k}.
    """
    alpha = order + 1
    if order == 0:
        return (0.0, 0.0)
    logs = [(0.0, 0.0), (0.0, 0.0), *(pair.log_moment(float(j - 1)) for j in range(2, alpha + 1))]
    if any(math.isinf(high) for _, high in logs):
        return (0.0, math.inf)
    with workprec(1024):
        series = [between(ends).exp() / math.factorial(j) for j, ends in enumerate(logs)]
        powers = [arb(1)]
        for n in range(1, alpha + 1):
            terms = ((k * (steps + 1) - n) * series[k] * powers[n - k] for k in range(1, n + 1))
            powers.append(sum(terms, arb(0)) / n)
        low, high = interval((powers[alpha] * math.factorial(alpha) / ball(Fraction(steps)) ** alpha).log())
    return (max(low, 0.0), high)
