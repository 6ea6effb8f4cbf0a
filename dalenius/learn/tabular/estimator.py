"""What all estimators share: parameters as scikit-learn reads them, a promise, a charge, a receipt.

scikit-learn is not imported: an estimator has the methods that its tools ask for (`parameters`, `fit`,
`score`), so that pipelines, searches and `clone` take it as one of theirs. Whoever fits again, also inside of
a search, pays again.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Self, cast

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument, RelationMismatch
from dalenius.learn.tabular.affording import Made, afforded
from dalenius.learn.tabular.columns import Columns, none_of, read_columns, same_length, width_of
from dalenius.learn.tabular.parameters import LEFT_OUT, Parameters
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.sums import Floats
from dalenius.learn.whose import check_rows, check_units, counted
from dalenius.ledger.account import Account
from dalenius.losses.loss import Loss
from dalenius.mechanisms.contributions import table
from dalenius.privacy import numbers
from dalenius.privacy.unit import read_relation
from dalenius.release.receipt import EXACT, Receipt


class Estimator(Parameters, ABC):
    """A model that is fitted under a promise. `receipt_`, `loss_` and `spent_` are there after a fit."""

    epsilon: Any
    delta: Any
    bounds: Any
    relation: Any
    rows_per_unit: Any
    by: str
    purpose: ClassVar[str]
    receipt_: Receipt
    loss_: Loss
    spent_: Loss
    n_features_in_: int
    _columns: Columns

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Read the rows once, under the promise."""

    def _promise(self) -> Promise:
        """What is promised, by public parameters alone."""
        if self.epsilon is None:
            raise InvalidArgument(
                f"{type(self).__name__} needs epsilon: how much the fit may reveal.",
                remedy="Pass epsilon=1, and delta=1e-6 where a small chance of failure is allowed.",
            )
        return Promise(
            numbers.epsilon(self.epsilon),
            read_delta(self.delta),
            self._relation(),
            numbers.count(self.rows_per_unit, "rows_per_unit", most=10**6),
        )

    def _bounds(self) -> Any:
        """The least and the most of each column."""
        return self.bounds

    def _relation(self) -> Any:
        if self.account is LEFT_OUT:
            raise InvalidArgument(
                "This model was written and read again, and the account it charged was left out.",
                remedy="Call set_params(account=ledger.account(…)), or set_params(account=None) for a fit "
                "that is not charged.",
            )
        if self.account is not None and not isinstance(self.account, Account):
            raise InvalidArgument("account must be an Account.", remedy="Pass ledger.account(…), or nothing.")
        if self.relation is not None:
            asked = read_relation(self.relation)
            if self.account is not None and asked != self.account.unit.relation:
                raise RelationMismatch(
                    f"The account is for {self.account.unit.relation} and relation is {asked}.",
                    remedy="Leave relation out: it is then the account's.",
                )
            return asked
        return "add_remove" if self.account is None else self.account.unit.relation

    def _read(self, data: Any, *, centered: bool = False, **more: Any) -> None:
        """Check what is public of a table: columns and their bounds, whose rows are, that lengths agree."""
        if self.account is not None:
            check_rows(self.account.unit, by_unit=more.get("units") is not None)
        self.n_features_in_ = width_of(data)
        table(none_of(data), self.n_features_in_)
        norms = {name: getattr(self, name, None) for name in ("l1_norm", "l2_norm")}
        self._columns = read_columns(self._bounds(), self.n_features_in_, centered=centered, **norms)
        for name, other in more.items():
            if other is not None:
                same_length(data, other, name)
        if more.get("units") is not None:
            check_units(more["units"], len(more["units"]))

    @contextmanager
    def _charged(
        self,
        promise: Promise,
        make: Callable[[Promise], Made],
        how: str,
        *bounds: str,
        stated: Loss | None = None,
        numerics: str = EXACT,
    ) -> Iterator[Made]:
        """Make the noise, charge before data is read; the receipt is there when all went well.

        `make` gives all noise that may be drawn, from public numbers: what it cannot give costs nothing.
        """
        made = afforded(promise, make, self.purpose)
        most, loss = promise.rows, promise.loss if stated is None else stated
        each = () if most == 1 else (f"at most {most} rows per unit",)
        receipt = Receipt(
            loss=loss,
            mechanism=how,
            numerics=numerics,
            bounds=("columns held within their stated bounds", *bounds, *each),
            tainted=noise.tainted(),
            delta=promise.delta,
        )
        if self.account is None:
            yield made
        else:
            with self.account.reserve(loss, by=self.by, purpose=self.purpose) as reservation:
                receipt = replace(receipt, unit=self.account.unit_for(loss), entry=reservation.line())
                yield made
                reservation.end("commit")
        self.receipt_, self.loss_, self.spent_ = receipt, loss, loss

    def _held(self) -> tuple[str, ...]:
        """The norms that rows were held within, where they were stated."""
        names = {"l1_norm": "L1", "l2_norm": "L2"}
        stated = {
            word: getattr(self, name) for name, word in names.items() if getattr(self, name) is not None
        }
        return tuple(f"rows of {word} norm at most {float(norm):g}" for word, norm in stated.items())

    def _labels(self, y: Any) -> Any:
        """A label for each row, or the reason why there is none."""
        if y is None:
            raise InvalidArgument(
                f"{type(self).__name__} requires y to be passed, but the target y is None.",
                remedy="Call fit(X, y) with a label for each row.",
            )
        if getattr(y, "ndim", 1) != 1:
            raise InvalidArgument(
                "y must be one column.", remedy="Pass y.ravel(), an array of one dimension."
            )
        return y

    def _taken(self, promise: Promise, units: Any, present: Any) -> Any:
        """Which rows count: those that are whole, and of each unit as many as it may have."""
        return present if units is None else present & counted(units, promise.rows)

    def _asked(self, data: Any) -> Floats:
        """Rows to be predicted, scaled as those of the fit."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted()(
                f"This {type(self).__name__} is not fitted yet.", remedy="Call fit with rows first."
            )
        width = width_of(data)
        if width != self.n_features_in_:
            raise InvalidArgument(
                f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input.",
                remedy="Pass rows with the columns of the fit.",
            )
        return self._columns.scaled(data)


def _not_fitted() -> type[InvalidArgument]:
    """The error of an estimator that is asked too early: also scikit-learn's own, where that is loaded."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return InvalidArgument
    return cast(type[InvalidArgument], type("NotFitted", (InvalidArgument, theirs.NotFittedError), {}))


