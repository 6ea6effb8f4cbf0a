"""Noisy sums of products of columns: all that a linear model and principal components ask of the rows.

Theorem (compare Dwork, Talwar, Thakurta and Zhang 2014, and `mechanisms.covariance`). A row u = (1, x) adds
the products uᵢuⱼ, i ≤ j, and with a target y within ±1 also y·uᵢ. With ‖x‖₁ ≤ a, ‖x‖₂ ≤ c and entries within
±1,

    L1   ((1 + a)² + 1 + c²)/2, and 1 + a more with a target
    L2²  ((1 + c²)² + 1 + c²)/2, and 1 + c² more with a target

as Σ_{i≤j}|uᵢuⱼ| = (‖u‖₁² + ‖u‖₂²)/2 and Σ_{i≤j}(uᵢuⱼ)² = (‖u‖₂⁴ + ‖u‖₄⁴)/2. In whole steps each bound is
the same, as rows are whole numbers within these norms, rounded toward zero once more to multiples of 2^−10.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.learn.tabular.columns import Columns
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.sums import ONE, Floats, Whole, noisy, products
from dalenius.mechanisms.additive import Additive
from dalenius.privacy.sensitivity import sqrt_up

COARSE = 2**5
UNIT = ONE // COARSE
"""What stands for 1 in a column whose products are summed: products of finer numbers leave too many steps."""


@dataclass(frozen=True)
class Moments:
    """Sums of uuᵀ, of y·u where there is a target, and the standard deviation of their noise."""

    products: Floats
    target: Floats
    spread: float


def moments_noise(promise: Promise, columns: Columns, *, target: bool) -> Additive:
    """That of all sums, with or without a target: all of the promise is spent on them."""
    a, c, wide = 1 + columns.l1, 1 + columns.l2**2, 1 + columns.width
    l1 = (a**2 + c) / 2 + (a if target else 0)
    squares = (c**2 + c) / 2 + (c if target else 0)
    size, one = wide * (wide + 1) // 2 + (wide if target else 0), UNIT * UNIT
    bound = promise.bound(l1=l1 * one, l2=sqrt_up(squares) * one, linf=one, size=size)
    return promise.noise(bound, Fraction(1))


def moments(rows: Whole, target: Whole | None, *, noise: Additive, spread: float) -> Moments:
    """Of rows that count, in units of 1; `spread` is the deviation of the noise, in steps."""
    coarse = np.trunc(rows / COARSE)
    u = np.hstack([np.full((len(rows), 1), float(UNIT)), coarse])
    first, second = np.triu_indices(u.shape[1])
    sums = products(u, u)[first, second]
    if target is not None:
        wanted = np.trunc(target / COARSE)[:, np.newaxis]
        sums = np.concatenate([sums, products(u, wanted)[:, 0]])
    one = UNIT * UNIT
    found = noisy(sums, noise, unit=one)
    whole = np.zeros((u.shape[1], u.shape[1]))
    whole[first, second] = found[: first.size]
    whole = whole + np.triu(whole, 1).T
    return Moments(whole, found[first.size :], spread / one)


def positive(matrix: Floats) -> Floats:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)
