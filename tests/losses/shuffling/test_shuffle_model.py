from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses import disk
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.shuffling import LocalRandomizer, SameOthers, Shuffled, shuffle
from dalenius.profiles.shuffling.blocks import Crowd, blocks
from dalenius.profiles.shuffling.pair import ShuffledPair


def local(epsilon):
    return Pure(epsilon, relation="replace")


def response(randomize, categories):
    return RandomizedResponse(randomize, categories=categories, relation="replace")


@pytest.mark.parametrize(
    ("epsilon", "reporters", "delta", "known"), [(4, 10**5, 1e-6, 0.11815), (1, 10**6, 1e-8, 0.00501)]
)
def test_the_stronger_clones_give_what_they_are_known_to_give(epsilon, reporters, delta, known):
    # Feldman, McMillan and Talwar 2023, numerically: clones with probability 2/(e^ε + 1).
    bound = shuffle(local(epsilon), reporters).epsilon(delta)
    assert bound.upper == pytest.approx(known, abs=6e-6)
    assert 0.85 * known < bound.lower < bound.upper
    assert not bound.tight


def first_clones(epsilon, reporters, local_epsilon):
    """The pair of the first paper: N − 1 is binomial (n − 1, e^{−ε₀})."""
    r, grown = math.exp(local_epsilon), math.expm1(epsilon)
    crowd = Crowd(reporters, 1 / (r - 1), 0.0, (r + 1) / 2, 0.0, 0.0)
    slope = np.array([2 * grown / (grown + 2) / (r - 1)])
    return float(blocks(crowd, 10**6).mean(slope, below=False)[1][0]) * (r - 1) / (r + 1) * (grown + 2)


def test_the_first_clones_are_between_the_published_ends():
    # README of apple/ml-shuffling-amplification (Feldman, McMillan and Talwar 2021): shuffling 10^5 reports
    # of ε₀ = 4 at δ = 1e-6 gives ε between 0.1675385583317841 and 0.172790550755978.
    assert first_clones(0.1675385583317841, 10**5, 4) > 1e-6 > first_clones(0.172790550755978, 10**5, 4)


def test_the_published_closed_form_gives_far_more():
    # The same README: at most 0.5378040242374512 by the closed form.
    assert 4.5 < 0.5378040242374512 / shuffle(local(4), 10**5).epsilon(1e-6).upper < 4.6


@pytest.mark.parametrize(
    ("loss", "variation"),
    [
        (LocalRandomizer.laplace(0.5), 1 - math.exp(-1)),
        (LocalRandomizer.hashing(2, buckets=8), math.expm1(2) / (math.exp(2) + 7)),
        (response(Fraction(1, 2), 16), 0.5),
    ],
)
def test_reports_are_as_far_apart_as_published(loss, variation):
    # Parameters of wangsw/PrivacyAmplification (Wang et al.): Laplace noise, local hashing, k-ary response.
    assert loss.advantage().upper == pytest.approx(variation, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "reporters"), [(1, 10**4), (4, 10**6), (8, 10**6), (1, 10**8)])
def test_a_large_crowd_lies_about_the_sum_over_all_clones(epsilon, reporters):
    from scipy.stats import binom

    r, chance = math.exp(epsilon), 2 / (math.exp(epsilon) + 1)
    mean, deviation = (reporters - 1) * chance, math.sqrt(reporters * chance)
    counts = np.arange(max(1, int(mean - 8 * deviation)), int(mean + 8 * deviation) + 2, dtype=float)
    above = ShuffledPair(reporters, "free", Fraction(0), Fraction(epsilon))
    at = np.array([4 * above.deviation])
    grown = float(np.exp(at[0]))
    least = np.floor((r * grown - 1) / ((r - 1) * (1 + grown)) * counts) + 1
    ahead, behind = (binom.sf(least - step, counts - 1, 0.5) for step in (2, 1))
    gains = ((r - grown) * ahead - (r * grown - 1) * behind) / (r + 1)
    truth = float(np.sum(binom.pmf(counts - 1, reporters - 1, chance) * gains))
    low, high = replace(above, below=True).hockey(at)[0][0], above.hockey(at)[1][0]
    assert low * (1 - 1e-6) <= truth <= high * (1 + 1e-6)
    assert high <= low * 1.003


