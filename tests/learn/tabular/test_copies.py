"""Copies and clones charge the same account; a model that was written has none until it is given one."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import dalenius as dp
from dalenius.errors import InvalidArgument
from tests.learn.tabular.models import NAMES, made, rows

X, Y = rows(120)


def fitted(name: str, tmp_path: Path) -> Any:
    ledger = dp.Ledger(tmp_path / "people.ledger")
    people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=200, delta=1e-4))
    delta = 1e-6 if name == "gradient" else 0
    return made(name, epsilon=1, delta=delta, account=people, by="ana").fit(X, Y)


def charges(model: Any) -> int:
    return sum(entry.event == "reserve" for entry in model.account.entries())


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_written_without_its_account(name: str, tmp_path: Path) -> None:
    model = fitted(name, tmp_path)
    text, file = pickle.dumps(model), io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for read in (pickle.loads(text), joblib.load(file), copy.deepcopy(pickle.loads(text))):
        assert read.receipt_ == model.receipt_ and str(tmp_path) not in repr(read)
        asked = "predict" if hasattr(model, "predict") else "transform"
        assert np.array_equal(getattr(read, asked)(X), getattr(model, asked)(X))
        for one in (read, clone(read), pickle.loads(pickle.dumps(read))):
            with pytest.raises(InvalidArgument, match="account it charged was left out"):
                one.fit(X, Y)
        assert read.set_params(account=None).fit(X, Y).receipt_.entry is None
    assert charges(model) == 1
    assert read.set_params(account=model.account).fit(X, Y).receipt_.entry is not None
    assert charges(model) == 2


def test_copies_charge_the_same_account(tmp_path: Path) -> None:
    model = fitted("gaussian", tmp_path)
    for other in (copy.copy(model), copy.deepcopy(model), clone(model), copy.deepcopy([model])[0]):
        assert other.account is model.account
        assert other.fit(X, Y).receipt_.entry is not None
    assert charges(model) == 5
    theta = model.theta_.copy()
    copy.deepcopy(model).theta_[:] = 0
    assert np.array_equal(model.theta_, theta)


def test_searches_charge_every_fit(tmp_path: Path) -> None:
    model = fitted("gaussian", tmp_path)
    cross_val_score(model, X, Y, cv=3, error_score="raise")
    assert charges(model) == 1 + 3
    with joblib.parallel_backend("threading"):
        cross_val_score(model, X, Y, cv=3, n_jobs=2, error_score="raise")
    assert charges(model) == 1 + 3 + 3
    GridSearchCV(model, {"epsilon": [1, 2]}, cv=2, error_score="raise").fit(X, Y)
    assert charges(model) == 1 + 3 + 3 + 2 * 2 + 1


def test_an_account_is_not_written(tmp_path: Path) -> None:
    account = fitted("gaussian", tmp_path).account
    with pytest.raises(InvalidArgument, match=r"ledger\.account\('people'\)"):
        pickle.dumps(account)
    assert copy.copy(account) is copy.deepcopy(account) is account
