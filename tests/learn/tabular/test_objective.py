"""Objective perturbation: its theorem against densities and divergences that are evaluated on their own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm

from dalenius.errors import NotSound
from dalenius.learn.tabular.columns import read_columns
from dalenius.learn.tabular.objective import CELLS, CURVED, OUTPUT, REACHED, minimize, plan
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.sums import ONE

CHANCE = np.random.default_rng(3)
COLUMNS = read_columns((-1, 1), 2)


def promised(epsilon: float, delta: float = 0, relation: Any = "add_remove", rows: int = 1) -> Promise:
    return Promise(Fraction(str(epsilon)), Fraction(str(delta)), relation, rows)


def gradient(rows: Any, labels: Any, weights: Any) -> Any:
    """Σ∇ℓ, written down again."""
    if len(weights) == 1:
        return ((expit(rows @ weights[0]) - labels) @ rows)[np.newaxis]
    return (softmax(rows @ weights.T, axis=1) - np.eye(len(weights))[labels]).T @ rows


def curvature(rows: Any, labels: Any, weights: Any, ridge: float) -> Any:
    """By differences of the gradient."""
    flat, step, found = weights.ravel(), 1e-5, []
    for i in range(flat.size):
        ends = [
            gradient(rows, labels, (flat + s * step * np.eye(flat.size)[i]).reshape(weights.shape)).ravel()
            for s in (1, -1)
        ]
        found.append((ends[0] - ends[1]) / (2 * step))
    return np.array(found) + ridge * np.eye(flat.size)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_densities_of_the_minimum_differ_by_no_more_than_epsilon(classes: int, relation: str) -> None:
    epsilon = 0.8
    made = plan(promised(epsilon, relation=relation), COLUMNS, classes, Fraction(0))
    scale, ridge = float(made.noise), float(made.ridge)
    allowed = epsilon * (1 - float(OUTPUT))
    most = 0.0
    for trial in range(150):
        size = 0 if trial % 3 == 0 else 5
        rows = np.hstack([np.ones((size, 1)), CHANCE.uniform(-1, 1, (size, 2))])
        labels = CHANCE.integers(0, classes, size)
        weights = CHANCE.normal(0, 0.3 if trial % 2 else 3.0, (made.vectors, 3))
        one = np.array([1.0, *CHANCE.choice([-1.0, 1.0], 2)])
        first, second = CHANCE.permutation(classes)[:2]
        with_it = np.vstack([rows, one]), np.append(labels, first)
        without = rows, labels
        if relation == "replace":
            without = np.vstack([rows, one]), np.append(labels, second)
        log = []
        for data, label in (with_it, without):
            b = -gradient(data, label, weights) - ridge * weights
            log.append(-np.abs(b).sum() / scale)
            log[-1] += np.linalg.slogdet(curvature(data, label, weights, ridge))[1]
        most = max(most, abs(log[0] - log[1]))
    assert most <= allowed + 1e-6
    assert most >= 0.4 * allowed, "the worst rows that were tried use much of what is paid for"


def test_the_gaussian_form_keeps_its_delta() -> None:
    """E(1 − e^{ε − L})₊ over minima, L their exact log ratio of densities, at a δ that can be seen."""
    epsilon, delta, trials = 0.7, 0.05, 3000
    columns = read_columns((-1, 1), 1)
    made = plan(promised(epsilon, delta), columns, 2, Fraction(0))
    scale, ridge = float(made.noise), float(made.ridge)
    limit = epsilon * (1 - float(OUTPUT))
    one = np.array([[1.0, 1.0]])
    for with_row in (True, False):
        held = (one, np.array([1])) if with_row else (np.zeros((0, 2)), np.zeros(0, np.int64))
        found = []
        for _ in range(trials):
            b = CHANCE.normal(0, scale, (1, 2))
            weights = minimize(held[0], held[1], b, ridge, tolerance=1e-9)
            chance = float(expit(one[0] @ weights[0]))
            g = (chance - 1) * one
            bend = np.log1p(chance * (1 - chance) * 2 / ridge)
            other = b + g if with_row else b - g
            ratio = ((other**2).sum() - (b**2).sum()) / (2 * scale**2) + (bend if with_row else -bend)
            found.append(max(0.0, 1 - np.exp(limit - ratio)))
        mean, spread = np.mean(found), np.std(found) / trials**0.5
        assert mean <= delta + norm.isf(1e-7) * spread


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_two_tails_of_the_gaussian_are_all_of_delta(epsilon: float) -> None:
    """E(1 − e^{ε − μ|Z| − μ²/2 − κ})₊, integrated: within δ, and not far below it."""
    delta = 1e-3
    made = plan(promised(epsilon, delta), COLUMNS, 2, Fraction(0))
    mu, kappa = float(made.row / made.noise), float(made.row**2 / 4 / made.ridge)
    limit = epsilon * (1 - float(OUTPUT))
    z = np.linspace(-12, 12, 400_001)
    excess = np.maximum(0, -np.expm1(limit - mu * np.abs(z) - mu**2 / 2 - kappa))
    found = float(np.sum(excess * norm.pdf(z)) * (z[1] - z[0]))
    assert 0.9 * delta <= found <= delta * (1 + 1e-6) or mu**2 / 2 >= 0.999 * (limit - kappa)
    assert mu**2 / 2 <= (limit - kappa) * (1 + 1e-12)


def test_the_gaussian_form_is_refused_where_it_is_not_proved() -> None:
    for promise, classes in (
        (promised(1, 1e-6), 3),
        (promised(1, 1e-6, "replace"), 2),
        (promised(1, 1e-6, rows=2), 2),
    ):
        with pytest.raises(NotSound, match="delta=0"):
            plan(promise, COLUMNS, classes, Fraction(0))


def test_a_ridge_that_is_asked_for_is_at_least_that_of_the_theorem() -> None:
    least = plan(promised(1), COLUMNS, 2, Fraction(0)).ridge
    assert abs(least - Fraction(3, 4) / CURVED) < Fraction(1, 10**15)
    assert plan(promised(1), COLUMNS, 2, least / 2).ridge == least
    more = plan(promised(1), COLUMNS, 2, 100 * least)
    assert more.ridge == 100 * least and more.noise < plan(promised(1), COLUMNS, 2, Fraction(0)).noise


@pytest.mark.parametrize("classes", [2, 4])
def test_the_minimum_is_as_near_as_is_paid_for(classes: int) -> None:
    made = plan(promised(1), COLUMNS, classes, Fraction(0))
    x = np.hstack([np.ones((300, 1)), CHANCE.uniform(-1, 1, (300, 2))])
    labels = CHANCE.integers(0, classes, 300)
    noise, ridge = made.perturbation(), float(made.ridge)
    tolerance = float(made.row * REACHED / 2)
    found = minimize(x, labels, noise, ridge, tolerance=tolerance)
    left = gradient(x, labels, found) + ridge * found + noise
    assert np.linalg.norm(left) <= 1.01 * tolerance
    # θ̂ on one side and on the other: twice its distance from the true minimum.
    off = 2 * (float(made.row * REACHED) + float(made.row / CELLS) * noise.size**0.5 / 2) / ridge
    assert float(made.output.sensitivity.need("l2")) >= off * (1 - 1e-12)
    assert made.output.loss.epsilon(0).upper <= float(OUTPUT) * (1 + 1e-12)


def test_a_minimum_without_rows_is_that_of_noise() -> None:
    made = plan(promised(1), COLUMNS, 2, Fraction(0))
    found = made.minimum(np.zeros((0, 3)), np.zeros(0, np.int64))
    assert found.shape == (1, 3) and np.isfinite(found).all()
    whole = np.full((4, 3), float(ONE))
    assert np.isfinite(made.minimum(whole, np.array([-1, -1, 0, 1]))).all()
