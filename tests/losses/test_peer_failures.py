"""Failures known from other libraries, which must not happen here."""

from __future__ import annotations

import math

import flint
import pytest
from flint import arb

from dalenius.losses import Gaussian, Pure, RandomizedResponse, compare


def test_a_count_is_not_ignored_for_randomized_response() -> None:
    """dp-accounting 0.6.0 gives 0.2007 for 1,000 answers, what one costs."""
    one = RandomizedResponse(0.9)
    thousand = (one * 1000).epsilon(1e-6)
    assert one.epsilon(0).upper <= 0.2007
    with flint.ctx.workprec(2000):
        each = arb(flint.fmpq(11, 9))  # odds of the true report: 0.55 to 0.45
        truth = _optimal(each, 1000, arb(thousand.upper))
        assert truth <= arb(flint.fmpq(1, 10**6)) <= _optimal(each, 1000, arb(thousand.lower))
    assert thousand.lower > 40


def _optimal(odds: arb, steps: int, epsilon: arb) -> arb:
    """Kairouz, Oh and Viswanath 2015, Theorem 3.3."""
    total, ways, y = arb(0), arb(1), epsilon.exp()
    for k in range(steps + 1):
        p, q = ways * odds ** (steps - k), ways * odds**k
        total += p - y * q if p > y * q else 0
        ways = ways * (steps - k) / (k + 1)
    return total / (1 + odds) ** steps


def test_round_off_does_not_push_the_answer_below_the_truth() -> None:
    """Accountants by FFT in floats answer below 13.109436 here."""
    bound = (Gaussian(1.36246).poisson(0.0113686) * 37_912).epsilon(2.428e-10)
    assert bound.upper >= 13.109436
    assert bound.width <= 1e-8 * bound.upper


def test_the_central_limit_is_not_called_a_bound() -> None:
    table = compare(Gaussian(4).poisson(0.01) * 10_000, delta=1e-5)
    rows = [row for row in table.rows if "clt" in row.name.lower()]
    assert rows and all(row.status == "approximation" for row in rows)
    assert all(row.epsilon >= table.truth.lower for row in table.rows if row.status != "approximation")


@pytest.mark.parametrize("delta", [1e-3, 0.1, 0.5, 0.999])
def test_epsilon_is_never_negative(delta: float) -> None:
    for loss in (Gaussian(20).poisson(1e-4), Gaussian(100) * 3, Gaussian(5).poisson(0.01) * 20, Pure(0.001)):
        bound = loss.epsilon(delta)
        assert 0 <= bound.lower <= bound.upper


@pytest.mark.parametrize("power", [15, 30, 60, 100, 200])
@pytest.mark.parametrize("steps", [1, 5, 100, 10_000])
def test_a_tiny_delta_is_not_infinitely_costly(power: int, steps: int) -> None:
    bound = (Gaussian(4).poisson(0.01) * steps).epsilon(10.0**-power)
    assert 0 < bound.lower <= bound.upper < math.inf
    assert bound.width <= 1e-3 * bound.upper or power > 30


def test_ten_times_a_tenth_is_one() -> None:
    assert (Pure(0.1) * 10).epsilon(0).upper == 1.0
    assert sum([Pure(0.1)] * 9, start=Pure(0.1)).epsilon(0).upper == 1.0
