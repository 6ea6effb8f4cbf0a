"""GNMax and ConfidentGNMax: their laws, their losses, and audits through the real sampler."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from contract import check_audit, check_json, check_law, check_loss, divergence
from scipy.stats import norm

from dalenius import audit
from dalenius.errors import InvalidArgument
from dalenius.learn.pate import ConfidentGNMax, GNMax
from dalenius.learn.pate.confident import winners as confident_winners
from dalenius.learn.pate.gnmax import SILENT
from dalenius.losses import pate as losses

CONFIDENT = ConfidentGNMax(threshold=6, test_scale=2, scale=1.5, queries=1, answers=1)


@pytest.mark.parametrize("scale", [0.4, 1, 4])
def test_gnmax_keeps_its_promises(scale):
    mechanism = GNMax(scale=scale, queries=1)
    check_json(mechanism)
    check_law(mechanism)
    # Nowhere attained on whole votes, but neither above the claim.
    check_loss(mechanism, ())
    check_audit(mechanism, trials=200_000)


def test_confident_gnmax_keeps_its_promises():
    check_json(CONFIDENT)
    check_law(CONFIDENT)
    check_loss(CONFIDENT, ())
    check_audit(CONFIDENT, trials=200_000)
    # No neighbours of any case are further apart than it says.
    for case in CONFIDENT.cases():
        laws = [CONFIDENT.probabilities(value) for value in case]
        for one, two in (laws, laws[::-1]):
            for epsilon in (0.0, 0.3, 1.0):
                assert divergence(one, two, epsilon) <= CONFIDENT.loss.delta(epsilon).upper + 1e-9


def test_one_answer_comes_near_the_claim_as_noise_grows():
    mechanism = GNMax(scale=8, queries=1)
    first, second = (mechanism.probabilities(value) for value in mechanism.worst_case())
    assert divergence(first, second, 0.0) > 0.99 * mechanism.loss.delta(0).upper


@pytest.mark.parametrize("counts", [[3, 3], [2, 0, 1], [5, 1, 1, 1]])
def test_the_law_of_the_winner_is_that_of_all_outcomes(counts):
    # All noises one by one; equal counts share.
    scale, reach = 0.6, 5
    steps = np.arange(-reach, reach + 1)
    masses = norm.cdf((steps + 0.5) / scale) - norm.cdf((steps - 0.5) / scale)
    truth = np.zeros(len(counts))
    for draw in itertools.product(range(len(steps)), repeat=len(counts)):
        noisy = [count + steps[i] for count, i in zip(counts, draw, strict=True)]
        best = [i for i, value in enumerate(noisy) if value == max(noisy)]
        truth[best] += math.prod(masses[list(draw)]) / len(best)
    law = GNMax(scale=scale, queries=1).probabilities([counts])
    assert law.masses == pytest.approx(truth, abs=1e-9)


def test_the_charge_is_that_of_all_queries_and_answers():
    assert GNMax(scale=40, queries=1000).loss == losses.GNMax(40) * 1000
    found = ConfidentGNMax(threshold=200, test_scale=150, scale=40, queries=640, answers=286)
    assert found.loss.epsilon(1e-5).upper == pytest.approx(2.5427, abs=1e-4)
    more = ConfidentGNMax(threshold=200, test_scale=150, scale=40, queries=6400, answers=286)
    assert more.loss.epsilon(1e-5).upper > found.loss.epsilon(1e-5).upper + 0.3


def test_no_more_labels_than_are_paid_for():
    mechanism = ConfidentGNMax(threshold=1, test_scale=0.1, scale=0.1, queries=5, answers=2)
    found = mechanism.release([[9, 0, 0]] * 5)
    assert found.columns["label"] == (0, 0, None, None, None)
    assert mechanism.sample([[0, 9, 0]] * 3, 4).tolist() == [[1, 1, SILENT]] * 4
    none = ConfidentGNMax(threshold=90, test_scale=0.1, scale=0.1, queries=5, answers=2)
    assert none.release([[9, 0, 0]] * 5).columns["label"] == (None,) * 5


def test_equal_counts_are_decided_by_coins():
    # 2,000 fair coins: fewer than 850 of either has a probability below 1e-10.
    found = GNMax(scale=0.05, queries=2000).release([[4, 0, 4]] * 2000).columns["label"]
    assert 850 < found.count(0) < 1150 and found.count(1) == 0


def test_less_noise_than_is_claimed_is_found_out(monkeypatch):
    # The audit has the power to see it: winners drawn with a quarter of the noise.
    def quieter(counts, scale):
        return confident_winners(counts, scale / 4)

    monkeypatch.setattr("dalenius.learn.pate.gnmax.winners", quieter)
    found = audit(GNMax(scale=2, queries=1), trials=50_000)
    assert found.violated


def test_what_does_not_fit_is_refused():
    for bad in ([[0.5, 0.5]], [3, 4], [[3]], [[1, 2]] * 3):
        with pytest.raises(InvalidArgument, match=r"Counts|queries"):
            GNMax(scale=1, queries=2).release(bad)
    with pytest.raises(InvalidArgument, match="answers"):
        ConfidentGNMax(threshold=5, test_scale=1, scale=1, queries=3, answers=4)
    for name, value in (("scale", 0), ("queries", 0), ("scale", -1)):
        with pytest.raises(InvalidArgument, match=name):
            GNMax(**{"scale": 1, "queries": 1} | {name: value})
    assert GNMax(scale=0.1, queries=3).scale == Fraction(1, 10)
