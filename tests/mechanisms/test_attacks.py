"""Attacks that break naive code, shown to break it here, and run unchanged against the library.

- Low-order bits (Mironov 2012): floating-point noise on a floating-point value leaves a trace of the value in
  the last digits of the sum.
- Sums (Casacuberta, Shoemate, Vadhan and Wagaman 2022): rounding and re-ordering move a floating-point sum by
  more than one record may.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import betaincinv

from dalenius.mechanisms import Gaussian, Laplace
from dalenius.privacy.quantized import Grid, exact_sum

DRAWS = 100_000
ALARM = 1e-7


def smallest_bits(values: np.ndarray) -> np.ndarray:
    """The exponent of the last binary digit of each number: where its trace ends."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    low = whole & -whole
    return np.where(whole == 0, 2000, exponent - 53 + np.log2(np.maximum(low, 1)).astype(int))


def shown_epsilon(first: np.ndarray, second: np.ndarray) -> float:
    """A lower bound on ε, false with probability ALARM: from the best threshold on the last digit.

    The threshold is chosen on one half of the draws and judged on the other.
    """
    best = (0.0, (0, 1, 0))
    halves = [np.array_split(smallest_bits(v), 2) for v in (first, second)]
    for a, b in ((0, 1), (1, 0)):
        for level in np.unique(halves[a][0]):
            p, q = (np.mean(halves[k][0] <= level) for k in (a, b))
            hope = math.log((p + 1e-9) / (q + 1e-4))
            best = max(best, (hope, (a, b, int(level))))
    a, b, level = best[1]
    hits = [int(np.sum(halves[k][1] <= level)) for k in (a, b)]
    n = DRAWS // 2
    p = float(betaincinv(hits[0], n - hits[0] + 1, ALARM / 2)) if hits[0] else 0.0
    q = float(betaincinv(hits[1] + 1, n - hits[1], 1 - ALARM / 2)) if hits[1] < n else 1.0
    return max(0.0, math.log(p / q)) if p else 0.0


def test_low_order_bits_betray_naive_laplace_noise() -> None:
    generator = np.random.default_rng()
    zero, one = (value + generator.laplace(scale=1.0, size=DRAWS) for value in (0.0, 1.0))
    assert shown_epsilon(zero, one) > 2.0


def test_low_order_bits_of_a_release_say_no_more_than_it_claims() -> None:
    for mechanism in (Laplace(scale=1, sensitivity=1), Gaussian(scale=1, sensitivity=1)):
        zero, one = (mechanism.sample(value, DRAWS) for value in (0.0, 1.0))
        claim = mechanism.loss.epsilon(1e-9).upper
        assert shown_epsilon(zero, one) <= min(claim, 1.0)


HUGE, SMALL = 2.0**52, 1.0
"""A sum that has reached HUGE loses halves of what is added to it."""


def test_rounding_breaks_a_naive_sum() -> None:
    """Clipped to [0, 2^52], one record moves this sum by more than 2^52: half steps round to even."""
    rest = np.full(1024, 0.5)
    with_record, without = np.concatenate([[HUGE], rest]), rest
    moved = sequential(with_record) - sequential(without)
    assert abs(moved) != HUGE
    shuffled = np.concatenate([rest, [HUGE]])
    assert sequential(shuffled) != sequential(with_record)


def test_our_sum_moves_by_what_the_record_holds_in_any_order() -> None:
    grid = Grid(-1)
    rest = np.full(1024, 0.5)
    with_record = grid.quantize(np.concatenate([[HUGE], rest]), lower=0, upper=HUGE)
    without = grid.quantize(rest, lower=0, upper=HUGE)
    assert exact_sum(with_record) - exact_sum(without) == Fraction(HUGE) / grid.step
    assert exact_sum(with_record[::-1]) == exact_sum(with_record)


def sequential(values: np.ndarray) -> float:
    total = 0.0
    for value in values.tolist():
        total += value
    return total


def test_rounding_half_to_even_doubles_a_naive_sensitivity() -> None:
    """A half and one and a half are one step apart; rounded half to even they are two."""
    naive = [round(value / 2) for value in (1, 3)]
    assert naive[1] - naive[0] == 2
    grid = Grid(1)
    ours = grid.quantize(np.array([1.0, 3.0]), lower=-10, upper=10)
    assert abs(int(ours[1] - ours[0])) <= 1
