"""Votes charge what holds for all votes; their own figure leaves only with noise, and never otherwise."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses import Renyi
from dalenius.losses.pate import GNMax, Sanitizer, Votes
from dalenius.losses.pate import votes as module
from dalenius.losses.pate.dependent import UNITS, table
from dalenius.losses.pate.votes import FINE, _smooth, levels
from dalenius.noise import draws, gaussian
from dalenius.noise.sampler import Sampler

AGREED = np.array([[990, 5, 5], [1000, 0, 0], [980, 20, 0]] * 200)


def lead(votes):
    second, first = sorted(votes)[-2:]
    return first - second


@pytest.mark.parametrize("ratio", [Fraction(3, 5), Fraction(9, 10), Fraction(99, 100)])
def test_smooth_sensitivities_bound_every_change_and_change_slowly(ratio, ballots, neighbours):
    # Two queries to 5 teachers, who may change both votes: every ballot, every neighbour.
    figures = table(5, 3, Fraction(1, 2), Fraction(3, 2))
    found = {}
    for pair in itertools.product(list(ballots(5, 3)), repeat=2):
        leads = np.bincount([lead(votes) for votes in pair], minlength=6).astype(np.int64)
        found[pair] = (int(leads @ figures), Fraction(_smooth(figures, leads, ratio), FINE))
    apart = 0.0
    for (one, two), (value, smooth) in found.items():
        for other in itertools.product([one, *neighbours(one)], [two, *neighbours(two)]):
            near, near_smooth = found[other]
            assert abs(value - near) <= min(smooth, near_smooth)
            assert smooth <= near_smooth / ratio
            apart = max(apart, abs(value - near) / float(smooth))
    assert apart > 0.3


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(9, 10)])
def test_what_is_released_moves_no_further_than_the_reach(ratio):
    # Of any figures, and of leads that move by 2 at most, the shift and its rounding to whole units included.
    rng, by = np.random.default_rng(3), Sanitizer(order=2, scale=3, ratio=ratio)
    furthest = 0.0
    for _ in range(200):
        teachers, queries = int(rng.integers(2, 40)), int(rng.integers(1, 12))
        figures = np.where(rng.random(teachers + 1) < 0.5, 0, rng.integers(0, 900, teachers + 1))
        leads = rng.integers(0, teachers + 1, queries)
        moved = np.clip(leads + rng.integers(-2, 3, queries), 0, teachers)
        each = []
        for listed in (leads, moved):
            counted = np.bincount(listed, minlength=teachers + 1).astype(np.int64)
            smooth = Fraction(_smooth(figures, counted, ratio), FINE)
            each.append((int(counted @ figures) + math.ceil(by.shift * smooth), smooth))
        (one, smooth), (other, near) = each
        assert abs(one - other) <= by.loss.reach * min(smooth, near)
        furthest = max(furthest, abs(one - other) / float(min(smooth, near)))
    assert furthest > 0.5


def test_the_reach_has_room_for_the_rounding_of_the_shift():
    # The least smooth sensitivity is so large that a unit, what rounding may add, is below that room.
    by = Sanitizer(order=2, scale=3, ratio=0.9)
    least = Fraction(levels(1, by.ratio)[0], FINE)
    assert (by.loss.reach - 1 - by.shift * (1 / by.ratio - 1)) * least >= 1


def test_levels_grow_by_no_more_than_the_ratio():
    for ratio in (Fraction(1, 2), Fraction(97, 100), Fraction(9999, 10000)):
        found = levels(10**6, ratio)
        assert all(a < b <= a / ratio for a, b in itertools.pairwise(found))
        assert found[-1] >= 10**6 * FINE


def test_the_loss_is_that_of_all_votes():
    votes = Votes(AGREED, teachers=1000, scale=100)
    assert votes.loss == GNMax(100) * 600
    assert Votes(AGREED[::-1, ::-1], teachers=1000, scale=100).loss == votes.loss


def test_agreement_shows_in_the_sanitized_figure_alone():
    by = Sanitizer(order=20, scale=12, ratio=0.99)
    votes = Votes(AGREED, teachers=1000, scale=100)
    with noise.seeded(b"agreement"):
        found = votes.sanitized(by)
    assert found.tainted and found.loss == by.loss
    assert found.value < Fraction(votes.loss.renyi(20).upper) / 20
    # At the best order of the charge the figure says less than the charge, this release included.
    assert found.epsilon(1e-6) < votes.loss.epsilon(1e-6).upper
    assert found.epsilon(1e-6) == (Renyi(20, epsilon=found.value) + by.loss).epsilon(1e-6).upper


def test_the_private_scale_stays_in_no_table():
    votes, by = Votes(AGREED, teachers=1000, scale=100), Sanitizer(order=20, scale=12, ratio=0.99)
    noise.rounded_gaussian(7, 1)
    before = draws._scaled.cache_info()
    votes.sanitized(by)
    assert draws._scaled.cache_info() == before and gaussian._units.cache_info().currsize == 0


def test_the_release_is_an_upper_bound_as_often_as_it_says(monkeypatch):
    # One table serves all of these.
    monkeypatch.setattr(module, "Sampler", lru_cache(Sampler))
    # 400 releases at 90 %: fewer than 320 above the figure has a probability below 1e-8.
    by = Sanitizer(order=8, scale=12, ratio=0.95, confidence=0.9)
    counts = [[100, 0, 0], [90, 5, 5]] * 20
    votes, leads = Votes(counts, teachers=100, scale=10), [lead(row) for row in counts]
    figures, part = table(100, 3, Fraction(10), Fraction(8)), by.order / 10**2 / UNITS
    truth = int(figures[leads].sum()) * part
    values = np.array([float(votes.sanitized(by).value) for _ in range(400)])
    assert 320 <= (values >= float(truth)).sum() < 400
    # And it is spread as the noise is: the variance of 400 normal variables is within 45 % but for 1e-7.
    smooth = _smooth(figures, np.bincount(leads, minlength=101), by.ratio)
    spread = float(by.scale * Fraction(smooth, FINE) * part)
    assert np.var(values) == pytest.approx(spread**2, rel=0.45)


def test_nothing_but_the_release_depends_on_the_votes():
    one, two = (Votes(counts, teachers=1000, scale=100) for counts in (AGREED, np.full((600, 4), 250)))
    assert repr(one) == "Votes(teachers=1000, classes=3, queries=600, GNMax(scale=100))"
    assert "990" not in repr(one) + repr(two) + str(one.loss) + one.loss.to_json()
    for votes in (one, two):
        for read in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(NotSound, match="private"):
                read(votes)
        with pytest.raises(NotSound, match="private"):
            votes.__getstate__()
        with pytest.raises(TypeError):
            json.dumps(votes)
        assert not hasattr(votes, "__dict__")
    with pytest.raises(InvalidArgument) as refused:
        Votes([[7, 3], [4, 5]], teachers=10, scale=1)
    assert not any(digit in str(refused.value) for digit in "3457")


def test_what_does_not_fit_is_refused():
    votes = Votes([[7, 3]], teachers=10, scale=1)
    with pytest.raises(RelationMismatch, match="relation"):
        votes.sanitized(Sanitizer(order=2, scale=3, ratio=0.9, relation="replace"))
    with pytest.raises(InvalidArgument, match="scale"):
        votes.sanitized(Sanitizer(order=2, scale=10**10, ratio=0.9))
    for bad in ([[1.5, 8.5]], [[-1, 11]], [[10]], [3, 7], [[5, 4]]):
        with pytest.raises(InvalidArgument, match="counts"):
            Votes(bad, teachers=10, scale=1)
    # Sums of these rows come round to 10.
    wide = np.array([[2**62] * 3 + [2**62 + 10]]), np.array([[2**64 - 1, 11]], np.uint64)
    for bad in wide:
        with pytest.raises(InvalidArgument, match="counts"):
            Votes(bad, teachers=10, scale=1)
    assert Votes(np.array([[100, 100]], np.int8), teachers=200, scale=1).queries == 1
    sure = Decimal("0." + "9" * 45)
    for name, value in (("order", 1), ("ratio", 1), ("confidence", 1), ("confidence", sure), ("scale", 0)):
        with pytest.raises(InvalidArgument, match=name):
            Sanitizer(**({"order": 2, "scale": 3, "ratio": 0.9} | {name: value}))


def test_a_surer_bound_costs_more():
    costs = [
        Sanitizer(order=5, scale=5, ratio=0.95, confidence=c).loss.renyi(5).upper
        for c in (Fraction(1, 10**400), 0.5, 0.9, 0.99)
    ]
    assert costs[0] == costs[1] < costs[2] < costs[3] < math.inf
