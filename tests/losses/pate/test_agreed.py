"""Behind a test of consensus too, the figure bounds exact divergences of what the sampler really does."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import norm

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.pate import ConfidentVotes, Sanitizer, confident_votes
from dalenius.losses.pate import votes as module
from dalenius.losses.pate.agreed import _able, _most, _smooth, figures_of
from dalenius.losses.pate.dependent import UNITS, table
from dalenius.losses.pate.votes import FINE
from dalenius.noise.sampler import Sampler

GIVEN = {"teachers": 100, "threshold": 60, "test_scale": 20, "scale": 8, "answers": 25}
COUNTS = [[100, 0, 0], [88, 6, 6], [50, 45, 5]] * 20


def winner(votes, scale):
    """Rounded noise on whole votes, summed up: one class at m, others below or level, who share."""
    m = np.arange(min(votes) - math.ceil(12 * scale), max(votes) + math.ceil(12 * scale))
    under = np.array([norm.cdf((m - v - 0.5) / scale) for v in votes])
    level = np.array([norm.cdf((m - v + 0.5) / scale) for v in votes]) - under
    law = np.zeros(len(votes))
    for i in range(len(votes)):
        others = [j for j in range(len(votes)) if j != i]
        for ties in itertools.product((0, 1), repeat=len(others)):
            parts = [level[j] if tied else under[j] for j, tied in zip(others, ties, strict=True)]
            law[i] += (level[i] * np.prod(parts, axis=0)).sum() / (1 + sum(ties))
    return law


def answer(votes, threshold, test_scale, scale):
    """No answer, or a class."""
    passed = norm.sf((threshold - 0.5 - max(votes)) / test_scale)
    return np.append(1 - passed, passed * winner(votes, scale))


def divergence(p, q, order):
    return math.log((p**order * q ** (1 - order)).sum()) / (order - 1)


@pytest.mark.parametrize(
    ("teachers", "classes", "threshold", "test_scale", "scale"), [(6, 3, 4, 1.5, 0.5), (10, 2, 6, 3, 1.2)]
)
def test_no_neighbour_is_further_than_the_figure(
    teachers, classes, threshold, test_scale, scale, ballots, neighbours
):
    # Every ballot and every neighbour, both ways; at some the figure is below what holds for all votes.
    exact = Fraction(test_scale), Fraction(scale)
    laws = {votes: answer(votes, threshold, test_scale, scale) for votes in ballots(teachers, classes)}
    below, near = 0, 0.0
    for order in (1.2, 2.0, 3.0):
        most = float(sum(_most(*exact, Fraction(order))))
        figures = figures_of(teachers, classes, threshold, *exact, Fraction(order)) * (most / UNITS)
        for votes, p in laws.items():
            second, first = sorted(votes)[-2:]
            figure = figures[first, second]
            below += figure < most * 0.9
            for other in neighbours(votes):
                for a, b in ((p, laws[other]), (laws[other], p)):
                    found = divergence(a, b, order)
                    assert found <= figure + 1e-9
                    near = max(near, found / figure)
    assert below > 0 and near > 0.5


@pytest.mark.parametrize(("teachers", "classes", "scale"), [(6, 3, 0.5), (12, 2, 1.5)])
def test_leads_one_vote_short_cover_rounded_noise(teachers, classes, scale, ballots, neighbours):
    laws = {votes: winner(votes, scale) for votes in ballots(teachers, classes)}
    for order in (1.2, 2.0, 3.0):
        figures = table(teachers, classes, Fraction(scale), Fraction(order)) * (order / scale**2 / UNITS)
        for votes, p in laws.items():
            second, first = sorted(votes)[-2:]
            figure = figures[max(first - second - 1, 0)]
            for other in neighbours(votes):
                for a, b in ((p, laws[other]), (laws[other], p)):
                    assert divergence(a, b, order) <= figure + 1e-9


@pytest.mark.parametrize("ratio", [Fraction(3, 5), Fraction(99, 100)])
def test_smooth_sensitivities_bound_every_change_and_change_slowly(ratio, ballots, neighbours):
    figures = figures_of(5, 3, 4, Fraction(3, 2), Fraction(1, 2), Fraction(3, 2))
    found = {}
    for pair in itertools.product(list(ballots(5, 3)), repeat=2):
        pairs = np.zeros((6, 6), np.int64)
        for votes in pair:
            second, first = sorted(votes)[-2:]
            pairs[first, second] += 1
        found[pair] = (int((pairs * figures).sum()), Fraction(_smooth(figures, pairs, ratio), FINE))
    apart = 0.0
    for (one, two), (value, smooth) in found.items():
        for other in itertools.product([one, *neighbours(one)], [two, *neighbours(two)]):
            near, near_smooth = found[other]
            assert abs(value - near) <= min(smooth, near_smooth)
            assert smooth <= near_smooth / ratio
            apart = max(apart, abs(value - near) / float(smooth))
    assert apart > 0.3


def test_figures_stay_within_what_holds_for_all_votes_and_fall_where_teachers_agree():
    figures = figures_of(250, 10, 200, Fraction(150), Fraction(40), Fraction(14))
    able = _able(250)
    assert (figures[able] > 0).all() and (figures <= UNITS).all() and not figures[~able].any()
    assert figures[250, 0] < UNITS / 8 and figures[100, 100] > UNITS / 4
    # So far below the threshold nothing is answered, and hardly anything is told; far orders stay finite.
    far = figures_of(20, 2, 60, Fraction(2), Fraction(4), Fraction(4))
    assert (far[_able(20)] < UNITS / 1000).all()
    assert (figures_of(20, 2, 60, Fraction(2), Fraction(1), Fraction(4000))[_able(20)] > UNITS / 2).all()


def test_the_loss_is_that_of_all_votes():
    votes = ConfidentVotes(COUNTS, **GIVEN)
    assert votes.loss == confident_votes(queries=60, answers=25, test_scale=20, scale=8)


def test_the_release_is_an_upper_bound_as_often_as_it_says(monkeypatch):
    # 80 releases at 90 %: fewer than 45 above the figure has a probability below 1e-10.
    monkeypatch.setattr(module, "Sampler", lru_cache(Sampler))
    by = Sanitizer(order=6, scale=4, ratio=0.95, confidence=0.9)
    votes = ConfidentVotes(COUNTS, **GIVEN | {"answers": 60})
    figures = figures_of(100, 3, 60, Fraction(20), Fraction(8), Fraction(6))
    truth = sum(int(figures[row[0], row[1]]) for row in COUNTS)
    part = sum(_most(Fraction(20), Fraction(8), Fraction(6))) / UNITS
    values = [votes.sanitized(by).value for _ in range(80)]
    assert sum(value >= truth * part for value in values) >= 45 and len(set(values)) > 1


def test_a_released_figure_is_never_above_what_holds_for_all_votes():
    votes, by = ConfidentVotes(COUNTS, **GIVEN), Sanitizer(order=6, scale=40, ratio=0.95)
    test, answer = _most(Fraction(20), Fraction(8), Fraction(6))
    values = [votes.sanitized(by).value for _ in range(20)]
    assert max(values) <= 60 * test + 25 * answer
    with noise.seeded(b"for a test"):
        assert votes.sanitized(by).tainted


def test_votes_are_shown_nowhere():
    votes = ConfidentVotes(COUNTS, **GIVEN)
    assert repr(votes) == "ConfidentVotes(teachers=100, classes=3, queries=60)"
    assert not hasattr(votes, "__dict__")
    for read in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(NotSound, match="private"):
            read(votes)
    with pytest.raises(NotSound, match="private"):
        votes.__getstate__()


def test_what_does_not_fit_is_refused():
    votes = ConfidentVotes(COUNTS, **GIVEN)
    with pytest.raises(RelationMismatch, match="relation"):
        votes.sanitized(Sanitizer(order=2, scale=3, ratio=0.9, relation="replace"))
    with pytest.raises(InvalidArgument, match="counts"):
        ConfidentVotes([[99, 0, 0]], **GIVEN)
    with pytest.raises(InvalidArgument, match="teachers"):
        ConfidentVotes([[2000, 0]], **GIVEN | {"teachers": 2000})
