"""Fits attacked through the real sampler: the adversary finds no more than was promised, and much of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dalenius.audits import audit
from dalenius.learn.tabular import CategoricalNB, GaussianNB, LogisticRegression
from dalenius.learn.tabular.promise import Promise
from dalenius.losses import Pure

EPSILON = 2


def counted(label: int | None) -> float:
    """The counts of a table with one column, one cell and at most one row, as a fit makes them."""
    x, y = (np.zeros((0, 1)), np.zeros(0)) if label is None else (np.zeros((1, 1)), np.array([label]))
    model = CategoricalNB(epsilon=EPSILON, categories=1, classes=[0, 1]).fit(x, y)
    return float(model.class_prior_[1])


def means(label: int | None) -> Any:
    x, y = (np.zeros((0, 1)), np.zeros(0)) if label is None else (np.ones((1, 1)), np.array([label]))
    model = GaussianNB(epsilon=EPSILON, bounds=(-1, 1), classes=[0, 1]).fit(x, y)
    return [*model.theta_.ravel().tolist(), *model.class_prior_.tolist()]


def weights(label: int | None) -> Any:
    x, y = (np.zeros((0, 1)), np.zeros(0)) if label is None else (np.ones((1, 1)), np.array([label]))
    model = LogisticRegression(epsilon=EPSILON, bounds=(-1, 1), classes=[0, 1]).fit(x, y)
    return [float(model.intercept_[0]), float(model.coef_[0, 0])]


@pytest.mark.parametrize(("function", "shown"), [(counted, 0.5), (means, 0.3), (weights, 0.0)])
def test_an_adversary_finds_no_more_than_was_promised(function: Any, shown: float) -> None:
    found = audit(
        function,
        inputs=[None],
        neighbors=lambda _: [1],
        claim=Pure(EPSILON),
        delta=0,
        trials=2000,
        confidence=1 - 1e-7,
    )
    assert found.holds, str(found)
    assert found.epsilon_lower >= shown, str(found)


def test_an_adversary_finds_noise_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, where noise is a quarter of what the promise asks for."""
    honest = Promise.noise

    def little(self: Promise, bound: Any, share: Any) -> Any:
        found: Any = honest(self, bound, share)
        return replace(found, scale=found.scale / 4)

    monkeypatch.setattr(Promise, "noise", little)
    found = audit(
        counted,
        inputs=[None],
        neighbors=lambda _: [1],
        claim=Pure(EPSILON),
        delta=0,
        trials=2000,
        confidence=1 - 1e-7,
    )
    assert not found.holds
