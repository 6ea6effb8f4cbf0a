from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from contract import ALARM, check_json
from scipy.stats import binom

from dalenius.audits import audit
from dalenius.errors import InvalidArgument
from dalenius.mechanisms.variance import Variance, spread
from dalenius.privacy.quantized import Grid

TINY = Variance(lower=0, upper=2, scale=1, grid=Grid(0))


@pytest.mark.parametrize(
    "mechanism",
    [
        Variance.calibrate(epsilon=1, lower=0, upper=1, grid=Grid(-6)),
        Variance.calibrate(epsilon=2, delta=1e-2, lower=-1, upper=1, noise="gaussian", grid=Grid(-6)),
        Variance.calibrate(epsilon=1, lower=0, upper=10, per_unit=3),
    ],
)
def test_threshold_tests_find_most_of_the_claim(mechanism: Variance) -> None:
    """The worst case moves the last sum alone, by the whole sensitivity. False alarm: 1e-7."""
    check_json(mechanism)
    found = audit(mechanism, confidence=1 - ALARM, trials=100_000)
    assert found.holds
    assert found.epsilon_lower >= 0.8 * found.claim.upper


def test_contributions_add_up_to_the_same_whatever_the_value() -> None:
    mechanism = Variance(lower=0, upper=10, scale=1, grid=Grid(0))
    rows = mechanism.vectors(np.arange(-3, 15))
    assert (rows >= 0).all() and (rows.sum(axis=1) == 100).all()
    assert mechanism.bound.l1 == mechanism.bound.l2 == 100


def test_sensitivity_by_all_pairs_of_records() -> None:
    rows = TINY.vectors(np.array([0.0, 1.0, 2.0, 9.0]))
    missing = Variance(lower=0, upper=2, scale=1, grid=Grid(0)).vectors([math.nan])
    assert missing.tolist() == [[0, 0, 0]]
    replaced = Variance(lower=0, upper=2, scale=1, grid=Grid(0), relation="replace").bound
    apart = [row - other for row, other in product(rows, repeat=2)]
    assert max(np.abs(d).sum() for d in apart) == replaced.l1 == 8
    assert max(float((d * d).sum()) for d in apart) == pytest.approx(float(replaced.need("l2")) ** 2) == 32


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_neighbours_are_further_apart_than_claimed(relation: str) -> None:
    """Every record of a coarse grid, by the joint law of three sums."""
    mechanism = Variance(lower=0, upper=2, scale=Fraction(3, 2), grid=Grid(0), relation=relation)
    law = mechanism.additive.probabilities(0)
    assert law is not None
    size = len(law.masses) + 8

    def placed(row: list[int]) -> np.ndarray:
        parts = [np.zeros(size) for _ in row]
        for part, shift in zip(parts, row, strict=True):
            part[4 + shift : 4 + shift + len(law.masses)] = law.masses
        # Each sum is cut to where its mass is, 1e-10 of it being left out.
        middle = slice(size // 2 - 40, size // 2 + 45)
        return np.einsum("i,j,k->ijk", *(part[middle] for part in parts))

    rows = [[0, 0, 0], *mechanism.vectors([0.0, 1.0, 2.0]).tolist()]
    pairs = (
        [(rows[0], row) for row in rows[1:]] if relation == "add_remove" else [*product(rows[1:], repeat=2)]
    )
    for epsilon in (0.0, 1.0, 2.5):
        claim, most = mechanism.loss.delta(epsilon), 0.0
        for first, second in pairs:
            found = float(np.maximum(placed(first) - math.exp(epsilon) * placed(second), 0).sum())
            assert found <= claim.upper + 1e-9
            most = max(most, found)
        assert most >= claim.lower * 0.999 - 1e-9


def test_the_formula_is_the_variance() -> None:
    values = np.array([1, 4, 4, 9, 0, 10])
    mechanism = Variance(lower=0, upper=10, scale=1, grid=Grid(0))
    sums = mechanism.totals(mechanism.vectors(values)).tolist()
    assert float(spread(sums, 0)[0]) * 100 == pytest.approx(values.var())
    assert spread(sums, 0)[0] == spread(sums, 0)[1] == spread(sums, 0)[2]


def test_the_range_holds_every_point_of_the_cube() -> None:
    random = np.random.default_rng(7)
    for sums, reach in (
        ((50, 30, 60), 20),
        ((5, 5, 5), 9),
        ((0, 100, 3), 10),
        ((40, 0, 41), 5),
        ((-3, 2, 1), 4),
    ):
        value, low, high = spread(list(sums), reach)
        points = np.maximum(np.array(sums) + random.uniform(-reach, reach, (4000, 3)), 0)
        corners = np.maximum(np.array(sums) + reach * np.array(list(product((-1, 1), repeat=3))), 0)
        x, m, y = np.concatenate([points, corners]).T
        with np.errstate(all="ignore"):
            found = np.nan_to_num((x * y - m * m / 4) / (x + m + y) ** 2)
        assert low - 1e-12 <= min(found.min(), value) and max(found.max(), value) <= high + 1e-12
        assert found.max() >= float(high) - 0.02


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_error_bars_hold(noise: str) -> None:
    """False alarm: 1e-7. They are wider than they need be, as each sum has a bar of its own."""
    values = np.concatenate([np.arange(100), np.full(200, 20.0)])
    delta = 1e-3 if noise == "gaussian" else 0
    mechanism = Variance.calibrate(epsilon=2, delta=delta, lower=0, upper=100, noise=noise)
    bars = [mechanism.release(values, confidence=0.6) for _ in range(100)]
    hit = sum(bar.low <= values.var() <= bar.high for bar in bars)
    assert binom.cdf(hit, 100, 0.6) > ALARM
    assert all(0 <= bar.low <= bar.value <= bar.high <= 2500 for bar in bars)


def test_odd_data_give_a_variance() -> None:
    for relation in ("add_remove", "replace"):
        mechanism = Variance.calibrate(epsilon=1, lower=-3, upper=5, relation=relation)
        for values in ([], [math.nan], [math.inf], [1e308, -1e308], [10**400], ["x", None]):
            found = mechanism.release(values)
            assert 0 <= found.low <= found.value <= found.high <= 16
    assert mechanism.release([1]).receipt.postprocessing == (
        "the variance of the noisy sums, held between 0 and the largest possible",
    )


@pytest.mark.parametrize(
    "bad", [{"scale": 0}, {"lower": 1}, {"scale": math.inf}, {"per_unit": 0}, {"grid": Grid(-40)}]
)
def test_bad_parameters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Variance(**{"lower": 0, "upper": 1, "scale": 1, **bad})
