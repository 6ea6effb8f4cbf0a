"""`LinearRegression`: least squares from noisy sums of products, with a ridge that follows from their noise.

Sufficient statistics under noise (Vu and Slavkovic 2009; with a ridge that adapts to it Wang 2018). The model
starts from the mean of the target. What is left of the sums is c = Aw + noise of a known variance s² for the
weights w, and A itself has noise too, which adds s²‖w‖². For weights of variance τ² the best linear answer
has in each direction of A, of size a, the factor a/(a² + s²(1/τ² + D)), where τ² is what ‖c‖² shows beyond
noise. All of that is post-processing.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.learn.tabular.columns import none_of, read_bounds, target
from dalenius.learn.tabular.estimator import Regressor, read_ridge
from dalenius.learn.tabular.moments import Moments, moments, moments_noise
from dalenius.learn.tabular.sums import Floats, row_by_row
from dalenius.privacy.numbers import Number


class LinearRegression(Regressor):
    """A linear model of a number within `target_bounds`, from columns within `bounds`.

    `coef_` and `intercept_` are for columns in their own units, held within their bounds. `ridge` is the
    strength of regularisation of scaled columns, by noise where it is left out.
    """

    purpose = "linear regression"
    coef_: Floats
    intercept_: float

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        bounds: Any = None,
        target_bounds: Any = None,
        l1_norm: Number | None = None,
        l2_norm: Number | None = None,
        ridge: Number | None = None,
        rows_per_unit: int = 1,
        relation: str | None = None,
        account: Any = None,
        by: str = "",
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.target_bounds = epsilon, delta, bounds, target_bounds
        self.l1_norm, self.l2_norm, self.ridge = l1_norm, l2_norm, ridge
        self.rows_per_unit, self.relation, self.account, self.by = rows_per_unit, relation, account, by

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Weights from rows and their numbers; `units` says whose each row is."""
        promise = self._promise()
        self._read(X, y=self._labels(y), units=units)
        if self.target_bounds is None:
            raise InvalidArgument(
                "The target needs bounds: the least and the most it may be, from public knowledge.",
                remedy="Pass target_bounds=(lower, upper).",
            )
        (lower,), (upper,) = read_bounds(self.target_bounds, 1)
        target(none_of(y), lower, upper)
        ridge = None if self.ridge is None else float(read_ridge(self.ridge))
        with self._charged(
            promise,
            lambda one: moments_noise(one, self._columns, target=True),
            "linear regression, noisy sums of products",
            *self._held(),
        ) as noise:
            rows, present = self._columns.rows(X)
            wanted, there = target(y, lower, upper)
            taken = self._taken(promise, units, present & there)
            found = moments(rows[taken], wanted[taken], noise=noise, spread=promise.spread(noise))
        weights = solved(found, ridge)
        half = float(upper - lower) / 2
        self._scaled = weights[1:] * half
        self.coef_ = self._scaled / np.array(self._columns.half)
        self._middle = float((lower + upper) / 2) + half * float(weights[0])
        self.intercept_ = self._middle - float(self.coef_ @ np.array(self._columns.middle))
        self._ends = float(lower), float(upper)
        return self

    def predict(self, X: Any) -> Floats:
        """The number that belongs to each row, within the bounds of the target."""
        rows = self._asked(X)
        return np.clip(row_by_row(rows, self._scaled[:, np.newaxis])[:, 0] + self._middle, *self._ends)


def solved(found: Moments, ridge: float | None) -> Floats:
    """The weights of (1, x) for a target within ±1."""
    size, spread = len(found.products), found.spread
    count = max(found.products[0, 0], spread, 1.0)
    start = float(np.clip(found.target[0] / count, -1, 1))
    left = found.target - start * found.products[:, 0]
    values, vectors = np.linalg.eigh(found.products)
    values = np.maximum(values, 0)
    known = max(float(left @ left) - size * spread**2, spread**2)
    likely = min(1.0, known / max(float(values @ values), 1e-300))
    ridges = spread**2 * (1 / likely + size) if ridge is None else ridge * values
    parts = (vectors.T @ left) * values / np.maximum(values**2 + ridges, 1e-12 * count**2)
    weights = vectors @ parts
    weights[0] += start
    return np.asarray(weights)