def read_ridge(value: object) -> Fraction:
    """The strength of a regularisation."""
    found = numbers.non_negative(value, "ridge")
    if found > MOST_RIDGE:
        raise InvalidArgument(
            "ridge is above 1e100.", remedy="Choose ridge from 0 to 1e100, or leave it out."
        )
    return found


def read_delta(value: object) -> Fraction:
    """A chance of failure that noise can be made for."""
    found = numbers.delta(value)
    if 0 < found < LEAST_DELTA:
        raise InvalidArgument("delta is above 0 and below 1e-300.", remedy="Pass delta=0, or 1e-300 or more.")
    return found


MOST_RIDGE, LEAST_DELTA = 10**100, Fraction(1, 10**300)


class Classifier(Estimator):
    """Predicts one of the classes it was made with."""

    kind = "classifier"
    _estimator_type = "classifier"
    classes: Any
    classes_: Any

    @abstractmethod
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`."""

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row."""
        likeliest = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[likeliest]

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is predicted. Not private: of rows that may be published."""
        return float(np.mean(self.predict(X) == np.asarray(y)))


class Regressor(Estimator):
    """Predicts a number."""

    kind = "regressor"
    _estimator_type = "regressor"

    @abstractmethod
    def predict(self, X: Any) -> Floats:
        """The number that belongs to each row."""

    def score(self, X: Any, y: Any) -> float:
        """R², the share of the variance that is predicted. Not private: of rows that may be published."""
        truth = np.asarray(y, dtype=np.float64)
        left, whole = np.square(truth - self.predict(X)).sum(), np.square(truth - truth.mean()).sum()
        return float(1 - left / whole) if whole > 0 else float(left == 0)
