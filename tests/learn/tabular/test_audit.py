"""Fits attacked through the real sampler: the adversary finds no more than was promised, and much of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from dalenius.audits import audit
from dalenius.learn.tabular import CategoricalNB, GaussianNB, LogisticRegression, objective
from dalenius.learn.tabular.columns import read_columns
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


OTHERS = 100
"""Rows of the first class, after which a row of the second is a surprise."""


@cache
def public() -> objective.Objective:
    """The ridge and the noise of the weights, which anyone may know."""
    promise = Promise(Fraction(EPSILON), Fraction(0), "add_remove")
    return objective.plan(promise, read_columns((-1, 1), 1), 2, Fraction(0))


def weights(label: int | None) -> float:
    """What weights tell of one more row: the log ratio of their densities with and without it.

    From weights an adversary knows the noise that made them, on either side: −Λw − Σ∇ℓ. Rows that all say
    otherwise are what makes the ratio large, as the gradient of a row that is expected is next to nothing.
    """
    labels = np.array([0] * OTHERS + ([] if label is None else [label]))
    model = LogisticRegression(epsilon=EPSILON, bounds=(-1, 1), classes=[0, 1])
    model.fit(np.ones((len(labels), 1)), labels)
    found = np.array([model.intercept_[0], model.coef_[0, 0]])
    chance = 1 / (1 + np.exp(-found.sum()))
    plan = public()
    without = -float(plan.ridge) * found - OTHERS * chance
    return float(np.abs(without).sum() - np.abs(without + 1 - chance).sum()) / float(plan.noise)


@pytest.mark.parametrize(("function", "shown"), [(counted, 0.5), (means, 0.3), (weights, 0.4)])
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


@pytest.mark.parametrize("function", [counted, weights])
def test_an_adversary_finds_noise_that_is_too_small(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, where noise is a quarter of what the promise asks for."""
    honest = Promise.noise
    drawn = objective.Objective.perturbation

    def little(self: Promise, bound: Any, share: Any) -> Any:
        found: Any = honest(self, bound, share)
        return replace(found, scale=found.scale / 4)

    monkeypatch.setattr(Promise, "noise", little)
    monkeypatch.setattr(objective.Objective, "perturbation", lambda self: drawn(self) / 4)
    found = audit(
        function,
        inputs=[None],
        neighbors=lambda _: [1],
        claim=Pure(EPSILON),
        delta=0,
        trials=2000,
        confidence=1 - 1e-7,
    )
    assert not found.holds
