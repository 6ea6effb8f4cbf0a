"""Weights of a logistic model by noisy gradients of all rows.

A gradient is the sum over rows of residual ⊗ row, both whole numbers (`residuals`, `columns`), so exact, and
a unit moves it by no more than the product of their norms. Each step adds noise to it, with an equal share of
the promise (`promise`); weights follow with momentum. How many rows there are is counted under noise first,
with a small share, or is public. All else follows from public numbers and needs no choice:

    ridge   as large as the noise of one gradient with all of the promise, which no average of steps goes
            below
    rate    3 over the largest curvature that rows of their norm can have; momentum 0.9 is stable up to 3.8
    steps   20 to 200, more where there are many rows for the noise
    end     the average of the second half of the steps
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalenius.learn.tabular.columns import Codes, Columns
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.residuals import norms, on_grid, residuals
from dalenius.learn.tabular.sums import ONE, Floats, Whole, noisy, products
from dalenius.mechanisms.additive import Additive
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up

COUNTING = Fraction(1, 50)
"""The share of the promise that counts rows."""
MOMENTUM, RATE = 0.9, 3.0
LEAST_STEPS, MOST_STEPS = 20, 200


def descend(
    rows: Whole,
    labels: Codes,
    classes: int,
    *,
    columns: Columns,
    promise: Promise,
    ridge: float | None = None,
    steps: int | None = None,
    public_size: int | None = None,
) -> Floats:
    """A weight vector for each class but the first of two; rows have a first column for the intercept."""
    shape = (1 if classes == 2 else classes, rows.shape[1])
    size = shape[0] * shape[1]
    row2, bound = _length(columns), _bound(promise, columns, classes)
    left = _left(public_size)
    known = float(public_size or 0)
    if public_size is None:
        known = max(1.0, float(noisy(np.array([(labels >= 0).sum()]), _count_noise(promise))[0]))
    all_at_once = promise.spread(promise.noise(bound, left)) / ONE**2
    strong = all_at_once if ridge is None else ridge
    signal = known / (all_at_once * size**0.5)
    many = int(np.clip(8 * signal**0.4, LEAST_STEPS, MOST_STEPS)) if steps is None else steps
    noise = promise.noise(bound, left / many)
    rate = RATE / (float(row2) ** 2 * (0.25 if classes == 2 else 0.5) * known + strong)
    weights, speed, mean = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for step in range(many):
        weights = on_grid(weights)
        ascent = noisy(products(residuals(rows, labels, weights), rows), noise, unit=ONE * ONE)
        speed = MOMENTUM * speed + ascent - strong * weights
        weights = weights + rate * speed
        if step >= many // 2:
            mean += weights / (many - many // 2)
    return mean


def noises(
    promise: Promise, columns: Columns, classes: int, *, steps: int | None, public_size: int | None
) -> list[Additive]:
    """All that a descent may draw, its steps as many as they may be."""
    least = _left(public_size) / (steps or MOST_STEPS)
    counted = [_count_noise(promise)] if public_size is None else []
    return [*counted, promise.noise(_bound(promise, columns, classes), least)]


def _left(public_size: int | None) -> Fraction:
    """The share of the promise that gradients have."""
    return 1 - COUNTING if public_size is None else Fraction(1)


def _length(columns: Columns) -> Fraction:
    """The most that the L2 norm of a row may be, its first column included."""
    return sqrt_up(columns.l2**2 + 1)


def _bound(promise: Promise, columns: Columns, classes: int) -> Sensitivity:
    """How far a unit moves a gradient."""
    l1, l2 = norms(classes)
    size = (1 if classes == 2 else classes) * (columns.width + 1)
    far1, far2 = l1 * (columns.l1 + 1) * ONE, l2 * _length(columns) * ONE
    return promise.bound(l1=far1, l2=far2, linf=ONE * ONE, size=size)


def _count_noise(promise: Promise) -> Additive:
    """The noise of how many rows there are."""
    bound = promise.bound(l1=1, l2=1, linf=1, size=1, nonnegative=True)
    return promise.noise(bound, COUNTING)
