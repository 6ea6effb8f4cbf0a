from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import flint
import numpy as np
import pytest
from contract import ALARM, chi_square, divergence
from scipy.integrate import quad

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import Approximate
from dalenius.mechanisms import rounded_laplace as sampler
from dalenius.mechanisms.mechanism import Law
from dalenius.mechanisms.scaled_laplace import dominating, profile
from dalenius.mechanisms.smooth_sensitivity import SmoothMedian, _failure
from dalenius.privacy.quantized import Grid


def whole(epsilon: float, delta: float, upper: int = 4096) -> SmoothMedian:
    return SmoothMedian.calibrate(epsilon=epsilon, delta=delta, lower=0, upper=upper, grid=Grid(0))


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.01), (2, 0.001), (1, 1e-6)])
def test_the_worst_case_attains_the_claim(epsilon: float, delta: float) -> None:
    mechanism = whole(epsilon, delta)
    first, second = mechanism.worst_case()
    assert np.count_nonzero(first != second) == 1
    laws = [mechanism.probabilities(values) for values in (first, second)]
    assert laws[0] is not None
    assert laws[1] is not None
    found = max(divergence(laws[0], laws[1], epsilon), divergence(laws[1], laws[0], epsilon))
    claim = mechanism.loss.delta(epsilon).upper
    assert 0.999 * delta < claim <= delta
    assert 0.9 * claim < found <= claim + 1e-12


@pytest.mark.parametrize(("epsilon", "scale", "ratio"), [(1, 2, 0.8), (1, 1.2, 0.9), (0.5, 5, 0.7)])
def test_the_theorem_against_an_integral(epsilon: float, scale: float, ratio: float) -> None:
    """∫ (p − e^ε p′)₊ of Laplace densities, over distances and scales up to the worst, both ways round."""
    claim = _failure(*(Fraction(str(number)) for number in (epsilon, scale, ratio)))
    assert claim is not None
    worst = 0.0
    for shift, part in product((0.0, 0.5, 1.0), (ratio, (1 + ratio) / 2, 1.0)):
        for wide, narrow in ((scale / part, scale), (scale, scale / part)):
            worst = max(worst, hockey(wide, narrow, shift, epsilon))
    assert worst == pytest.approx(float(claim), rel=1e-6)


@pytest.mark.parametrize(("scale", "ratio"), [(2, 0.8), (1.2, 0.9), (0.5, 0.5), (5, 0.99)])
def test_the_loss_against_integrals_at_every_epsilon(scale: float, ratio: float) -> None:
    """It is the greatest of the three pairs at the points it is made of, and no less between them."""
    exact = (Fraction(str(scale)), Fraction(str(ratio)))
    with flint.ctx.workprec(200):
        known = Fraction(float(profile(Fraction(1), *exact)) * (1 + 1e-9))
    loss = dominating(*exact, Fraction(1), known, "replace")
    for x in (0.0, 0.1, 0.4, 1.0, 1.7):
        pairs = ((scale, scale), (scale, scale / ratio), (scale / ratio, scale))
        for shift in (0.4, 1.0):
            worst = max(hockey(*pair, shift, x) for pair in pairs)
            assert worst <= loss.delta(x).upper + 1e-9
        assert float(profile(Fraction(x), *exact)) == pytest.approx(worst, abs=1e-8)
        assert loss.delta(x).upper <= 1.1 * worst + 1e-6
    assert dominating(*exact, Fraction(1000), known, "replace") == Approximate(
        1000, delta=known, relation="replace"
    )


def test_several_medians_cost_half_of_what_one_promise_implies() -> None:
    loss, promise = whole(1, 1e-6).loss, Approximate(1, delta=1e-6, relation="replace")
    assert (loss * 10).epsilon(1e-4).upper < 0.51 * (promise * 10).epsilon(1e-4).lower
    assert loss.epsilon(1e-6).upper <= 1


