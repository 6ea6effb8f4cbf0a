"""A model trained without privacy betrays its records; one with ε = 1 keeps to what its loss allows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from dalenius.attacks.membership import (
    FINE,
    Records,
    _whole,
    demo,
    gradient_noise,
    likelihoods,
    logistic,
    loss_threshold,
    mislabelled,
)
from dalenius.errors import InvalidArgument

SURE = 1 - 1e-7


def clouds(size: int, *, dimensions: int = 400) -> Records:
    """Two clouds whose centers are 12 standard deviations apart."""
    chance = np.random.default_rng()
    labels = chance.integers(0, 2, size)
    shift = 6 * (2 * labels - 1)[:, np.newaxis] / np.sqrt(dimensions)
    return Records(chance.normal(size=(size, dimensions)) + shift, labels)


def test_the_demo_shows_the_leak_and_the_bound() -> None:
    """False alarms: 1e-7 for the bound, as every training is an independent trial."""
    plain, private = demo(trainings=1_000, confidence=SURE)
    assert plain.low > 0.9 and plain.bound is None
    assert plain.details["true_positives_at_0.01_low"] > 0.9
    assert private.bound is not None and private.bound < 0.107
    assert private.within_bound
    assert private.success < 0.75
    assert private.figure is not None
    names = [series.name for series in private.figure.series]
    assert {"measured, without privacy", "measured", "the most that the loss allows"} <= set(names)


@pytest.mark.slow
def test_the_bound_is_exceeded_as_rarely_as_the_confidence_says() -> None:
    """The lower end of 60 reports at confidence 0.9. False alarms: 1e-7."""
    outside = sum(not demo(trainings=400, confidence=0.9)[1].within_bound for _ in range(60))
    assert binom.sf(outside - 1, 60, 0.05) > 1e-7


def test_the_noise_of_the_demo_costs_epsilon_one() -> None:
    noise = gradient_noise(200, epsilon=1, delta=1e-5, steps=20)
    assert 0.99 < (noise.loss * 20).epsilon(1e-5).upper <= 1


def test_mislabelled_records_are_recognized_and_more_often_than_others() -> None:
    """In 400 dimensions 260 records are memorized, and wrong labels show it more: on average 98% and 73%.

    False alarms: below 1e-9, as 15 of 60 would have to be missed, and as the difference is 7 deviations.
    """
    clean, fresh = clouds(200), clouds(200)
    canaries, absent = (mislabelled(clouds(size), classes=2) for size in (60, 200))
    model = logistic(
        *(np.concatenate(pair) for pair in zip(clean, canaries, strict=True)), steps=200, rate=2.0
    )
    found = loss_threshold(model, canaries, absent)
    assert found.success > 0.75
    assert found.success > loss_threshold(model, clean, fresh).success


def test_every_wrong_label_is_wrong_and_a_class() -> None:
    records = Records(np.zeros((500, 1)), np.arange(500) % 5)
    moved = mislabelled(records, classes=5).labels
    assert (moved != records.labels).all() and set(moved.tolist()) == {0, 1, 2, 3, 4}


def test_a_gradient_has_norm_at_most_one_in_whole_numbers() -> None:
    rows = np.random.default_rng().normal(size=(2_000, 7)) ** 9
    squares = np.square(_whole(np.concatenate([rows, np.eye(7), np.zeros((1, 7))])).astype(np.int64)).sum(
        axis=1
    )
    assert squares.max() <= FINE**2


def test_a_private_model_is_still_of_use() -> None:
    """400 records at epsilon 8: right for practically all. False alarms: below 1e-9."""
    train, fresh = clouds(400, dimensions=20), clouds(2_000, dimensions=20)
    noise = gradient_noise(20, epsilon=8, delta=1e-5)
    model = partial(logistic, noise=noise, steps=20, rate=0.5)(*train)
    assert (likelihoods(model, fresh) > 0.5).mean() > 0.7


@pytest.mark.parametrize("label", [-1, 2, 0.5])
def test_labels_that_are_no_columns_are_refused(label: float) -> None:
    with pytest.raises(InvalidArgument, match="columns"):
        likelihoods(lambda rows: np.full((len(rows), 2), 0.5), Records(np.zeros((1, 1)), np.array([label])))


def test_a_model_without_a_row_for_each_record_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="one row of probabilities"):
        likelihoods(lambda rows: np.ones(len(rows)), clouds(5))