@pytest.mark.parametrize(
    "loss",
    [local(1), response(Fraction(2, 5), 10), LocalRandomizer.laplace(1), Laplace(0.5, relation="replace")],
)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2])
def test_coarse_tables_bound_what_fine_ones_say(loss, share):
    above = shuffle(loss, 900).directions()[0][0][0]
    below, epsilon = replace(above, below=True), np.array([share])
    fine = (below._direct(epsilon, 10**7)[0][0], above._direct(epsilon, 10**7)[1][0])
    assert fine[0] <= fine[1]
    for entries in (10, 1_000, 30_000):
        assert above._direct(epsilon, entries)[1][0] >= fine[0]
        assert below._direct(epsilon, entries)[0][0] <= fine[1]


@given(st.lists(st.floats(-3, 3), min_size=17, max_size=40))
@settings(max_examples=20)
def test_knots_enclose_what_is_evaluated_by_itself(epsilons):
    pair = shuffle(local(2), 300).directions()[0][0][0]
    low, high = pair.hockey(np.array(epsilons))
    alone = [pair.hockey(np.array([e])) for e in epsilons]
    for i, (lower, upper) in enumerate(alone):
        assert low[i] <= upper[0] and lower[0] <= high[i]


def test_small_crowds_are_enclosed_with_their_moments(ball, outcomes, encloses):
    # n = 3: all histograms (first, second, of no use) of the pair itself.
    r, n = ball(1).exp(), 3
    p = 1 / (r + 1)
    rows = []
    for a in range(n + 1):
        for b in range(n + 1 - a):
            if a + b:
                rest = n - a - b
                ways = math.factorial(n) // (math.factorial(a) * math.factorial(b) * math.factorial(rest))
                mass = ball(Fraction(ways, n)) * p ** (a + b) * (1 - 2 * p) ** rest
                rows.append((mass * (r * a + b), mass * (a + r * b)))
    pair = shuffle(local(1), n).directions()[0][0][0]
    encloses(pair, outcomes(rows), orders=(), width=1e-9, epsilons=(-3.0, -0.4, 0.0, 0.1, 0.5, 0.9))
    encloses(pair, outcomes(rows), epsilons=(), orders=(0.5, 2.0, 20.0), width=0.05)


@settings(max_examples=20)
@given(st.integers(2, 400), st.integers(1, 400), st.floats(0.05, 5), st.floats(0, 0.9))
def test_more_reporters_never_cost_more(reporters, more, epsilon, share):
    few, many = (
        shuffle(local(epsilon), n).delta(share * epsilon).upper for n in (reporters, reporters + more)
    )
    assert many <= few * (1 + 1e-3) + 1e-12


@settings(max_examples=20)
@given(st.integers(2, 400), st.floats(0.05, 4), st.floats(0.001, 2), st.floats(0, 0.9))
def test_a_larger_local_loss_never_costs_less(reporters, epsilon, more, share):
    least, most = (
        shuffle(local(e), reporters).delta(share * epsilon).upper for e in (epsilon, epsilon + more)
    )
    assert least <= most * (1 + 1e-3) + 1e-12


@settings(max_examples=15)
@given(st.integers(2, 300), st.floats(0.5, 3), st.floats(0.01, 0.9), st.floats(0.01, 0.99), st.floats(0, 0.9))
def test_a_larger_blanket_never_costs_more(reporters, epsilon, blanket, more, share):
    wider = blanket + (0.99 - blanket) * more
    plain, common, wide = (
        shuffle(loss, reporters).delta(share * epsilon).upper
        for loss in (
            local(epsilon),
            LocalRandomizer(epsilon, blanket=blanket),
            LocalRandomizer(epsilon, blanket=wider),
        )
    )
    # Tables of cells are coarser in far tails, where they are the larger by a share of next to nothing.
    assert wide <= common * (1 + 1e-3) + 1e-12 and common <= plain * (1 + 1e-3) + 1e-12


def test_a_report_among_others_costs_no_more_than_by_itself():
    for loss in (local(1), response(Fraction(1, 2), 5), LocalRandomizer.laplace(1)):
        assert shuffle(loss, 1) == loss
        assert shuffle(loss, 2).delta(0.3).upper < loss.delta(0.3).upper
    assert shuffle(local(0), 10**6) == local(0)
    assert shuffle(local(100), 10**6) == local(100)
    assert shuffle(local(1), 50).epsilon(0).upper == 1


