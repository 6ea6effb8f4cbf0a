"""What shadow models teach tells members of another model apart, and not those of a private one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dalenius.attacks.membership import Records, gradient_noise, logistic
from dalenius.attacks.roc import judge
from dalenius.attacks.shadow import shadow_attack, shadow_scores, train_shadows
from dalenius.errors import InvalidArgument

SURE = 1 - 1e-7


def people(size: int, *, dimensions: int) -> Records:
    """Labels are coins: what a model gets right it has memorized."""
    chance = np.random.default_rng()
    return Records(chance.normal(size=(size, dimensions)), chance.integers(0, 2, size))


def test_every_record_is_in_half_of_the_models() -> None:
    shadows = train_shadows(partial(logistic, steps=2), people(31, dimensions=3), count=6, seed=1)
    assert (shadows.inside.sum(axis=0) == 3).all()
    assert shadows.likelihoods().shape == (6, 31)


def test_members_of_a_model_that_memorizes_are_recognized() -> None:
    """Right in 81% on average with a deviation of 2.3%. False alarms: below 1e-9."""
    fit = partial(logistic, steps=100, rate=2.0)
    known, members, others = (people(300, dimensions=300) for _ in range(3))
    found = shadow_attack(fit(*members), train_shadows(fit, known, count=4), members, others)
    assert found.success > 0.65


def test_members_of_private_models_are_recognized_as_rarely_as_the_loss_says() -> None:
    """Every model is asked for one record, so trials are independent. False alarms: 1e-7."""
    noise, chance = gradient_noise(40, epsilon=1, delta=1e-5, steps=5), np.random.default_rng()
    fit = partial(logistic, noise=noise, steps=5, rate=0.5)
    shadows = train_shadows(fit, people(80, dimensions=40), count=4)
    scores, inside = np.zeros(300), chance.integers(0, 2, 300).astype(bool)
    for trial, taken in enumerate(inside):
        record, rest = people(1, dimensions=40), people(40, dimensions=40)
        given = [np.concatenate(pair) for pair in zip(rest, record, strict=True)] if taken else rest
        scores[trial] = shadow_scores(fit(*given), shadows, record)[0]
    found = judge("private", scores[inside], scores[~inside], loss=noise.loss * 5, confidence=SURE)
    assert found.within_bound and found.success < 0.8


def test_three_classes_and_a_label_the_shadows_never_saw_are_scored() -> None:
    known = Records(np.arange(8.0).reshape(8, 1), np.array([0, 1] * 4))

    def fit(features: np.ndarray, labels: np.ndarray) -> object:
        return lambda rows: np.tile([0.5, 0.3, 0.2], (len(rows), 1))

    shadows = train_shadows(fit, known, count=2)
    scores = shadow_scores(shadows.models[0], shadows, Records(np.zeros((3, 1)), np.array([0, 1, 2])))
    assert scores[2] == 0 and np.isfinite(scores).all()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_odd_number_of_models_is_refused(count: int) -> None:
    with pytest.raises(InvalidArgument, match="even"):
        train_shadows(logistic, people(4, dimensions=2), count=count)