@pytest.mark.parametrize("epsilon", [0.1, 1, 30])
def test_promises_with_little_delta_are_kept(epsilon: float) -> None:
    found = SmoothMedian.calibrate(epsilon=epsilon, delta=1e-60, lower=0, upper=4, grid=Grid(0))
    assert found.loss.delta(epsilon).upper <= 1e-60


def hockey(first: float, second: float, shift: float, epsilon: float) -> float:
    def excess(x: float) -> float:
        p, q = (math.exp(-abs(x - at) / b) / (2 * b) for at, b in ((0.0, first), (shift, second)))
        return max(0.0, p - math.exp(epsilon) * q)

    ends = [-800.0, *np.linspace(-60, 60, 49).tolist(), 800.0]
    return math.fsum(quad(excess, a, b, epsabs=1e-12)[0] for a, b in pairwise(ends))


def local_sensitivity(values: tuple[int, ...], most: int) -> int:
    """How far replacing one value moves the median, by trying all."""
    middle = (len(values) + 1) // 2 - 1
    here = sorted(values)[middle]
    others = (
        sorted((*values[:i], new, *values[i + 1 :]))[middle]
        for i in range(len(values))
        for new in range(most + 1)
    )
    return max(abs(here - there) for there in others)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_sensitivity_is_smooth(n: int) -> None:
    """All data sets of n values from 0 to 4 and all their neighbours."""
    most = 4
    mechanism = SmoothMedian(epsilon=2, scale=1, ratio=Fraction(7, 10), lower=0, upper=most, grid=Grid(0))
    levels = {values: mechanism._median(np.array(values)) for values in product(range(most + 1), repeat=n)}
    for values, (median, scale) in levels.items():
        assert median == sorted(values)[(n + 1) // 2 - 1]
        assert scale >= local_sensitivity(values, most)
        for i, new in product(range(n), range(most + 1)):
            there = levels[*values[:i], new, *values[i + 1 :]][1]
            assert mechanism.ratio * scale <= there <= scale / mechanism.ratio


def test_no_neighbours_beat_the_claim() -> None:
    most = 6
    mechanism = whole(1, 0.05, upper=most)
    claims = {x: mechanism.loss.delta(x).upper for x in (0.0, 0.2, 0.5, 0.8, 1.0, 1.3)}
    laws = {}
    for values in product(range(most + 1), repeat=3):
        laws[values] = mechanism.probabilities(np.array(values))
    for values, first in laws.items():
        for new in range(most + 1):
            second = laws[new, *values[1:]]
            assert first is not None
            assert second is not None
            for x, claim in claims.items():
                assert divergence(first, second, x) <= claim


def test_far_from_any_jump_the_noise_is_small() -> None:
    mechanism = SmoothMedian.calibrate(epsilon=1, delta=1e-6, lower=0, upper=100)
    calm = np.linspace(40, 60, 5001)
    assert np.quantile(np.abs(mechanism.sample(calm, 1000) - 50), 0.9) < 0.5
    assert float(mechanism._median(np.array([0.0, 100.0]))[1] * mechanism.grid.step) >= 200


def test_the_step_between_levels_is_larger_than_in_the_paper() -> None:
    """Nissim, Raskhodnikova and Smith 2007: β = ε/(2 log(2/δ)) for Laplace noise of 2/ε."""
    for epsilon, delta in ((1, 1e-6), (0.5, 1e-9), (3, 1e-3)):
        found = -math.log(whole(epsilon, delta).ratio)
        assert found > 1.2 * epsilon / (2 * math.log(2 / delta))


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 3), Fraction(7, 2)])
def test_rounded_laplace_noise(scale: Fraction, size: int = 50_000) -> None:
    """False alarm 1e-7. P(k) is a difference of the continuous law's distribution function."""

    def below(x: float) -> float:
        return 0.5 * math.exp(x / float(scale)) if x < 0 else 1 - 0.5 * math.exp(-x / float(scale))

    steps = range(-400, 401)
    law = Law(tuple(steps), np.array([below(k + 0.5) - below(k - 0.5) for k in steps]), 1e-9)
    assert chi_square(sampler.rounded_laplace(scale, size), law) > ALARM


