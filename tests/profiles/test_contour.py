"""Subsampled Gaussians: the certified interval holds the truth, in every case whose truth is known."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import acb, arb

from dalenius.losses import Bound, Gaussian, Loss, Pure
from dalenius.profiles.arm import Turns
from dalenius.profiles.rounding import ULPS, U
from tests.profiles.truth import DIGITS, PATH, SHOWN, Case, Infeasible, direction, number

ROWS = json.loads(PATH.read_text())["cases"]
SLACK = Fraction(1, 10**DIGITS)


def described(row: dict) -> Loss:
    return Gaussian(noise_multiplier=Fraction(row["sigma"])).poisson(Fraction(row["q"])) * row["steps"]


def holds(bound: Bound, truth: Fraction) -> bool:
    return Fraction(bound.lower) <= truth * (1 + SLACK) and truth * (1 - SLACK) <= Fraction(bound.upper)


def test_the_table_is_large_and_varied() -> None:
    assert len(ROWS) >= 200
    assert sum(3 <= row["steps"] <= 30 for row in ROWS) >= 20
    assert sum(row["steps"] <= 2 and float(row["sigma"]) < 1 for row in ROWS) >= 30
    assert sum(row["steps"] > 30 for row in ROWS) >= 50


@pytest.mark.parametrize("start", range(0, len(ROWS), 20))
def test_the_truth_lies_between_lower_and_upper(start: int) -> None:
    for row in ROWS[start : start + 20]:
        bound = described(row).epsilon(Fraction(row["delta"]))
        assert holds(bound, Fraction(row["epsilon"])), (row, bound)


@pytest.mark.parametrize("noise_multiplier", [300, 1000, 10_000])
@pytest.mark.parametrize("epsilon", [1, 4, 20])
def test_a_delta_next_to_nothing_is_bounded_at_once(noise_multiplier: int, epsilon: float) -> None:
    """Far beyond all losses no contour is laid, and no grid is made that reaches there."""
    for rate, steps in (("0.5", 100), ("0.2", 4), ("1e-4", 100)):
        loss = Gaussian(noise_multiplier=noise_multiplier).poisson(Fraction(rate)) * steps
        assert 0 <= loss.delta(epsilon).upper < 1e-250


def test_angles_by_doubling_are_as_close_as_is_claimed() -> None:
    """Against balls, over sixteen orders of magnitude of the loss; phases are counted apart."""
    losses = np.array([s * m * 10.0**k for k in range(-12, 5) for m in (1.0, 2.7) for s in (1, -1)])
    step, count = 0.37, 1100
    turns = Turns(losses, step, count)
    every = (turns.large[:, None] + turns.small * (1 + turns.large[:, None])).reshape(-1, len(losses))
    with flint.ctx.workprec(200):
        for k in (1, 31, 33, 500, 1023, count - 1):
            for j, loss in enumerate(losses.tolist()):
                angle = arb(k) * arb(step) * arb(loss)
                off = float(abs(acb(complex(every[k, j])) - (acb(0, 1) * angle).exp() + 1))
                size = abs(float(angle))
                allowed = turns.rounding * min(8.0, size) + 4 * U * size
                assert off <= allowed, (k, loss)


@pytest.mark.parametrize("row", ROWS[: len(SHOWN) - 1], ids=lambda row: f"{row['steps']}-{row['delta']}")
def test_the_cases_that_must_be_shown_are_narrow(row: dict) -> None:
    bound = described(row).epsilon(Fraction(row["delta"]))
    assert holds(bound, Fraction(row["epsilon"]))
    assert bound.width <= 1e-8 * bound.upper


def test_the_optimal_composition_of_pure_losses_is_narrow() -> None:
    """Kairouz, Oh and Viswanath 2015, Theorem 3.3: 1,000 × ε₀ = 0.1 at δ = 1e-6."""

    def delta(epsilon: Fraction) -> arb:
        each, y = arb(flint.fmpq(1, 10)).exp(), number(str(epsilon)).exp()
        total, ways = arb(0), arb(1)
        for k in range(1001):
            p, q = ways * each ** (1000 - k), ways * each**k
            total += p - y * q if p > y * q else 0
            ways = ways * (1000 - k) / (k + 1)
        return total / (1 + each) ** 1000

    bound = (Pure(0.1) * 1000).epsilon(1e-6)
    with flint.ctx.workprec(2000):
        assert delta(Fraction(bound.upper)) <= number("1e-6") <= delta(Fraction(bound.lower))
    assert bound.width <= 1e-8 * bound.upper
    assert bound.lower <= 19.34467144805 and bound.upper >= 19.34467144795


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_table_can_be_made_again(seed: int) -> None:
    row = random.Random(seed).choice([r for r in ROWS if r["epsilon"] != "0"])
    case = Case(row["q"], row["sigma"], row["steps"], row["delta"])
    with flint.ctx.workprec(320):
        try:
            found = max(direction(case, 1)[0], direction(case, -1)[0], key=float)
        except Infeasible:
            pytest.skip("the cost limit of the table's maker is below what this row takes")
        assert abs(found / number(row["epsilon"]) - 1) < arb(10) ** -(DIGITS - 1)


FUNCTIONS = {
    "exp": (np.exp, arb.exp, (-700.0, 700.0)),
    "expm1": (np.expm1, arb.expm1, (-40.0, 700.0)),
    "expm1 near zero": (np.expm1, arb.expm1, (-1e-3, 1e-3)),
    "log": (np.log, arb.log, (1e-300, 1e300)),
    "log near one": (np.log, arb.log, (0.5, 2.0)),
    "log1p": (np.log1p, arb.log1p, (-0.999999, 50.0)),
    "log1p near zero": (np.log1p, arb.log1p, (-1e-6, 1e-6)),
    "sin": (np.sin, arb.sin, (-1e5, 1e5)),
    "cos": (np.cos, arb.cos, (-1e5, 1e5)),
    "erfc": (np.vectorize(math.erfc), arb.erfc, (-6.5, 26.0)),
    "math.exp": (np.vectorize(math.exp), arb.exp, (-700.0, 700.0)),
    "math.log": (np.vectorize(math.log), arb.log, (1e-9, 10.0)),
    "math.expm1": (np.vectorize(math.expm1), arb.expm1, (-40.0, 10.0)),
    "math.log1p": (np.vectorize(math.log1p), arb.log1p, (-0.999, 10.0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions_are_as_accurate_as_the_proofs_assume(name: str) -> None:
    """Every length from one to 2,000, so that each vectorized code path is met."""
    function, exact, (low, high) = FUNCTIONS[name]
    source = random.Random(name)
    wide = high > 1e200
    x = [
        math.exp(source.uniform(math.log(low), math.log(high))) if wide else source.uniform(low, high)
        for _ in range(2000)
    ]
    found = np.concatenate(
        [function(np.array(x[:7])), function(np.array(x[7:40])), function(np.array(x[40:]))]
    )
    with flint.ctx.workprec(160):
        for at, value in zip(x, found.tolist(), strict=True):
            error = abs(exact(arb(at)) - arb(value))
            assert error <= ULPS * math.ulp(value), (name, at)
