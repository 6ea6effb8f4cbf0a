"""What an answer costs, against all votes there are; and how answers become one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.learn.models import Answers
from dalenius.learn.serving.aggregates import Mean, Plurality
from dalenius.losses.pate import GNMax

PROMISES = [(1, 0, 1), (1, 0, 10), (2, 1e-6, 200)]


def voted(*chosen: int, classes: int = 3) -> list[Answers]:
    found = []
    for one in chosen:
        answers = Answers.none(1, classes)
        answers.chosen[0] = one
        found.append(answers)
    return found


def numbered(*values: float) -> list[Answers]:
    found = []
    for one in values:
        answers = Answers.none(1, 0)
        answers.values[0] = one
        found.append(answers)
    return found


@pytest.mark.parametrize("scale", [Fraction(1, 2), 2, 8])
def test_one_model_changes_the_law_of_an_answer_by_no_more_than_it_costs(scale: Fraction) -> None:
    """All votes of four models for three classes, and all that one model may do instead: also not to vote."""
    mechanism = Plurality.calibrate(
        range(3), epsilon=Fraction(2) / scale, delta=0, answers=1, relation="add_remove"
    )
    assert mechanism.mechanism.scale == scale
    worst, epsilons = 0.0, (0.0, float(1 / scale), float(1.5 / scale))
    profile = dict.fromkeys(epsilons, 0.0)
    for others in product(range(3), repeat=3):
        laws = []
        for own in (-1, 0, 1, 2):
            votes = mechanism.votes(voted(*others, own), 0)
            # Written out here, and not taken from the mechanism.
            weights = np.exp(votes / float(scale))
            laws.append(weights / weights.sum())
        for one, two in product(laws, repeat=2):
            worst = max(worst, float(np.abs(np.log(one / two)).max()))
            for epsilon in epsilons:
                found = float(np.maximum(one - math.exp(epsilon) * two, 0).sum())
                profile[epsilon] = max(profile[epsilon], found)
    assert worst <= mechanism.loss.epsilon(0).upper * (1 + 1e-12)
    assert worst > 0.4 * mechanism.loss.epsilon(0).upper
    for epsilon, found in profile.items():
        assert found <= mechanism.loss.delta(epsilon).upper + 1e-12


@pytest.mark.parametrize(("epsilon", "delta", "answers"), PROMISES)
def test_so_many_answers_keep_the_promise(epsilon: float, delta: float, answers: int) -> None:
    vote = Plurality.calibrate(
        range(10), epsilon=epsilon, delta=delta, answers=answers, relation="add_remove"
    )
    mean = Mean.calibrate(-1, 3, epsilon=epsilon, delta=delta, answers=answers, relation="add_remove")
    for one in (vote, mean):
        together = (one.loss * answers).epsilon(delta).upper
        assert 0.99 * epsilon <= together <= epsilon


def test_answers_are_a_little_nearer_to_the_most_votes_than_those_of_gnmax() -> None:
    """By the deviation of the noise between two classes, as the module says."""
    vote = Plurality.calibrate(range(2), epsilon=2, delta=1e-6, answers=500, relation="add_remove")
    logistic = math.pi / math.sqrt(3) * float(vote.mechanism.scale)
    scale = logistic / 0.97 / math.sqrt(2)
    assert (GNMax(Fraction(scale).limit_denominator(10**6)) * 500).epsilon(1e-6).upper == pytest.approx(
        2, rel=0.01
    )


def test_votes_are_counted_and_silence_is_no_vote() -> None:
    vote = Plurality.calibrate("abc", epsilon=50, delta=0, answers=1, relation="add_remove")
    answers = voted(2, 2, 2, 2, 0, -1)
    assert vote.votes(answers, 0).tolist() == [1, 0, 4]
    assert vote.release(answers, 0, None).value == "c"
    assert vote.release(voted(-1, -1), 0, None).value in "abc"


def test_the_law_of_an_answer() -> None:
    vote = Plurality.calibrate(range(3), epsilon=1, delta=0, answers=1, relation="add_remove")
    answers, times = voted(0, 0, 0, 1, 2), 3000
    found = np.bincount([vote.release(answers, 0, None).value for _ in range(times)], minlength=3)
    weights = np.exp(np.array([3, 1, 1]) / 2)
    expected = times * weights / weights.sum()
    # Chi-square on two degrees of freedom: e^{−x/2} is below 1e-7 at 32.
    assert float(((found - expected) ** 2 / expected).sum()) < 33


def test_a_mean_clips_every_number_by_itself() -> None:
    mean = Mean.calibrate(0, 10, epsilon=1, delta=0, answers=1, relation="add_remove")
    step = mean.mechanism.step
    assert mean.total(numbered(5, 1e9, -math.inf), 0) * step == pytest.approx(15)
    assert mean.total(numbered(math.nan, 10), 0) * step == pytest.approx(15)
    ends = [mean.total(numbered(value), 0) for value in (0, 10, math.nan, 1e300, -1e300, 3.3)]
    assert (max(ends) - min(ends)) * step <= 10
    assert mean.mechanism.sensitivity.need("linf") == 10


def test_the_bar_of_a_mean_is_that_of_the_noise() -> None:
    mean = Mean.calibrate(0, 10, epsilon=1, delta=0, answers=1, relation="add_remove")
    found = mean.release(numbered(*[4.0] * 100), 0, None)
    # Laplace noise of scale 10 on a sum of 100.
    assert (found.high - found.low) / 2 == pytest.approx(10 * math.log(20) / 100, rel=1e-4)
    assert abs(found.value - 4) < 2
    assert found.receipt.postprocessing == ("divided by 100 models",)


def test_bounds_in_order() -> None:
    with pytest.raises(InvalidArgument, match="lower must be below upper"):
        Mean.calibrate(3, 3, epsilon=1, delta=0, answers=1, relation="add_remove")
