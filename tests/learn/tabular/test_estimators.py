"""What every estimator promises: receipts, charges, errors with remedies, and to work with scikit-learn."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import dalenius as dp
from dalenius.errors import BudgetExceeded, InvalidArgument, RelationMismatch
from dalenius.learn import tabular
from tests.learn.tabular.models import NAMES, made, rows

X, Y = rows(400)

RANDOM = "a fit is random: noise that could be drawn again would protect nobody"
DECLARED = "classes are declared and never taken from the data, and the check fits others than these"
PRIVATE = "an error about a value, or about how many rows there are, would tell of them"
LISTED = "rows are an array or a data frame: how long the first of a list is would be told by it alone"
EXPECTED = {
    "check_fit_idempotent": RANDOM,
    "check_regressors_int": RANDOM,
    "check_classifiers_classes": DECLARED,
    "check_classifiers_train": DECLARED,
    "check_classifiers_regression_target": DECLARED,
    "check_decision_proba_consistency": DECLARED,
    "check_dtype_object": PRIVATE,
    "check_estimators_empty_data_messages": PRIVATE,
    "check_supervised_y_no_nan": PRIVATE,
    "check_regressors_train": LISTED,
    "check_supervised_y_2d": "y is one column; a table of one is refused with the remedy, not flattened",
    "check_classifier_data_not_an_array": LISTED,
    "check_regressor_data_not_an_array": LISTED,
    "check_transformer_data_not_an_array": LISTED,
}
"""Checks of scikit-learn that a private estimator does not pass, and why."""


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learn_checks_it(name: str) -> None:
    delta = 1e-6 if name == "gradient" else 0
    model = made(name, epsilon=50, delta=delta)
    if name == "trees":
        model.set_params(categorical=())
    model.set_params(**({"categories": 10} if name == "categorical" else {"bounds": (-10, 10)}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, expected_failed_checks=EXPECTED, on_fail=None, on_skip=None)
    failed = [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"]
    assert not failed
    assert sum(one["status"] == "passed" for one in found) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_is_charged_and_says_so(name: str, tmp_path: Path) -> None:
    ledger = dp.Ledger(tmp_path / "people.ledger")
    account = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=2.2, delta=1e-5))
    delta = 1e-6 if name == "gradient" else 0
    model = made(name, epsilon=2, delta=delta, account=account, by="ana").fit(X, Y)
    receipt = model.receipt_
    assert receipt.entry is not None and receipt.entry.account == "people"
    assert receipt.loss == model.loss_ == model.spent_
    assert model.loss_.epsilon(delta).upper <= 2
    assert receipt.cost == "epsilon 2" + (" at delta 1e-06" if delta else "")
    assert [entry.event for entry in account.entries()][-2:] == ["reserve", "commit"]
    with pytest.raises(BudgetExceeded):
        clone(model).fit(X, Y)
    assert made(name, epsilon=2, delta=delta).fit(X, Y).receipt_.entry is None


def test_a_fit_that_fails_stays_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dp.Ledger(tmp_path / "people.ledger")
    account = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=3, delta=1e-5))
    seen: list[float] = []

    def broken(*_: Any, **__: Any) -> Any:
        seen.append(float(account.spent))
        raise RuntimeError("while data is read")

    monkeypatch.setattr("dalenius.learn.tabular.columns.Columns.rows", broken)
    with pytest.raises(RuntimeError):
        made("gaussian", epsilon=1, account=account).fit(X, Y)
    assert seen[0] >= 1 and float(account.spent) >= 1, "charged before data is read, and after"
    assert account.entries()[-1].event == "forfeit"


def test_the_relation_is_the_accounts(tmp_path: Path) -> None:
    ledger = dp.Ledger(tmp_path / "people.ledger")
    unit = dp.Unit("person", relation="replace")
    account = ledger.open("people", unit=unit, budget=dp.Budget(epsilon=3, delta=1e-5))
    assert made("gaussian", epsilon=1, account=account).fit(X, Y).loss_.relation == "replace"
    with pytest.raises(RelationMismatch, match="Leave relation out"):
        made("gaussian", epsilon=1, account=account, relation="add_remove").fit(X, Y)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_in_a_row_is_never_an_error(name: str) -> None:
    """Neither a warning, and rows that count for nothing change no shape."""
    delta = 1e-6 if name == "gradient" else 0
    strange = np.array([[np.nan] * 3, [np.inf] * 3, [-1e300, 1e-300, 5], [0, np.nan, 1]])
    for x, y in (
        (strange, [0, 9, None, "?"]),
        (np.zeros((0, 3)), []),
        (strange.astype(object), [0, 1, 2, 0]),
    ):
        model = made(name, epsilon=1, delta=delta).fit(x, y)
        for part in ("coef_", "theta_", "cluster_centers_", "components_", "class_prior_"):
            assert np.isfinite(getattr(model, part, 0.0)).all()
        if hasattr(model, "predict"):
            assert len(model.predict(X)) == len(X)


@pytest.mark.parametrize("name", NAMES)
def test_public_arguments_are_checked(name: str) -> None:
    given = {"epsilon": 1, "delta": 1e-6 if name == "gradient" else 0}
    wrong: list[dict[str, Any]] = [
        {"epsilon": None},
        {"epsilon": 0},
        {"rows_per_unit": 0},
        {"relation": "other"},
        {"account": 1},
    ]
    wrong += [{"bounds": None}, {"bounds": (1, -1)}, {"bounds": ([0, 0], 1)}] if name != "categorical" else []
    wrong += [{"categories": None}, {"categories": [2, 2]}] if name == "categorical" else []
    model = made(name, **given)
    wrong += [{"classes": None}, {"classes": [1]}, {"classes": [1, 1]}] if is_classifier(model) else []
    wrong += [{"target_bounds": None}] if is_regressor(model) else []
    for change in wrong:
        with pytest.raises(InvalidArgument) as refused:
            clone(model).set_params(**change).fit(X, Y)
        assert refused.value.remedy
    for x, y in ((X[:, 0], Y), (X.tolist(), Y), (X, Y[:-1]), (X[:, :0], Y), (X, None)):
        if y is None and not (is_classifier(model) or is_regressor(model)):
            continue
        if name in ("clusters", "components") and len(y) != len(X):
            continue
        with pytest.raises(InvalidArgument):
            clone(model).fit(x, y)
    with pytest.raises(InvalidArgument, match="no parameter"):
        model.set_params(other=1)
    with pytest.raises(InvalidArgument, match="differ in length"):
        clone(model).fit(X, Y, units=np.arange(3))


def test_it_works_in_pipelines_and_searches() -> None:
    model = tabular.LogisticRegression(epsilon=20, bounds=(-1, 1), classes=[0, 1])
    line = make_pipeline(FunctionTransformer(np.tanh), tabular.PCA(2, epsilon=20, bounds=(-1, 1)), model)
    label = (X[:, 0] > 0) * 1
    assert line.fit(X, label).score(X, label) > 0.7
    search = GridSearchCV(model, {"ridge": [1, 100]}, cv=2).fit(X, label)
    assert search.best_params_["ridge"] in (1, 100)
    assert "epsilon=20" in repr(model) and "delta" not in repr(model)


def test_every_model_learns() -> None:
    """At an epsilon that leaves little noise, each is near what it would be without any."""
    x, y = rows(4000, 1)
    for name, least in (("objective", 0.8), ("gaussian", 0.8)):
        assert made(name, epsilon=20).fit(x, y).score(x, y) > least, name
    assert made("trees", epsilon=20).set_params(trees=None).fit(x, y).score(x, y) > 0.75
    assert made("gradient", epsilon=20, delta=1e-6).fit(x, y).score(x, y) > 0.8
    line = x @ [1, -2, 0.5] / 4
    found = tabular.LinearRegression(epsilon=20, bounds=(-1, 1), target_bounds=(-1, 1)).fit(x, line)
    assert np.allclose(found.coef_, [0.25, -0.5, 0.125], atol=0.02) and found.score(x, line) > 0.99
    spread = x * [1, 0.2, 0.01]
    found = tabular.PCA(1, epsilon=20, bounds=(-1, 1)).fit(spread)
    assert abs(found.components_[0, 0]) > 0.999
    centers = np.array([[-0.5, -0.5, 0], [0.5, 0.5, 0.5]])
    near = centers[np.arange(4000) % 2] + 0.05 * x
    found = tabular.KMeans(2, epsilon=5, bounds=(-1, 1)).fit(near).cluster_centers_
    assert np.abs(found[np.argsort(found[:, 0])] - centers).max() < 0.1
    codes = np.column_stack([y, np.arange(4000) % 2])
    assert (
        tabular.CategoricalNB(epsilon=5, categories=[3, 2], classes=[0, 1, 2]).fit(codes, y).score(codes, y)
        > 0.99
    )


def test_neither_torch_nor_scikit_learn_is_loaded() -> None:
    code = (
        "import sys, numpy as np; from dalenius.learn import tabular as t;"
        "x = np.zeros((9, 2)); y = np.arange(9) % 2;"
        "t.GaussianNB(epsilon=1, bounds=(-1, 1), classes=[0, 1]).fit(x, y).predict(x);"
        "t.LogisticRegression(epsilon=1, bounds=(-1, 1), classes=[0, 1]).fit(x, y).predict_proba(x);"
        "t.BoostedTrees(epsilon=1, bounds=(-1, 1), classes=[0, 1]).fit(x, y).score(x, y);"
        "assert not {'torch', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rows_are_not_charged_as_people(tmp_path):
    account = dp.Ledger(tmp_path / "users.ledger").open(
        "users", unit=dp.Unit("user", column="user"), budget=dp.Budget(epsilon=9, delta=1e-5)
    )
    x, y = np.zeros((20, 2)), np.arange(20) % 2
    model = tabular.GaussianNB(epsilon=1, bounds=(-1, 1), classes=[0, 1], account=account)
    with pytest.raises(InvalidArgument, match="may be in many rows"):
        model.fit(x, y)
    assert model.fit(x, y, units=np.arange(20) // 2).receipt_.unit == account.unit