def test_odd_values_are_values_like_others() -> None:
    mechanism = SmoothMedian.calibrate(epsilon=1, delta=1e-6, lower=-1, upper=1)
    for values in ([np.nan, np.inf, -np.inf, 1e300], [], [0.5], [0.5] * 7):
        assert -1 <= mechanism.release(np.array(values, dtype=np.float64)).value <= 1
    with pytest.raises(InvalidArgument):
        mechanism.release([0.5])


@pytest.mark.parametrize("name", ["epsilon", "delta", "lower", "upper"])
@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf")])
def test_bad_parameters_are_refused_by_name(name: str, bad: float) -> None:
    good = {"epsilon": 1, "delta": 1e-6, "lower": 0, "upper": 1}
    if (name, bad) == ("lower", -1):
        bad = 2
    with pytest.raises(InvalidArgument, match=name):
        SmoothMedian.calibrate(**{**good, name: bad})


def test_what_the_theorem_does_not_cover_is_refused() -> None:
    with pytest.raises(NotSound):
        SmoothMedian(epsilon=1, scale=Fraction(1, 2), ratio=0.9, lower=0, upper=1, grid=Grid(-4))
    with pytest.raises(NotSound):
        SmoothMedian(epsilon=1, scale=1, ratio=0.1, lower=0, upper=1, grid=Grid(-4))
    with pytest.raises(InvalidArgument, match="levels"):
        SmoothMedian(epsilon=1, scale=2, ratio=0.999999, lower=0, upper=1, grid=Grid(-20))


@pytest.mark.parametrize(
    ("lower", "upper", "grid"), [(0, 2**20, Grid(-30)), (-(2**62), 2**62, Grid(0)), (0, 2**49, Grid(0))]
)
def test_noise_that_cannot_be_drawn_is_refused_by_the_bounds(lower: int, upper: int, grid: Grid) -> None:
    with pytest.raises(InvalidArgument, match="grid"):
        SmoothMedian.calibrate(epsilon=1, delta=1e-6, lower=lower, upper=upper, grid=grid)
    wide = SmoothMedian.calibrate(epsilon=1, delta=1e-6, lower=lower, upper=upper)
    assert lower <= wide.release(np.array([float(lower), float(upper)])).value <= upper


def test_where_the_scale_is_small_the_range_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="grid"):
        SmoothMedian(
            epsilon=10**6, scale=Fraction(1, 10**6), ratio=0.5, lower=-(2**62), upper=2**62, grid=Grid(0)
        )
    with pytest.raises(InvalidArgument, match="grid"):
        SmoothMedian(epsilon=1, scale=2, ratio=0.9, lower=0, upper=1, grid=-4)


def test_digits_are_drawn_until_they_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """With four digits at first nearly every draw needs more. False alarm 1e-7."""
    monkeypatch.setattr(sampler, "DIGITS", 4)
    monkeypatch.setattr(sampler, "HALF", 4)
    test_rounded_laplace_noise(Fraction(40, 3), 3000)


def test_noise_is_asked_for_without_the_private_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[object] = set()

    def recorded(draw: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
        def found(parameter: Any, size: int) -> Any:
            asked.add(parameter)
            return draw(parameter, size)

        return found

    for name in ("discrete_laplace", "bernoulli", "bernoulli_exp", "uniform"):
        monkeypatch.setattr(noise, name, recorded(getattr(noise, name)))
    mechanism = whole(1, 1e-6)
    for values in (np.arange(4096), np.zeros(9), np.array([0, 4096])):
        mechanism.sample(values, 50)
    assert asked <= {1, 2, sampler.HALF, *(Fraction(1, k) for k in range(1, 40))}
