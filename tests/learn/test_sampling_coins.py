"""Coins, gaps and choices are exact: by all words where they are few, else by tests that fail at 1e-7."""

from __future__ import annotations

import os
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from dalenius.learn.sampling import coins
from dalenius.learn.sampling.choices import below, subset
from dalenius.noise.bits import Bits
from dalenius.noise.source import Source

RATES = [Fraction(1, 3), Fraction(1, 2), Fraction(65535, 65537), Fraction(1, 10**7), Fraction(2, 3 * 2**16)]


class Script(Bits):
    """A stream of words that are known beforehand."""

    tainted = True

    def __init__(self, *parts: list[int]) -> None:
        self.parts = list(parts)

    def fill(self, words: NDArray[Any]) -> None:
        words[:] = np.array(self.parts.pop(0), words.dtype).reshape(words.shape)


@pytest.mark.parametrize("rate", RATES)
def test_all_words_together_give_the_rate_exactly(rate: Fraction) -> None:
    """Of all 2¹⁶ first words one is undecided, and of all second ones behind it one again."""
    everything, digits = list(range(1 << 16)), partial(coins._rational_digit, rate)
    first = coins.coins(digits, 1 << 16, Script(everything, [0xFFFF], [0xFFFF]))
    second = coins.coins(digits, 1 << 16, Script([digits(0)] * (1 << 16), everything, [0xFFFF], [0xFFFF]))
    assert first.sum() == int(rate * 2**16)
    assert int(rate * 2**16) * 2**16 + second.sum() == int(rate * 2**32)


def test_a_word_that_equals_the_rate_asks_for_the_next() -> None:
    third = partial(coins._rational_digit, Fraction(1, 3))
    assert third(0) == third(7) == 0x5555
    script = Script([0x5555, 0x5554, 0x5555], [0x5555, 0x5556], [0x5554])
    assert coins.coins(third, 3, script).tolist() == [True, True, False]


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2, 5), Fraction(2, 1025), Fraction(1, 1024)])
def test_the_digits_of_a_gap_have_its_law(rate: Fraction) -> None:
    """P(G = g) = (1 − r^8)·∏ = q·r^g for all g below 8, the product over the digits of g, to 60 bits."""
    ones = [_read(partial(coins._gap_digit, rate, place)) for place in range(3)]
    below_8 = 1 - _read(partial(coins._past_digit, rate, 3))
    for gap in range(8):
        chance = below_8
        for place, one in enumerate(ones):
            chance *= one if gap >> place & 1 else 1 - one
        assert abs(chance - rate * (1 - rate) ** gap) < Fraction(1, 2**60)


def _read(digits: coins.Digits) -> Fraction:
    return sum((Fraction(digits(level), 2 ** (16 * level + 16)) for level in range(4)), Fraction(0))


@pytest.mark.parametrize(("rate", "count"), [(Fraction(1, 97), 1 << 17), (Fraction(3, 10**5), 10**7)])
def test_gaps_and_coins_agree_with_the_binomial_law(rate: Fraction, count: int) -> None:
    """The number of heads; in each quarter; and gaps, by χ² over their quarters. False alarm 2e-7 each."""
    found = coins.heads(rate, count, Source(os.urandom(16)))
    assert (np.diff(found) > 0).all() and found[0] >= 0 and found[-1] < count
    quarters = np.bincount(found * 4 // count, minlength=4)
    for heads, units in [(found.size, count), *((each, count // 4) for each in quarters.tolist())]:
        assert binom.ppf(2e-8, units, float(rate)) <= heads <= binom.isf(2e-8, units, float(rate))
    gaps = np.diff(found) - 1
    failure = 1 - float(rate)
    cuts = np.floor(np.log([0.75, 0.5, 0.25]) / np.log(failure)).astype(int)
    ends = np.concatenate([[1.0], failure ** cuts.astype(float), [0.0]])
    seen = np.bincount(np.searchsorted(cuts, gaps, side="right"), minlength=4)
    expected = -np.diff(ends) * gaps.size
    assert chi2.sf(((seen - expected) ** 2 / expected).sum(), 3) > 1e-7


@pytest.mark.parametrize(("rate", "count"), [(Fraction(1, 3), 4), (Fraction(1, 8), 3), (Fraction(2, 5), 5)])
def test_gaps_give_every_set_of_units_its_chance(rate: Fraction, count: int) -> None:
    """χ² over all sets, where digits and ends matter; false alarm 1e-6: few are expected in some sets."""
    source, tries = Source(os.urandom(16)), 4000
    seen = np.zeros(1 << count)
    for _ in range(tries):
        seen[(1 << coins._by_gaps(rate, count, source)).sum()] += 1
    sizes = np.array([k.bit_count() for k in range(1 << count)])
    expected = tries * float(rate) ** sizes * (1 - float(rate)) ** (count - sizes)
    assert chi2.sf(((seen - expected) ** 2 / expected).sum(), seen.size - 1) > 1e-9


@given(st.fractions(Fraction(1, 10**6), 1), st.integers(0, 40_000), st.binary(min_size=8, max_size=8))
def test_heads_are_different_units_in_order(rate: Fraction, count: int, seed: bytes) -> None:
    found = coins.heads(rate, count, Source(seed))
    assert found.dtype == np.int64 and found.ndim == 1
    assert (np.diff(found) > 0).all() and ((found >= 0) & (found < count)).all()
    assert rate < 1 or found.size == count
    assert np.array_equal(found, coins.heads(rate, count, Source(seed)))


def test_integers_below_limits_are_uniform() -> None:
    """χ² for limits side by side; false alarm 3e-7."""
    limits = np.tile([1, 3, 10], 20_000)
    drawn = below(limits, Source(os.urandom(16))).reshape(-1, 3)
    for k, limit in enumerate((1, 3, 10)):
        seen = np.bincount(drawn[:, k], minlength=limit)
        assert seen.size == limit
        expected = len(drawn) / limit
        assert limit == 1 or chi2.sf(((seen - expected) ** 2 / expected).sum(), limit - 1) > 1e-7


def test_a_remainder_without_bias_draws_again() -> None:
    """The largest words lie past the last multiple of three."""
    past = (1 << 64) - 1
    assert below(np.array([3]), Script([past], [10])).tolist() == [5 % 3]


@pytest.mark.parametrize(("count", "size"), [(5, 2), (5, 3), (6, 3)])
def test_every_subset_is_equally_likely(count: int, size: int) -> None:
    """χ² over all of them; false alarm 1e-7."""
    source, tries = Source(os.urandom(16)), 4000
    seen = dict.fromkeys(combinations(range(count), size), 0)
    for _ in range(tries):
        seen[tuple(subset(count, size, source).tolist())] += 1
    expected = tries / len(seen)
    assert chi2.sf(sum((n - expected) ** 2 for n in seen.values()) / expected, len(seen) - 1) > 1e-7


@given(st.integers(0, 200), st.data())
def test_subsets_have_their_size(count: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, count))
    found = subset(count, size, Source(b"a test"))
    assert found.size == size and (np.diff(found) > 0).all()
