"""Rates are judged on scores that chose nothing, and keep to what the loss of the worst pair allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dalenius.attacks.roc import area, at, curve, figure, judge, measured_area, most_area, rate
from dalenius.errors import InvalidArgument
from dalenius.losses import GaussianDP

ALARM = 1e-7
SURE = 1 - 1e-7


def normal(center: float, size: int) -> np.ndarray:
    return np.random.default_rng().normal(center, 1, size)


def test_the_curve_counts_scores_from_each_threshold_on() -> None:
    alarms, found = curve([3.0, 2.0, 2.0, 0.0], [2.0, 1.0])
    assert alarms.tolist() == [0, 0, 0.5, 1, 1]
    assert found.tolist() == [0, 0.25, 0.75, 0.75, 1]


def test_a_rate_has_the_exact_interval() -> None:
    """No hits in n: the upper end is 1 − (α/2)^(1/n)."""
    assert rate(0, 100, confidence=0.95).high == pytest.approx(1 - 0.025**0.01)
    assert (rate(0, 100).low, rate(100, 100).high) == (0, 1)


def test_the_area_under_a_curve_is_that_of_all_pairs() -> None:
    members, others = np.array([3, 1, 2, 2.0]), np.array([0, 2, 1.0])
    pairs = [(a > b) + (a == b) / 2 for a in members for b in others]
    assert area(members, others) == pytest.approx(np.mean(pairs))


def test_the_interval_of_an_area_is_chernoffs_for_the_lesser_number() -> None:
    """All right in k pairs: a mean A has k·ln(1/A) ≤ ln(2/risk)."""
    found = measured_area(np.arange(100.0, 400), np.arange(50.0), confidence=0.95)
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx((0.05 / 2) ** (1 / 50))
    half = measured_area([0.0, 0.0], [0.0, 0.0], confidence=0.95)
    assert half.low == pytest.approx(1 - half.high)
    truth, missed = norm.cdf(1 / math.sqrt(2)), 0
    for _ in range(200):
        near = measured_area(normal(1, 40), normal(0, 60), confidence=0.95)
        missed += not near.low <= truth <= near.high
    assert missed <= binom.isf(ALARM, 200, 0.05)


def test_members_and_others_of_one_model_reach_what_is_allowed_and_no_more() -> None:
    """One of two opposite rows is in a sum under noise: it is the likelier one with Φ(mu), above Φ(mu/√2)."""
    most, size = most_area(GaussianDP(1)), 40_000
    assert norm.cdf(1) <= most < norm.cdf(1) + 1e-4
    noisy_sum = normal(1, size)
    right = rate(int(np.count_nonzero(noisy_sum > -noisy_sum)), size, confidence=SURE)
    assert norm.cdf(1 / math.sqrt(2)) < right.low <= most
    assert most_area(GaussianDP(1000)) == 1


def test_scores_of_the_worst_pair_reach_the_bound_of_the_loss_and_no_more() -> None:
    """N(1, 1) against N(0, 1) is what a loss of mu = 1 allows. False alarms: 1e-7."""
    loss = GaussianDP(1)
    found = judge("worst pair", normal(1, 40_000), normal(0, 40_000), loss=loss, confidence=SURE)
    assert found.bound == loss.meaning().advantage.upper == pytest.approx(2 * norm.cdf(0.5) - 1)
    assert found.within_bound
    assert 0.85 * found.bound < found.advantage_low


def test_a_leak_beyond_the_loss_is_outside_its_bound() -> None:
    found = judge("leak", normal(2, 4_000), normal(0, 4_000), loss=GaussianDP(0.5))
    assert not found.within_bound


def test_scores_that_tell_nothing_are_not_believed() -> None:
    """Few scores, where the best threshold looks good on those that chose it. False alarms: 1e-7."""
    runs, confidence = 150, 0.9
    found = [judge("nothing", normal(0, 30), normal(0, 30), confidence=confidence) for _ in range(runs)]
    above = sum(attack.low > 0.5 for attack in found)
    assert binom.sf(above - 1, runs, (1 - confidence) / 2) > ALARM


def test_rates_at_a_rare_false_alarm_keep_to_the_trade_off_curve() -> None:
    """Both ends fail together at most as often as stated. False alarms: 1e-7."""
    loss, runs, confidence = GaussianDP(1), 150, 0.9
    broken = 0
    for _ in range(runs):
        point = at(normal(1, 300), normal(0, 300), false_positives=0.01, confidence=confidence)
        broken += point.true_positives.low > 1 - loss.tradeoff(point.false_positives.high).lower
    assert binom.sf(broken - 1, runs, 1 - confidence) > ALARM


def test_rates_at_a_false_alarm_are_near_the_law() -> None:
    """100,000 scores: the truth, within an interval that misses it with probability 1e-7, widened by 10%."""
    point = at(normal(2, 100_000), normal(0, 100_000), false_positives=0.01, confidence=SURE)
    assert point.false_positives.low <= norm.sf(point.threshold) <= point.false_positives.high
    assert point.true_positives.low <= norm.sf(point.threshold - 2) <= point.true_positives.high
    assert 0.008 < point.false_positives.value < 0.012


def test_a_constant_score_is_right_half_the_time() -> None:
    found = judge("constant", np.zeros(50), np.zeros(80))
    assert (found.success, found.trials, found.advantage) == (0.5, 50, 0)


def test_as_many_members_as_others_are_judged() -> None:
    found = judge("uneven", np.ones(1_000), np.zeros(40))
    assert (found.trials, found.success) == (40, 1)


def test_a_seed_repeats_the_split() -> None:
    members, others = normal(1, 100), normal(0, 100)
    assert judge("x", members, others, seed=3) == judge("x", members, others, seed=3)


def test_the_picture_shows_the_measured_curve_and_the_bound_on_log_axes() -> None:
    loss = GaussianDP(1)
    drawn = judge("worst pair", normal(1, 5_000), normal(0, 5_000), loss=loss).figure
    assert drawn is not None and (drawn.x_scale, drawn.y_scale) == ("log", "log")
    series = {line.name: line for line in drawn.series}
    bound, guess = series["the most that the loss allows"], series["guessing"]
    assert all(b >= g for b, g in zip(bound.y, guess.y, strict=True))
    assert bound.y[0] == pytest.approx(1 - norm.cdf(norm.isf(bound.x[0]) - 1), rel=1e-4)
    assert {"measured", "surely reached (0.99)"} <= series.keys()
    assert all(x > 0 and y > 0 for line in drawn.series for x, y in zip(line.x, line.y, strict=True))


def test_a_picture_without_a_loss_has_no_bound() -> None:
    names = [line.name for line in figure("plain", [1.0, 2.0], [0.0, 1.5]).series]
    assert names == ["measured", "guessing"]


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [[1.0, 2.0]]])
def test_scores_that_are_no_list_of_finite_numbers_are_refused(scores: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="finite"):
        judge("bad", scores, [0.0, 1.0])
