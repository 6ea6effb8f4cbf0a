"""The default grid serves for every ε and all bounds that can be meant, and refusals tell what to change."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.bounded_mean import BoundedMean
from dalenius.mechanisms.bounded_sum import BoundedSum
from dalenius.mechanisms.ranged import Ranged
from dalenius.mechanisms.variance import Variance
from dalenius.privacy.quantized import Grid
from dalenius.release import Release

KINDS = [BoundedSum, BoundedMean, Variance]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("noise", "delta"), [("laplace", 0), ("laplace", 1e-6), ("gaussian", 1e-9)])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 0.1, 10, 10**6])
def test_every_epsilon_has_a_grid(kind: type[Ranged], noise: str, delta: float, epsilon: float) -> None:
    made = kind.calibrate(epsilon=epsilon, delta=delta, lower=0, upper=100, noise=noise)
    assert made.loss.epsilon(delta).upper <= math.nextafter(epsilon, math.inf)
    assert made.scale / made.step <= 2**50
    # Rounding is nothing to the noise: below a millionth of it for a thousand records.
    assert 1000 * made.step <= made.scale or 2**20 * made.step <= made.bound.linf
    assert isinstance(made.release(np.arange(100.0)), Release)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bounds", [(0, 1e-90), (-1e90, 1e90), (1e3, 1e3 + 1), (-3, -2), (0, 10**6)])
@pytest.mark.parametrize("per_unit", [1, 10**6])
def test_all_sensible_bounds_have_a_grid(
    kind: type[Ranged], bounds: tuple[float, float], per_unit: int
) -> None:
    lower, upper = bounds
    made = kind.calibrate(epsilon=1, lower=lower, upper=upper, per_unit=per_unit)
    least, most = made.ends
    assert most - least >= 100
    assert made.loss.epsilon(0).upper <= 1


@pytest.mark.parametrize("where", [1e12, 1e15])
def test_a_narrow_range_far_from_zero_has_a_mean(where: float) -> None:
    """Bars are as wide as the floats there are apart, so that they hold the mean."""
    made = BoundedMean.calibrate(epsilon=1000, lower=where, upper=where + 1)
    values = np.full(10**5, where)
    values[:30_000] += 1
    found = made.release(values)
    assert Fraction(found.low) <= Fraction(where) + Fraction(3, 10) <= Fraction(found.high)


def test_a_narrow_range_far_from_zero_has_no_sum_but_what_is_above_has() -> None:
    with pytest.raises(InvalidArgument, match="near to each other") as caught:
        BoundedSum.calibrate(epsilon=1, lower=1e12, upper=1e12 + 1)
    assert caught.value.remedy.startswith("Subtract a public number, such as lower,")
    assert BoundedSum.calibrate(epsilon=1, lower=0, upper=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 10**400), (-(10**400), 0), (0, 1e-300), (1e300, 1.1e300), (1, 1), (2, 1)]
)
def test_bounds_beyond_all_measure_are_named(kind: type[Ranged], lower: float, upper: float) -> None:
    with pytest.raises(InvalidArgument, match=r"^lower "):
        kind.calibrate(epsilon=1, lower=lower, upper=upper)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grid", [Grid(-500), Grid(-70), Grid(0), Grid(500)])
def test_without_a_grid_that_does_not_serve_one_is_found(kind: type[Ranged], grid: Grid) -> None:
    asked = {"epsilon": 1, "lower": 0, "upper": 0.5}
    with pytest.raises(InvalidArgument, match="grid") as caught:
        kind.calibrate(**asked, grid=grid)
    assert caught.value.remedy.startswith("Leave grid out")
    assert kind.calibrate(**asked)


@pytest.mark.parametrize("kind", KINDS)
def test_too_little_epsilon_for_many_records_names_what_suffices(kind: type[Ranged]) -> None:
    asked = {"lower": 0, "upper": 1, "per_unit": 10**6}
    with pytest.raises(InvalidArgument, match="epsilon is too small") as caught:
        kind.calibrate(epsilon=1e-9, **asked)
    enough = re.search(r"epsilon=([\d.e-]+)", caught.value.remedy)
    assert enough is not None
    assert kind.calibrate(epsilon=float(enough[1]), **asked)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_too_large_a_scale_is_refused_when_made(noise: str) -> None:
    with pytest.raises(InvalidArgument, match="scale is too large"):
        BoundedSum(lower=0, upper=1, scale=1e300, noise=noise)
    with pytest.raises(InvalidArgument, match="grid"):
        BoundedSum(lower=0, upper=1, scale=2**60, noise=noise, grid=Grid(-1))


def test_the_kinds_say_how_fine_a_grid_they_need() -> None:
    class Vague(Ranged):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Vague(lower=0, upper=1, scale=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("confidence", [0, 1, 2, -1, math.nan, "0.9"])
def test_a_bad_confidence_is_named(kind: type[Ranged], confidence: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^confidence must be"):
        kind.calibrate(epsilon=1, lower=0, upper=1).release([0.5], confidence=confidence)
