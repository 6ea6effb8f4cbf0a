"""Coins and uniform integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius import noise
from dalenius.noise import coins, lazy

SIZE = 1_000_000


@pytest.mark.parametrize("chance", [Fraction(1, 3), 0.5, 0.001, "999/1000", Fraction(2**40 - 1, 2**41)])
def test_coins_of_rational_probability(chance, likely) -> None:
    heads = int(noise.bernoulli(chance, SIZE).sum())
    p = float(Fraction(chance) if not isinstance(chance, float) else chance)
    likely(np.array([heads, SIZE - heads]), np.array([p, 1 - p]))


@pytest.mark.parametrize("exponent", [Fraction(1, 7), 1, 5, 0.001])
def test_coins_of_an_exponential(exponent, likely) -> None:
    heads = int(noise.bernoulli_exp(exponent, SIZE).sum())
    p = math.exp(-float(exponent))
    likely(np.array([heads, SIZE - heads]), np.array([p, 1 - p]))


def test_certain_coins() -> None:
    assert noise.bernoulli(1, 1000).all() and noise.bernoulli_exp(0, 1000).all()
    assert not noise.bernoulli(0, 1000).any() and not noise.bernoulli_exp(10**400, 1000).any()


@given(st.fractions(0, 1))
def test_the_first_bits_decide_only_where_they_may(chance: Fraction) -> None:
    low, high = coins._bracket(lambda: lazy.ball(chance))
    assert low <= chance * 2**32 <= high
    assert high - low <= 2


def test_coins_by_balls_alone(monkeypatch: pytest.MonkeyPatch, likely) -> None:
    monkeypatch.setattr(coins, "_bracket", lambda chance: (0, 2**32))
    for draw, p in (
        (noise.bernoulli(Fraction(2, 7), 50_000), 2 / 7),
        (noise.bernoulli_exp(1, 50_000), math.exp(-1)),
    ):
        likely(np.array([draw.sum(), 50_000 - draw.sum()]), np.array([p, 1 - p]))


@pytest.mark.parametrize("below", [1, 2, 3, 7, 100, 1000])
def test_uniform_integers(below: int, likely) -> None:
    values = noise.uniform(below, SIZE)
    assert values.dtype == np.int64
    likely(np.bincount(values, minlength=below), np.full(below, 1 / below))


@pytest.mark.parametrize("below", [2**32 - 1, 3 * 2**61, 2**63 - 1, 2**63, 2**63 + 1, 3**100])
def test_large_uniform_integers(below: int, likely) -> None:
    """Thirds of the range: a remainder of 64-bit words would favour the first where below is 3·2^61."""
    values = noise.uniform(below, 60_000)
    assert all(0 <= int(k) < below for k in values[:1000])
    thirds = np.array([int(k) * 3 // below for k in values])
    likely(np.bincount(thirds, minlength=3), np.full(3, 1 / 3))
    assert values.dtype == (np.int64 if below <= 2**63 else object)
