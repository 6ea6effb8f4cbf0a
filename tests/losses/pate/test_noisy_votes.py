"""GNMax, LNMax and confident voting cost no less than exact winners show, and no more than published."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace, norm

from dalenius.errors import InvalidArgument
from dalenius.losses import GaussianDP, Loss, Pure
from dalenius.losses.accountant import moments
from dalenius.losses.carried import Carried
from dalenius.losses.pate import GNMax, LNMax, confident_votes

LAWS = {"gnmax": norm, "lnmax": laplace}
KINDS = {"gnmax": GNMax, "lnmax": LNMax}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.6, 2.0])
def test_no_votes_tell_more_than_the_loss(kind, scale, winners, ballots, neighbours):
    # Every ballot of 5 teachers on 2 and 3 classes and every neighbour: the profile and the moments hold.
    laws = {votes: winners(votes, LAWS[kind], scale) for m in (2, 3) for votes in ballots(5, m)}
    loss, epsilons = KINDS[kind](scale), (0.0, 0.3, 1.0, 2.0)
    limits = [loss.delta(e).upper for e in epsilons]
    divergences = {a: loss.renyi(a).upper for a in (1.5, 4)}
    reached = dict.fromkeys(epsilons, 0.0)
    for votes, p in laws.items():
        for other in neighbours(votes):
            q = laws[other]
            for e, limit in zip(epsilons, limits, strict=True):
                found = np.maximum(p - math.exp(e) * q, 0).sum()
                assert found <= limit + 1e-6
                reached[e] = max(reached[e], found)
            for a, limit in divergences.items():
                assert math.log((p**a * q ** (1 - a)).sum()) / (a - 1) <= limit + 1e-6
    # And some ballot reaches what is said from below.
    for e, found in reached.items():
        assert found >= loss.delta(e).lower - 1e-6
    assert loss.delta(0.3).lower > 0.1


def test_gnmax_is_the_published_divergence_and_composes_exactly():
    # Papernot et al. 2018, Proposition 8: GNMax has D_λ = λ/σ².
    for order, scale in ((2, 40), (20.5, 100), (50, 40)):
        assert GNMax(scale).renyi(order).upper == pytest.approx(order / scale**2, rel=1e-12)
    many = GNMax(40) * 1000
    assert many.epsilon(1e-5).upper == pytest.approx(
        GaussianDP(math.sqrt(2000) / 40).epsilon(1e-5).upper, rel=1e-9
    )
    # One answer touches the profile at 0, with two classes one vote apart.
    assert GNMax(2).delta(0).lower == pytest.approx(GNMax(2).delta(0).upper, rel=1e-9)
    assert not many.tight and many.epsilon(1e-5).lower > 0


def test_lnmax_reproduces_the_published_data_independent_figure_and_undercuts_it():
    # Papernot et al. 2017: log-moments 2γ²l(l+1); γ = 0.1, 100 queries and δ = 1e-5 print as
    # 11.756462732485115, "data independent epsilon" of PySyft's implementation of their analysis.
    published = moments(lambda order: 2 * 0.1**2 * order * (order + 1), delta=1e-5, count=100)
    assert published.epsilon == pytest.approx(11.756462732485115, rel=1e-12)
    many = LNMax(10) * 100
    assert 0 < many.epsilon(1e-5).lower <= many.epsilon(1e-5).upper < (Pure(0.2) * 100).epsilon(1e-5).upper
    for order in (1, 3, 8):
        assert many.moment(float(order)) <= 100 * 2 * 0.1**2 * order * (order + 1)
    assert LNMax(10).epsilon(0).upper == pytest.approx(0.2, rel=1e-12)
    assert many.epsilon(1e-5).upper == pytest.approx(6.3816, abs=5e-5)


@pytest.mark.parametrize("loss", [GNMax(2), LNMax(2), LNMax(30)])
def test_concentrations_bound_every_order(loss):
    known = loss.concentration()[0]
    for order in (1.001, 1.5, 3, 10, 60):
        assert known >= Fraction(loss.renyi(order).upper) / Fraction(order) * (1 - Fraction(1, 10**9))


def test_where_one_unit_replaces_another_two_votes_move():
    for kind in KINDS.values():
        carried = (kind(40) * 100).under("replace")
        assert carried == kind(20, relation="replace") * 100
        assert carried.epsilon(1e-5).upper <= Carried(kind(40) * 100, "replace").epsilon(1e-5).upper
        assert kind(40, relation="replace").under("replace") == kind(40, relation="replace")


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_votes_tell_more_than_the_carried_loss(kind, winners, ballots, neighbours):
    laws = {votes: winners(votes, LAWS[kind], 1.0) for votes in ballots(4, 3)}
    limits = {e: KINDS[kind](1).under("replace").delta(e).upper for e in (0.0, 1.0, 2.0)}
    for votes, p in laws.items():
        for other in {two for one in neighbours(votes) for two in neighbours(one)}:
            for e, limit in limits.items():
                assert np.maximum(p - math.exp(e) * laws[other], 0).sum() <= limit + 1e-6


def test_confident_votes_are_tests_and_answers():
    # Papernot et al. 2018, their script for MNIST: 640 queries, σ₁ = 150, σ₂ = 40; here with 286 answers.
    loss = confident_votes(queries=640, answers=286, test_scale=150, scale=40)
    squared = 640 / 150**2 + 2 * 286 / 40**2
    assert loss.epsilon(1e-5).upper == pytest.approx(
        GaussianDP(math.sqrt(squared)).epsilon(1e-5).upper, rel=1e-9
    )
    assert loss.epsilon(1e-5).upper == pytest.approx(2.5426, abs=5e-5)
    # Their conversion of the same Rényi divergences, at the best order by halves, says more.
    orders = np.arange(2, 100, 0.5)
    theirs = (squared / 2 * orders + math.log(1e5) / (orders - 1)).min()
    assert theirs == pytest.approx(3.1753, abs=5e-5)
    with pytest.raises(InvalidArgument, match="answers"):
        confident_votes(queries=5, answers=6, test_scale=1, scale=1)
    with pytest.raises(InvalidArgument, match="test_scale"):
        confident_votes(queries=5, answers=1, test_scale=1e7, scale=1)


@given(
    kind=st.sampled_from([GNMax, LNMax]),
    scale=st.fractions(Fraction(1), Fraction(50), max_denominator=20),
    size=st.integers(2, 4),
    count=st.integers(1, 20),
)
@settings(max_examples=6)
def test_they_obey_the_algebra(kind, scale, size, count):
    one = kind(scale)
    assert Loss.from_json((one * count).to_json()) == one * count
    assert one.group(size) == kind(scale / size)
    assert (one * count).delta(0.5).upper <= (one * (count + 1)).delta(0.5).upper
    assert one.delta(0.5).upper <= kind(scale / 2).delta(0.5).upper
    other = Pure(0.1)
    assert (one + other).delta(0.5).upper == (other + one).delta(0.5).upper


def test_bad_scales_are_refused_by_name():
    for kind in (GNMax, LNMax):
        with pytest.raises(InvalidArgument, match="scale"):
            kind(0)
