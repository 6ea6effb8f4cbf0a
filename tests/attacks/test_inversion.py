"""Inversion finds what a model holds typical of a class, and nothing where the model says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dalenius.attacks.inversion import ENOUGH, inversion_attack, invert
from dalenius.attacks.membership import Records

CENTERS = np.array([[-4.0, 0.0, 1.0], [4.0, 1.0, -3.0], [0.0, -5.0, 2.0]])
LOW, HIGH = np.full(3, -8.0), np.full(3, 8.0)


def people(size: int) -> Records:
    chance = np.random.default_rng()
    labels = chance.integers(0, 3, size)
    return Records(CENTERS[labels] + chance.normal(size=(size, 3)), labels)


def smooth(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How likely each class is, by the law the records come from."""
    powers = -((rows[:, np.newaxis] - CENTERS) ** 2).sum(axis=2) / 2
    weights = np.exp(powers - powers.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def steps(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """A tree of two classes: flat, but for one cut."""
    high = (rows[:, 1] > 2.0).astype(float)
    return np.stack([1 - high, high], axis=1)


def flat(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full((len(rows), 3), 1 / 3)


@pytest.mark.parametrize("label", [0, 1, 2])
def test_the_result_is_what_the_model_is_sure_of_and_within_range(label: int) -> None:
    found = invert(smooth, label, low=LOW, high=HIGH)
    assert smooth(found[np.newaxis])[0, label] >= ENOUGH
    assert (found >= LOW).all() and (found <= HIGH).all()


def test_the_result_is_nearer_to_the_class_than_a_record_is() -> None:
    """A random record is of another class in two cases of three. False alarms: below 1e-9."""
    found = inversion_attack(smooth, people(1_500), low=LOW, high=HIGH)
    assert found.low > 0.5
    assert found.details["distance"] < found.details["distance_of_center"]
    assert found.details["distance"] < found.details["distance_of_record"]


def test_a_tree_is_inverted_feature_by_feature() -> None:
    found = invert(steps, 1, low=LOW, high=HIGH)
    assert found[1] > 2.0 and (found[[0, 2]] == 0).all()


def test_a_model_that_says_nothing_leaves_the_center() -> None:
    assert (invert(flat, 0, low=LOW, high=HIGH) == 0).all()
    details = inversion_attack(flat, people(200)).details
    assert details["distance"] == details["distance_of_center"]
