"""`LogisticRegression`: a linear model of classes, by noisy gradients or by objective perturbation.

>>> import numpy as np
>>> x = np.cos(np.arange(1000.0) ** 2).reshape(500, 2)
>>> model = LogisticRegression(epsilon=2, bounds=(-1, 1), classes=[0, 1]).fit(x, (x[:, 0] > 0) * 1)
>>> model.receipt_.cost
'epsilon 2'
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.learn.tabular import descent, objective
from dalenius.learn.tabular.columns import codes, read_classes
from dalenius.learn.tabular.estimator import Classifier, read_ridge
from dalenius.learn.tabular.objective import Objective
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.sums import ONE, Floats, row_by_row
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release.receipt import EXACT


class LogisticRegression(Classifier):
    """A linear model of two classes or more.

    `bounds` hold each column; rows may be held within `l1_norm` and `l2_norm` too, both after a column was
    scaled to [−1, 1], or [0, 1] where its least is 0: eight groups of one-hot columns have an l2_norm of √8.
    `method` is "objective" (the only one without a delta) or "gradient" (with one): None takes that. `ridge`
    is the strength of regularisation, by noise where it is left out, `public_size` a number of rows that
    may be published, counted under noise where it is left out. `coef_` and `intercept_` are for scaled
    columns.
    """

    purpose = "logistic regression"
    coef_: Floats
    intercept_: Floats

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        bounds: Any = None,
        classes: Any = None,
        l1_norm: Number | None = None,
        l2_norm: Number | None = None,
        method: str | None = None,
        ridge: Number | None = None,
        steps: int | None = None,
        public_size: int | None = None,
        rows_per_unit: int = 1,
        relation: str | None = None,
        account: Any = None,
        by: str = "",
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.l1_norm, self.l2_norm, self.method, self.ridge = l1_norm, l2_norm, method, ridge
        self.steps, self.public_size = steps, public_size
        self.rows_per_unit, self.relation, self.account, self.by = rows_per_unit, relation, account, by

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Weights from rows and their labels; `units` says whose each row is."""
        promise, classes = self._promise(), read_classes(self.classes)
        self._read(X, y=self._labels(y), units=units)
        method = self._method(promise.pure)
        ridge = None if self.ridge is None else read_ridge(self.ridge)
        steps = None if self.steps is None else numbers.count(self.steps, "steps", most=10**4)
        public = None if self.public_size is None else numbers.count(self.public_size, "public_size")
        how, held = f"logistic regression, {method} perturbation", self._held()
        many, known = len(classes), {"steps": steps, "public_size": public}

        def noises(one: Promise) -> Objective | None:
            if method == "objective":
                return objective.plan(one, self._columns, many, ridge or Fraction(0))
            descent.noises(one, self._columns, many, **known)
            return None

        stated, numerics = None, EXACT
        if method == "objective":
            stated, numerics = objective.loss_of(promise), objective.NUMERICS
        with self._charged(promise, noises, how, *held, stated=stated, numerics=numerics) as plan:
            found, present = self._columns.rows(X)
            taken = self._taken(promise, units, present)
            labels = np.where(taken, codes(y, classes), -1)
            rows = np.hstack([np.full((len(found), 1), float(ONE)), found])
            if plan is not None:
                weights = plan.minimum(rows, labels)
            else:
                weights = descent.descend(
                    rows,
                    labels,
                    many,
                    columns=self._columns,
                    promise=promise,
                    ridge=None if ridge is None else float(ridge),
                    **known,
                )
        self.classes_ = np.asarray(classes)
        self.coef_, self.intercept_ = weights[:, 1:], weights[:, 0]
        return self

    def _method(self, pure: bool) -> str:
        chosen = self.method or ("objective" if pure else "gradient")
        if chosen not in ("objective", "gradient"):
            raise InvalidArgument(
                "method must be objective or gradient.", remedy="Pass method as one of these names, or none."
            )
        if chosen == "gradient" and pure:
            raise InvalidArgument(
                "Noisy gradients without a delta would need far more noise.",
                remedy="Pass a delta such as 1e-6, or method='objective'.",
            )
        return chosen

    def decision_function(self, X: Any) -> Floats:
        """How far on the side of the second class a row is; a column for each class where there are more."""
        found = row_by_row(self._asked(X), self.coef_.T) + self.intercept_
        return found[:, 0] if len(self.classes_) == 2 else found

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`."""
        margins = self.decision_function(X)
        if margins.ndim == 1:
            margins = np.column_stack([np.zeros_like(margins), margins])
        powers = np.exp(margins - margins.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))
