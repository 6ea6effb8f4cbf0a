"""The slow samplers follow the laws by themselves, and the fast ones agree with them."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.noise import reference

LAWS = [
    ("discrete_laplace", 1),
    ("discrete_laplace", Fraction(22, 7)),
    ("discrete_laplace", 1000),
    ("discrete_gaussian", 1),
    ("discrete_gaussian", Fraction(7, 3)),
    ("discrete_gaussian", 1000),
    ("rounded_gaussian", Fraction(1, 2)),
    ("rounded_gaussian", 1),
    ("rounded_gaussian", Fraction(22, 7)),
    ("rounded_gaussian", 1000),
]


@pytest.mark.parametrize(("name", "scale"), LAWS)
def test_slow_and_fast_draws_have_one_law(name, scale, same) -> None:
    same(getattr(reference, name)(scale, 8_000), getattr(noise, name)(scale, 400_000))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scale"), LAWS)
def test_many_slow_and_fast_draws_have_one_law(name, scale, same) -> None:
    same(getattr(reference, name)(scale, 200_000), getattr(noise, name)(scale, 4_000_000))


@pytest.mark.parametrize(("name", "scale"), LAWS)
def test_slow_draws_follow_the_law(name, scale, follows, truth) -> None:
    follows(partial(getattr(reference, name), scale), 8_000, truth(name, scale))


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian", "rounded_gaussian"])
def test_a_bad_scale_is_refused_here_too(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^scale must be"):
        getattr(reference, name)(0, 1)
