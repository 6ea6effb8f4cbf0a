"""The laws of the samplers, against exact probabilities computed by other means."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.noise.draws import _scaled
from dalenius.noise.exponential import Laplace

QUICK, FULL = 300_000, 20_000_000
LAWS = [
    ("discrete_laplace", (Fraction(1, 5),)),
    ("discrete_laplace", (1,)),
    ("discrete_laplace", (Fraction(22, 7),)),
    ("discrete_laplace", (40,)),
    ("discrete_laplace", (1000,)),
    ("discrete_laplace", (10**6,)),
    ("discrete_laplace", (2**50,)),
    ("rounded_gaussian", (0.3,)),
    ("rounded_gaussian", (1,)),
    ("rounded_gaussian", (3.7306316348,)),
    ("rounded_gaussian", (50,)),
    ("rounded_gaussian", (70,)),
    ("rounded_gaussian", (1000,)),
    ("rounded_gaussian", (10**6,)),
    ("rounded_gaussian", (2**50,)),
    ("discrete_gaussian", (0.4,)),
    ("discrete_gaussian", (1,)),
    ("discrete_gaussian", (Fraction(22, 7),)),
    ("discrete_gaussian", (70,)),
    ("discrete_gaussian", (1000,)),
    ("discrete_gaussian", (10**6,)),
    ("geometric", (0.9,)),
    ("geometric", (0.3,)),
    ("geometric", (1e-3,)),
    ("skellam", (0.5,)),
    ("skellam", (50,)),
    ("binomial", (10, 0.3)),
    ("binomial", (2000, 0.01)),
]
SLOW_LAWS = [("skellam", (10**5,)), ("binomial", (10**5, 0.7))]
"""Decided by balls, where a bin is more than one integer: about a million draws a second."""


@pytest.mark.parametrize(("name", "parameters"), LAWS)
def test_draws_follow_the_law(name, parameters, follows, truth) -> None:
    follows(partial(getattr(noise, name), *parameters), QUICK, truth(name, *parameters))


@pytest.mark.parametrize(("name", "parameters"), SLOW_LAWS)
def test_laws_that_need_balls_are_followed(name, parameters, follows, truth) -> None:
    follows(partial(getattr(noise, name), *parameters), QUICK // 5, truth(name, *parameters))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), LAWS + SLOW_LAWS)
def test_twenty_million_draws_follow_the_law(name, parameters, follows, truth) -> None:
    follows(partial(getattr(noise, name), *parameters), FULL, truth(name, *parameters))


@pytest.mark.parametrize("name", ["discrete_laplace", "rounded_gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [300, 10**6, 2**40 + 1])
def test_low_order_bits_are_uniform(name: str, scale: int, likely: Callable[..., None]) -> None:
    """By Poisson summation no residue mod 64 is off by a share of more than 3e-5, here unseen."""
    values = getattr(noise, name)(scale if name != "discrete_laplace" else 10 * scale, QUICK)
    likely(np.bincount(values % 64, minlength=64), np.full(64, 1 / 64))


def test_known_probabilities_and_moments() -> None:
    """tanh(1/2), 2e/(e − 1)², and 1/Σe^{−k²/2}; six standard errors, 2e-9 each."""
    n = 4 * QUICK
    laplace, gauss = noise.discrete_laplace(1, n), noise.discrete_gaussian(1, n)
    assert abs((laplace == 0).mean() - 0.46211715726) < 6 * 0.5 / math.sqrt(n)
    assert abs((gauss == 0).mean() - 0.398942278267) < 6 * 0.49 / math.sqrt(n)
    assert abs(np.square(laplace).mean() - 1.84134718842) < 6 * 4.4 / math.sqrt(n)


def test_successive_draws_are_uncorrelated() -> None:
    """Neighbours, and draws that share a chunk or block of the machinery; six standard errors."""
    values = noise.discrete_gaussian(1000, 2 * QUICK) / 1000
    for lag in (1, 2, 3, 64, 4096, 1 << 15, 1 << 19):
        assert abs((values[:-lag] * values[lag:]).mean()) < 6 / math.sqrt(values.size - lag)


def test_single_draws_follow_the_law_too(follows, truth) -> None:
    def one_by_one(size: int) -> np.ndarray:
        return np.concatenate([noise.discrete_laplace(3, 1 + i % 7) for i in range(size)])

    follows(one_by_one, 100_000, truth("discrete_laplace", 3))


@pytest.mark.parametrize("name", ["discrete_laplace", "rounded_gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [Fraction(1, 10**400), "1/1000", 1e-5, Fraction(10**500 + 1, 10**500)])
def test_any_rational_scale_is_drawn_from(name: str, scale: object) -> None:
    values = getattr(noise, name)(scale, 10_000)
    assert abs(values).max() <= (0 if Fraction(scale) < Fraction(1, 100) else 40)


@pytest.mark.parametrize("name", ["discrete_laplace", "rounded_gaussian", "discrete_gaussian", "skellam"])
@pytest.mark.parametrize("size", [0, 1, 64, 65, 40_000])
def test_a_vector_of_the_size_asked_for(name: str, size: int) -> None:
    values = getattr(noise, name)(5, size)
    assert (values.dtype, values.shape) == (np.int64, (size,))


def test_a_float_is_the_decimal_it_prints() -> None:
    tenth = [_scaled(Laplace, s).law for s in (0.1, Decimal("0.1"), Fraction(1, 10), "0.1", np.float64(0.1))]
    assert set(tenth) == {Laplace(Fraction(1, 10))}
    assert _scaled(Laplace, Fraction(0.1)).law != tenth[0]


@pytest.mark.parametrize("name", ["discrete_laplace", "rounded_gaussian", "discrete_gaussian"])
@pytest.mark.parametrize(
    "scale", [0, -1, math.nan, math.inf, -math.inf, True, None, "x", [1], 2**50 + 1, Decimal("NaN"), 1j]
)
def test_a_bad_scale_is_refused_by_name(name: str, scale: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^scale must be"):
        getattr(noise, name)(scale, 3)


@pytest.mark.parametrize("size", [-1, 1.5, math.nan, None, "many", 10**11])
def test_a_bad_size_is_refused_by_name(size: object) -> None:
    for call in (partial(noise.discrete_laplace, 1), partial(noise.geometric, 1), partial(noise.uniform, 3)):
        with pytest.raises(InvalidArgument, match=r"^size must be"):
            call(size)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: noise.skellam(0, 1), "variance"),
        (lambda: noise.geometric(0, 1), "probability"),
        (lambda: noise.geometric(1.5, 1), "probability"),
        (lambda: noise.binomial(-1, 0.5, 1), "trials"),
        (lambda: noise.binomial(3, -0.5, 1), "probability"),
        (lambda: noise.bernoulli(2, 1), "probability"),
        (lambda: noise.bernoulli_exp(-1, 1), "exponent"),
        (lambda: noise.uniform(0, 1), "below"),
        (lambda: noise.uniform(2.5, 1), "below"),
    ],
)
def test_other_bad_parameters_are_refused_by_name(call: Callable[[], object], name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} must be"):
        call()


def test_laws_without_randomness() -> None:
    assert noise.geometric(1, 3).tolist() == [0, 0, 0]
    assert noise.binomial(0, 0.5, 2).tolist() == [0, 0]
    assert noise.binomial(7, 1, 2).tolist() == [7, 7]
    assert noise.binomial(7, 0, 2).tolist() == [0, 0]
