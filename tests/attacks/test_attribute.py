"""A leak is what an attack learns about those in the data above what it learns about others."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from dalenius.attacks.attribute import _compared, attribute_from_counts, attribute_from_model, guess_attribute
from dalenius.attacks.membership import Predict, Records, gradient_noise, logistic
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.mechanisms import Laplace
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity

SURE = 1 - 1e-7


def people(size: int, *, related: float) -> Records:
    """The first feature is secret: a bit, which the label equals with probability `related`."""
    chance = np.random.default_rng()
    secret = chance.integers(0, 2, size)
    labels = np.where(chance.random(size) < related, secret, 1 - secret)
    return Records(np.column_stack([secret, chance.normal(size=(size, 4))]), labels)


def nearest(records: Records) -> Predict:
    """A model that memorizes: sure of a label where a record with it is very near."""

    def predict(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        gaps = np.linalg.norm(rows[:, np.newaxis] - records.features, axis=2)
        near = np.stack([np.where(records.labels == k, gaps, np.inf).min(axis=1) for k in (0, 1)], axis=1)
        weights = 0.05 + np.exp(-8 * near)
        return weights / weights.sum(axis=1, keepdims=True)

    return predict


def test_a_model_that_memorizes_betrays_a_secret_of_its_records() -> None:
    """The label is a coin, so nothing is learned of others; false alarms below 1e-9."""
    members, others = people(300, related=0.5), people(300, related=0.5)
    found = attribute_from_model(nearest(members), members, others, column=0, values=[0, 1])
    assert found.success > 0.8 and found.baseline < 0.7
    assert found.advantage_low > 0.2
    assert found.details["imputation"] < 0.7


def test_what_is_true_of_everyone_is_no_leak() -> None:
    """Label and secret agree in 95%, and a model says so of everyone. False alarms: 1e-7."""
    members, others = people(2_000, related=0.95), people(2_000, related=0.95)
    found = attribute_from_model(_usual, members, others, column=0, values=[0, 1], confidence=SURE)
    assert found.success > 0.9 and found.details["imputation"] > 0.9
    assert found.low <= found.baseline <= found.high


def test_guesses_weigh_how_common_a_value_is() -> None:
    records = people(5, related=0.5)
    assert (guess_attribute(_flat, records, column=0, values=[0, 1], weights=[0.4, 0.6]) == 1).all()
    assert (guess_attribute(_flat, records, column=0, values=[0, 1], weights=[0.6, 0.4]) == 0).all()


def _usual(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(rows[:, :1] == [0, 1], 0.95, 0.05)


def _flat(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full((len(rows), 2), 0.5)


def test_private_models_betray_a_secret_as_rarely_as_the_loss_says() -> None:
    """Every model is asked about one record, so trials are independent. False alarms: 1e-7."""
    noise, chance = gradient_noise(5, epsilon=1, delta=1e-5, steps=5), np.random.default_rng()
    right, inside = np.zeros(400, dtype=bool), chance.integers(0, 2, 400).astype(bool)
    for trial, taken in enumerate(inside):
        record, rest = people(1, related=0.5), people(20, related=0.5)
        given = [np.concatenate(pair) for pair in zip(rest, record, strict=True)] if taken else rest
        model = logistic(*given, noise=noise, steps=5, rate=0.5)
        right[trial] = guess_attribute(model, record, column=0, values=[0, 1])[0] == record.features[0, 0]
    found = _compared("private", right[inside], right[~inside], right, noise.loss * 5, SURE)
    assert found.within_bound and found.bound is not None and found.bound < 0.3


def counts(groups: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    table = np.zeros((1_000, 2), dtype=np.int64)
    np.add.at(table, (groups, values), 1)
    return table


def noisy(mechanism: Laplace, groups: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.float64]:
    return mechanism.sample(counts(groups, values).ravel(), 1).reshape(1_000, 2)


def alone() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Groups of one: in a table of exact counts everybody is seen."""
    return np.arange(1_000), np.random.default_rng().integers(0, 2, 1_000)


def test_exact_counts_of_small_groups_betray_everyone_in_them() -> None:
    found = attribute_from_counts(counts, *alone())
    assert found.success == 1 and found.baseline < 0.6 and found.advantage_low > 0.8


def test_noisy_counts_betray_as_few_as_the_loss_says() -> None:
    """Each person has a group, so trials are independent. False alarms: 1e-7."""
    mechanism = Laplace.calibrate(
        epsilon=0.25, sensitivity=Sensitivity(l0=1, linf=1), grid=Grid(0), exact=True
    )
    found = attribute_from_counts(partial(noisy, mechanism), *alone(), loss=mechanism.loss, confidence=SURE)
    assert found.within_bound and found.success < 0.7


def test_counts_of_large_groups_tell_of_everyone_alike() -> None:
    """Half are published and the guess is the same for both halves. False alarms: 1e-7."""
    groups = np.arange(2_000) % 2
    values = (np.random.default_rng().random(2_000) < np.where(groups, 0.9, 0.1)).astype(np.int64)
    found = attribute_from_counts(counts, groups, values, confidence=SURE)
    assert found.success > 0.8 and found.low <= found.baseline
    assert found.details["imputation"] < 0.7


def test_the_bound_is_that_of_the_difference() -> None:
    loss: Loss = Laplace.calibrate(epsilon=0.5, sensitivity=1).loss
    found = attribute_from_counts(counts, *alone(), loss=loss)
    assert found.bound == pytest.approx(loss.advantage().upper / (1 - found.baseline))
    assert not found.within_bound


def test_a_table_without_a_cell_for_everyone_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="a row for each group"):
        attribute_from_counts(lambda groups, values: np.zeros((3, 2)), *alone())
