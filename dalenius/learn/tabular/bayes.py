"""`GaussianNB` and `CategoricalNB`: naive Bayes from noisy counts.

Theorem. In either model a row adds whole numbers that are never negative to the table of each column and of
its own class alone, of total `one` in each of d tables: L1 ≤ d·one and, as ‖v‖₂ ≤ ‖v‖₁ in a table, L2 ≤
√d·one.

For categories the table has a cell for each of them, and one = 1. For numbers within ±1 it has the three
parts of 1
    (1 + x)²/4,   (1 − x²)/2,   (1 − x)²/4,
rounded so that they add up to 1: a count that every column gives, and with it the mean, first less last, and
the mean square, first and last less middle. So nothing is spent on counts, and a column costs 1 where sums of
1, x and x² would cost 3.

What follows is post-processing. Noise as large as m rows counts as m rows more that are like those of all
classes together.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.learn.tabular.columns import codes, read_classes, width_of
from dalenius.learn.tabular.estimator import Classifier
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.sums import ONE, Floats, Whole, counts, noisy, products
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.contributions import table
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.sensitivity import sqrt_up

LEAST_VARIANCE = 1e-4
"""Of a column scaled to [−1, 1]."""


class Bayes(Classifier):
    """Classes by how likely their rows are, column by column."""

    class_prior_: Floats

    def _tables(self, promise: Promise, columns: int, *, size: int, one: int) -> Additive:
        """The noise of the tables of all columns."""
        bound = promise.bound(
            l1=columns * one, l2=one * sqrt_up(Fraction(columns)), linf=one, size=size, nonnegative=True
        )
        return promise.noise(bound, Fraction(1))

    def _joint(self, X: Any) -> Floats:
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`."""
        joint = self._joint(X)
        most = joint.max(axis=1, keepdims=True)
        return np.asarray(joint - most - np.log(np.exp(joint - most).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def _prior(self, found: Floats, spread: float) -> Floats:
        """How frequent classes are, from noisy counts with noise of that size."""
        held = np.maximum(found, 0) + max(1.0, spread)
        return np.asarray(held / held.sum())


class GaussianNB(Bayes):
    """Naive Bayes with a normal law for each column, within `bounds`, of each class."""

    purpose = "Gaussian naive Bayes"
    theta_: Floats
    var_: Floats

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        bounds: Any = None,
        classes: Any = None,
        rows_per_unit: int = 1,
        relation: str | None = None,
        account: Any = None,
        by: str = "",
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.rows_per_unit, self.relation, self.account, self.by = rows_per_unit, relation, account, by

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Means and variances of rows by class; `units` says whose each row is."""
        promise, classes = self._promise(), read_classes(self.classes)
        self._read(X, centered=True, y=self._labels(y), units=units)
        wide, many = self.n_features_in_, len(classes)
        with self._charged(
            promise,
            lambda one: self._tables(one, wide, size=3 * wide * many, one=ONE),
            "Gaussian naive Bayes, noisy sums",
        ) as noise:
            rows, present = self._columns.rows(X)
            labels = np.where(self._taken(promise, units, present), codes(y, classes), -1)
            own = (labels[:, np.newaxis] == np.arange(many)).astype(np.float64)
            found = noisy(products(own, _parts(rows), most=ONE), noise, unit=ONE).reshape(many, 3, wide)
        self._settle(found, promise.spread(noise) / ONE)
        self.classes_ = np.asarray(classes)
        return self

    def _settle(self, found: Floats, spread: float) -> None:
        count = found.sum(axis=1).mean(axis=1, keepdims=True)
        self.class_prior_ = self._prior(count[:, 0], spread * (3 / found.shape[2]) ** 0.5)
        sums = found[:, 0] - found[:, 2], found[:, 0] + found[:, 2] - found[:, 1]
        more = max(1.0, spread)
        rows = np.maximum(count, 0) + more
        whole = max(float(np.maximum(count, 0).sum()), more)
        mean, square = ((one + more * np.clip(one.sum(axis=0) / whole, -1, 1)) / rows for one in sums)
        mean = np.clip(mean, -1, 1)
        # A variance below what noise makes of it would be a guess, and a small one is a bold guess.
        variance = np.clip(square - mean**2, np.minimum(LEAST_VARIANCE + 3 * spread / rows, 1), 1)
        half = np.array(self._columns.half)
        self.theta_, self.var_ = mean * half + np.array(self._columns.middle), variance * half**2
        self._mean, self._variance = mean, variance

    def _joint(self, X: Any) -> Floats:
        rows = self._asked(X)[:, np.newaxis, :]
        each = np.square(rows - self._mean) / self._variance + np.log(self._variance)
        return np.asarray(np.log(self.class_prior_) - each.sum(axis=2) / 2)


def _parts(rows: Whole) -> Whole:
    """The three parts of each cell, all firsts before all middles before all lasts."""
    first, last = (np.floor(np.square(ONE + sign * rows) / (4 * ONE)) for sign in (1, -1))
    return np.hstack([first, ONE - first - last, last])


class CategoricalNB(Bayes):
    """Naive Bayes with a table for each column of each class; columns hold codes 0, 1, 2 and so on.

    `categories` says how many codes each column has, from public knowledge. A code beyond counts for nothing.
    """

    purpose = "categorical naive Bayes"

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        categories: Any = None,
        classes: Any = None,
        rows_per_unit: int = 1,
        relation: str | None = None,
        account: Any = None,
        by: str = "",
    ) -> None:
        self.epsilon, self.delta, self.categories, self.classes = epsilon, delta, categories, classes
        self.rows_per_unit, self.relation, self.account, self.by = rows_per_unit, relation, account, by

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Tables of rows by class; `units` says whose each row is."""
        promise, classes = self._promise(), read_classes(self.classes)
        self._sizes = self._read_categories(X)
        self._read(X, y=self._labels(y), units=units)
        many, wide = len(classes), self.n_features_in_
        with self._charged(
            promise,
            lambda one: self._tables(one, wide, size=many * sum(self._sizes), one=1),
            "categorical naive Bayes, noisy counts",
        ) as noise:
            cells, present = self._codes(X)
            labels = np.where(self._taken(promise, units, present), codes(y, classes), -1)
            tables = [
                counts(np.where((labels < 0) | (cell < 0), -1, labels * size + cell), many * size, most=1)
                for cell, size in zip(cells.T, self._sizes, strict=True)
            ]
            found = noisy(np.concatenate(tables), noise)
        ends = np.cumsum([many * size for size in self._sizes])[:-1]
        parts = [part.reshape(many, -1) for part in np.split(found, ends)]
        spread = promise.spread(noise)
        self.class_prior_ = self._prior(np.mean([part.sum(axis=1) for part in parts], axis=0), spread)
        self.feature_log_prob_ = [_logarithms(part, max(1.0, spread)) for part in parts]
        self.classes_ = np.asarray(classes)
        return self

    def _read_categories(self, X: Any) -> list[int]:
        wide = width_of(X)
        if self.categories is None:
            raise InvalidArgument(
                "Columns of codes need their number of categories, from public knowledge.",
                remedy="Pass categories=, a number for all columns or a list with one for each.",
            )
        listed = [self.categories] * wide if np.ndim(self.categories) == 0 else list(self.categories)
        if len(listed) != wide:
            raise InvalidArgument(
                f"categories are {len(listed)}, and there are {wide} columns.",
                remedy="Give each column its number of categories.",
            )
        return [numbers.count(one, "categories", most=10**6) for one in listed]

    def _bounds(self) -> Any:
        return [0] * len(self._sizes), [max(1, size - 1) for size in self._sizes]

    def _codes(self, X: Any) -> tuple[Any, Any]:
        """Codes of each column, −1 where there is none, and which rows hold numbers only."""
        cells = table(X, len(self._sizes))
        known = (cells >= 0) & (cells < np.array(self._sizes))
        return np.where(known, cells, -1).astype(np.int64), ~np.isnan(cells).any(axis=1)

    def _joint(self, X: Any) -> Floats:
        self._asked(X)
        found = np.tile(np.log(self.class_prior_), (len(X), 1))
        for cell, part in zip(self._codes(X)[0].T, self.feature_log_prob_, strict=True):
            found += np.where(cell >= 0, part[:, np.maximum(cell, 0)], 0.0).T
        return found


def _logarithms(part: Floats, more: float) -> Floats:
    """Of the shares of cells, with rows more that are spread like those of all classes together."""
    held = np.maximum(part, 0)
    whole = held.sum(axis=0) + 1
    held = held + more * whole / whole.sum()
    return np.asarray(np.log(held / held.sum(axis=1, keepdims=True)))
