"""Every pair of neighbours and every answer of the others: the laws of shuffled histograms by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.losses.pure import Pure
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.raw import DiscretePair
from dalenius.losses.shuffling import LocalRandomizer, shuffle

SHARES = (0.0, 0.03, 0.2, 0.5, 0.8, 0.97)
"""Where a profile is looked at, in shares of the local ε."""
ROUND = 1e-12
"""More than floats lose in the enumeration."""


def histogram(rows):
    """The law of the unordered collection of one report from each of these laws."""
    law = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        following = {}
        for counts, chance in law.items():
            for report, share in enumerate(row):
                seen = tuple(c + (i == report) for i, c in enumerate(counts))
                following[seen] = following.get(seen, 0.0) + chance * share
        law = following
    return law


def worst(channel, reporters, epsilon):
    """The largest hockey-stick divergence of any neighbours, one of `reporters` people being in doubt."""
    grown, most = math.exp(epsilon), 0.0
    for others in combinations_with_replacement(channel, reporters - 1):
        laws = {i: histogram([channel[i], *others]) for i in range(len(channel))}
        for i, j in permutations(laws, 2):
            most = max(most, sum(max(p - grown * laws[j].get(h, 0.0), 0.0) for h, p in laws[i].items()))
    return most


@st.composite
def channels(draw, most=3):
    """Any laws of reports, one for each value: extreme ones, and ones between."""
    n, k = draw(st.integers(2, most)), draw(st.integers(2, 3))
    rows = draw(
        st.lists(st.lists(st.sampled_from([1, 2, 3, 9, 20]), min_size=k, max_size=k), min_size=n, max_size=n)
    )
    return [[Fraction(x, sum(row)) for x in row] for row in rows]


def largest_ratio(channel):
    return max(max(column) / min(column) for column in zip(*channel, strict=True))


def check(loss, channel, reporters, local):
    rows = [[float(x) for x in row] for row in channel]
    for share in SHARES:
        epsilon = share * local
        assert worst(rows, reporters, epsilon) <= loss.delta(epsilon).upper + ROUND


@settings(max_examples=25)
@given(channels(), st.integers(2, 4))
def test_no_randomizer_is_worse_than_its_epsilon_says(channel, reporters):
    local = math.log(largest_ratio(channel)) * (1 + 1e-12)
    if local > 0.01:
        check(shuffle(Pure(local, relation="replace"), reporters), channel, reporters, local)


@settings(max_examples=25)
@given(channels(), st.integers(2, 4))
def test_no_randomizer_is_worse_than_its_blanket_says(channel, reporters):
    local = math.log(largest_ratio(channel)) * (1 + 1e-12)
    blanket = sum(min(column) for column in zip(*channel, strict=True))
    if local > 0.01:
        check(shuffle(LocalRandomizer(local, blanket=blanket), reporters), channel, reporters, local)


@settings(max_examples=25)
@given(channels(most=2), st.integers(2, 4))
def test_no_randomizer_is_worse_than_its_variation_says(channel, reporters):
    local = math.log(largest_ratio(channel))
    if local > 0.01:
        check(shuffle(DiscretePair(*channel, relation="replace"), reporters), channel, reporters, local)


@pytest.mark.parametrize(("categories", "reporters"), [(2, 6), (3, 5), (4, 3), (5, 2)])
@pytest.mark.parametrize("randomize", [Fraction(1, 5), Fraction(3, 5)])
def test_randomized_response_lies_between_the_bounds(categories, reporters, randomize):
    other = float(randomize) / categories
    channel = np.full((categories, categories), other) + (1 - float(randomize)) * np.eye(categories)
    loss = shuffle(RandomizedResponse(randomize, categories=categories, relation="replace"), reporters)
    local = math.log(1 + (1 - float(randomize)) / other)
    for share in SHARES:
        bound, truth = loss.delta(share * local), worst(channel.tolist(), reporters, share * local)
        assert bound.lower - ROUND <= truth <= bound.upper + ROUND
        assert categories == 2 or share > 0.5 or bound.lower > 0.4 * truth


def test_counting_two_categories_alone_would_claim_too_much():
    # Stronger clones as first published, and the variation-ratio reduction, take the counts of the two
    # categories in doubt for all that is seen; where the others hold one of these two, more is.
    loss = shuffle(RandomizedResponse(0.4, categories=4, relation="replace"), 3)
    channel, epsilon = (np.full((4, 4), 0.1) + 0.6 * np.eye(4)).tolist(), 1.6
    truth = worst(channel, 3, epsilon)
    assert loss.attained().delta(epsilon).upper < 0.6 * truth < truth <= loss.delta(epsilon).upper


def test_local_hashing_is_no_worse_than_its_response():
    # Three hashes of three values to two buckets; a report names its hash, then a bucket by response.
    hashes, stay = [(0, 0, 1), (0, 1, 0), (1, 0, 0)], math.e / (math.e + 1)
    rows = [[(stay if h[x] == b else 1 - stay) / 3 for h in hashes for b in (0, 1)] for x in range(3)]
    loss = shuffle(LocalRandomizer.hashing(1, buckets=2), 3)
    for share in SHARES:
        assert worst(rows, 3, share) <= loss.delta(share).upper + ROUND


def test_rounded_laplace_noise_is_no_worse_than_its_blanket_says():
    # Laplace noise of scale 1 on 0, ½ or 1, seen in four intervals only.
    edges = np.array([-np.inf, 0.0, 0.5, 1.0, np.inf])

    def below(y):
        return np.where(y < 0, 0.5 * np.exp(np.minimum(y, 0)), 1 - 0.5 * np.exp(-np.maximum(y, 0)))

    rows = [np.diff(below(edges - x)).tolist() for x in (0.0, 0.5, 1.0)]
    loss = shuffle(LocalRandomizer.laplace(1), 4)
    for share in SHARES:
        assert worst(rows, 4, share) <= loss.delta(share).upper + ROUND


def test_a_simulated_collection_keeps_the_guarantee():
    # Likelihood ratios of 3-ary response, n = 50, all others of the third value, known exactly; the mean of
    # (1 − e^ε/ratio)₊ over 200 000 draws is within 6 standard errors (false alarm below 1e-8) of the bounds.
    n, draws, epsilon, rng = 50, 200_000, 0.3, np.random.default_rng(20211)
    loss = shuffle(RandomizedResponse(0.5, categories=3, relation="replace"), n)
    p, true = 1 / 6, 4 / 6
    counts = rng.multinomial(n - 1, [p, p, true], size=draws)
    counts += rng.multinomial(1, [true, p, p], size=draws)
    first, second = (counts @ np.array([a / p, b / p, p / true]) for a, b in ((true, p), (p, true)))
    gains = np.maximum(1 - math.exp(epsilon) * second / first, 0.0)
    error, bound = 6 * gains.std() / math.sqrt(draws), loss.delta(epsilon)
    assert bound.lower - error <= gains.mean() <= bound.upper + error
    assert abs(gains.mean() - loss.attained().delta(epsilon).upper) <= error