def test_collections_add_up_and_commute():
    few, many = shuffle(local(1), 10**4), shuffle(response(Fraction(1, 2), 8), 10**5)
    once, twice = few.epsilon(1e-6).upper, (few * 2).epsilon(1e-6)
    assert once < twice.upper < 2 * once
    assert 0.8 * twice.upper < twice.lower
    assert few + many == many + few
    assert (few + many).epsilon(1e-6).upper == (many + few).epsilon(1e-6).upper >= once


def test_a_group_costs_more_than_one_person():
    one = shuffle(local(1), 10**4)
    assert one.epsilon(1e-6).upper < one.group(2).epsilon(1e-6).upper < 4 * one.epsilon(1e-6).upper


@pytest.mark.parametrize(
    "loss",
    [
        LocalRandomizer(2, blanket=0.5),
        shuffle(local(1), 1000),
        shuffle(response(0.5, 7), 1000),
        shuffle(Laplace(1, relation="replace"), 500),
        SameOthers(local(1), 3, 1000),
    ],
)
def test_the_round_trip_evaluates_the_same(loss):
    again = Loss.from_json(loss.to_json())
    assert again == loss and again.relation == "replace"
    assert disk.from_dict(disk.to_dict(loss)) == loss
    assert again.epsilon(1e-5) == loss.epsilon(1e-5)


def test_one_report_with_a_blanket_is_enclosed(ball, outcomes, encloses):
    r, blanket = ball(2).exp(), Fraction(1, 2)
    p = (1 - ball(blanket)) / (r - 1)
    rest = 1 - (r + 1) * p
    encloses(
        LocalRandomizer(2, blanket=blanket).directions()[0][0][0],
        outcomes([(r * p, p), (p, r * p), (rest, rest)]),
    )
    assert LocalRandomizer(2, blanket=0.1).epsilon(1e-3) == local(2).epsilon(1e-3)


@pytest.mark.parametrize("relation", ["add_remove", "zero_out"])
def test_a_loss_for_another_relation_is_refused(relation):
    with pytest.raises(RelationMismatch, match="replace"):
        shuffle(Pure(1, relation=relation), 100)


@pytest.mark.parametrize(
    "loss", [Approximate(1, delta=1e-9, relation="replace"), Gaussian(1, relation="replace")]
)
def test_reports_of_unbounded_loss_are_refused(loss):
    with pytest.raises(NotSound, match="finite epsilon"):
        shuffle(loss, 100)


def test_bad_arguments_are_refused_by_name():
    with pytest.raises(InvalidArgument, match="reporters"):
        shuffle(local(1), 0)
    with pytest.raises(InvalidArgument, match="loss"):
        shuffle(1.0, 10)
    with pytest.raises(NotSound, match="shuffled"):
        shuffle(shuffle(local(1), 10), 10)
    with pytest.raises(InvalidArgument, match="blanket"):
        LocalRandomizer(1, blanket=1)
    with pytest.raises(InvalidArgument, match="buckets"):
        LocalRandomizer.hashing(1, buckets=1)
    with pytest.raises(InvalidArgument, match="local epsilon"):
        Shuffled(local(100), 10)
    with pytest.raises(InvalidArgument, match="categories"):
        SameOthers(local(1), 2, 10)


@pytest.mark.parametrize(
    "loss",
    [
        shuffle(Pure(1, relation="replace"), 100) * 2,
        shuffle(Pure(1, relation="replace"), 100) + Pure(Fraction(1, 10**6), relation="replace"),
        shuffle(Pure(1, relation="replace"), 100).group(2),
        Pure(1, relation="replace").without_replacement(10, 100),
    ],
    ids=["twice", "with a report", "a group", "a sample"],
)
def test_what_holds_among_others_is_no_report(loss):
    """1,000 collections of 100 can be told apart by what others hold: they are not shuffled again."""
    with pytest.raises(NotSound, match="single person's report"):
        shuffle(loss, 1000)


@pytest.mark.parametrize(
    "loss",
    [
        LocalRandomizer(28, blanket=0.5),
        LocalRandomizer(10, blanket=1 - Fraction(1, 10**8)),
        LocalRandomizer.laplace(Fraction(1, 58)),
    ],
    ids=str,
)
def test_wide_blankets_have_an_answer(loss):
    answer = shuffle(loss, 100).epsilon(1e-6)
    assert 0 <= answer.lower <= answer.upper <= loss.epsilon(1e-6).upper * (1 + 1e-9) + 1e-9


def test_a_blanket_of_nearly_everything_is_refused():
    with pytest.raises(InvalidArgument, match="blanket must be at most"):
        LocalRandomizer(1, blanket=1 - Fraction(1, 10**20))
