"""`PCA`: principal components of a covariance under noise (Dwork, Talwar, Thakurta and Zhang 2014).

The noisy sums are those of `moments`; mean and covariance follow from them, and components from the
covariance: all of that is post-processing. Columns are in their own units.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dalenius.learn.tabular.estimator import Estimator
from dalenius.learn.tabular.moments import moments, moments_noise, positive
from dalenius.learn.tabular.sums import Floats, row_by_row
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number


class PCA(Estimator):
    """`n_components` directions in which columns within `bounds` vary the most; all where it is left out."""

    kind = "transformer"
    purpose = "principal components"
    components_: Floats
    explained_variance_: Floats
    mean_: Floats

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        bounds: Any = None,
        l1_norm: Number | None = None,
        l2_norm: Number | None = None,
        rows_per_unit: int = 1,
        relation: str | None = None,
        account: Any = None,
        by: str = "",
    ) -> None:
        self.n_components, self.epsilon, self.delta, self.bounds = n_components, epsilon, delta, bounds
        self.l1_norm, self.l2_norm = l1_norm, l2_norm
        self.rows_per_unit, self.relation, self.account, self.by = rows_per_unit, relation, account, by

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Components of rows; `units` says whose each row is."""
        promise = self._promise()
        self._read(X, centered=True, units=units)
        wide = self.n_features_in_
        many = (
            wide if self.n_components is None else numbers.count(self.n_components, "n_components", most=wide)
        )
        with self._charged(
            promise,
            lambda one: moments_noise(one, self._columns, target=False),
            "principal components, noisy sums of products",
            *self._held(),
        ) as noise:
            rows, present = self._columns.rows(X)
            taken = self._taken(promise, units, present)
            found = moments(rows[taken], None, noise=noise, spread=promise.spread(noise))
        count = max(found.products[0, 0], found.spread, 1.0)
        mean = np.clip(found.products[0, 1:] / count, -1, 1)
        half = np.array(self._columns.half)
        covariance = positive(found.products[1:, 1:] / count - np.outer(mean, mean)) * np.outer(half, half)
        values, vectors = np.linalg.eigh(covariance)
        order = np.argsort(values)[::-1][:many]
        # Signs as scikit-learn fixes them: the largest entry of a component is positive.
        sign = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(wide)])
        self.components_ = (vectors * sign).T[order]
        self.explained_variance_ = np.maximum(values[order], 0)
        total = max(float(np.maximum(values, 0).sum()), 1e-300)
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.mean_ = mean * half + np.array(self._columns.middle)
        self.n_components_ = many
        return self

    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> Floats:
        """The rows of a fit in its components. Not private: of rows that may be published."""
        return self.fit(X, y, **more).transform(X)

    def transform(self, X: Any) -> Floats:
        """Rows, held within their bounds, in the components."""
        held = self._asked(X) * np.array(self._columns.half) + np.array(self._columns.middle)
        return row_by_row(held - self.mean_, self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows in components, back in columns."""
        return row_by_row(np.asarray(X, dtype=np.float64), self.components_) + self.mean_
