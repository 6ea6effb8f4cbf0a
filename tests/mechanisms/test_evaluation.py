from __future__ import annotations

import math

import numpy as np
import pytest
from contract import ALARM
from scipy.stats import binom

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.evaluation import Evaluation


def test_the_confusion_matrix_counts_pairs() -> None:
    mechanism = Evaluation(classes=("a", "b"), scale=0.01, answer="confusion")
    labels, predictions = ["a", "a", "b", "b", "b", "c"], ["a", "b", "b", "b", "z", "a"]
    found = mechanism.release((labels, predictions))
    # Noise of scale 0.01 is zero but for 1e-43.
    assert found["n"].tolist() == [1, 1, 0, 2]
    assert found["label"].tolist() == ["a", "a", "b", "b"]
    assert found["prediction"].tolist() == ["a", "b", "a", "b"]
    assert mechanism.error(0.05) == 0


def test_accuracy_is_the_share_of_right_predictions() -> None:
    mechanism = Evaluation.calibrate(epsilon=1, classes=range(3))
    labels = np.arange(3000) % 3
    predictions = np.where(np.arange(3000) < 2400, labels, (labels + 1) % 3)
    hit = 0
    for _ in range(60):
        found = mechanism.release((labels, predictions), confidence=0.7)
        hit += found.low <= 0.8 <= found.high
        assert found.value == pytest.approx(0.8, abs=20 / 3000)
    assert binom.cdf(hit, 60, 0.7) > ALARM
    assert mechanism.error() is None


def test_sensitivity() -> None:
    assert Evaluation(classes=(0, 1), scale=1, per_unit=4).bound.l1 == 4
    moved = Evaluation(classes=(0, 1), scale=1, per_unit=4, relation="replace").bound
    assert (moved.l1, moved.linf) == (8, 4)
    assert float(moved.need("l2")) == pytest.approx(math.sqrt(32))


def test_a_person_counts_no_more_often_than_stated() -> None:
    mechanism = Evaluation(classes=(0, 1), scale=0.01, answer="confusion", per_unit=3)
    found = mechanism.release(([0] * 50, [1] * 50), ids=["ann"] * 50)
    assert found["n"].tolist() == [0, 3, 0, 0]


def test_odd_records_are_counted_nowhere() -> None:
    mechanism = Evaluation(classes=("1", 2), scale=0.01, answer="confusion")
    labels = ["1", 2, None, math.nan, [1], 10**400, "x"]
    found = mechanism.release((labels, ["1", 2, 2, 2, 2, 2, 2]))
    assert found["n"].tolist() == [1, 0, 0, 1]
    assert len(mechanism.release(([], []))) == 4
    assert Evaluation(classes=(0, 1), scale=1).release(([], [])).value <= 1


@pytest.mark.parametrize(
    "bad",
    [
        {"classes": ("a",)},
        {"classes": ("a", "a")},
        {"classes": ({}, "a")},
        {"classes": "ab"},
        {"scale": 0},
        {"answer": "f1"},
        {"noise": "normal"},
    ],
)
def test_bad_parameters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Evaluation(**{"classes": ("a", "b"), "scale": 1, **bad})


def test_labels_and_predictions_come_in_pairs() -> None:
    with pytest.raises(InvalidArgument):
        Evaluation(classes=(0, 1), scale=1).release(([0], [0, 1]))


@pytest.mark.parametrize(
    "value", [3, "ab", [1, 2], ([1], [1, 2]), ([1], [1], [1]), {"a": [1], "b": [1]}, None]
)
def test_what_is_no_pair_of_columns_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="pair of equally long columns"):
        Evaluation(classes=(0, 1), scale=1).release(value)


def test_a_bad_confidence_is_named() -> None:
    with pytest.raises(InvalidArgument, match="confidence must be between 0 and 1"):
        Evaluation(classes=(0, 1), scale=1).release(([0], [1]), confidence=95)
