"""What public numbers tell is refused before it is charged, and what the refusal proposes works."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import dalenius as dp
from dalenius.errors import DaleniusError, InvalidArgument
from dalenius.learn import tabular
from dalenius.learn.tabular import boosting, descent
from tests.learn.tabular.models import PURE, made, rows

X, Y = rows(40)
EPSILONS = (1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1, 100)
DELTAS = (0, 1e-300, 1e-6, 0.5)


def account() -> Any:
    """One that takes everything."""
    budget = dp.Budget(epsilon=1000, delta=0.9)
    return dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=budget)


def refused(model: Any, x: Any = X, y: Any = Y, **more: Any) -> DaleniusError | None:
    """Why it is not fitted; nothing may have been charged then."""
    try:
        model.fit(x, y, **more)
    except DaleniusError as found:
        assert [one.event for one in model.account.entries()] == ["open"], str(found)
        return found
    return None


@pytest.mark.parametrize("name", [*PURE, "gradient", "two", "two trees"])
@pytest.mark.parametrize("delta", DELTAS)
def test_noise_that_cannot_be_drawn_costs_nothing(name: str, delta: float) -> None:
    if name in (("objective",) if delta else ("gradient", "two")):
        pytest.skip("refused whatever the epsilon")
    seen = 0
    for epsilon in EPSILONS[:4] if name == "clusters" else EPSILONS:
        for each in (1, 10**6):
            model = made(name, epsilon=epsilon, delta=delta, rows_per_unit=each, account=account())
            found = refused(model)
            if found is None:
                continue
            seen += 1
            assert isinstance(found, InvalidArgument) and model.purpose in str(found)
            asked = {
                k: float(v) for k, v in re.findall(r"(epsilon|rows_per_unit)=([0-9.e+-]+)", found.remedy)
            }
            assert asked
            made(name, delta=delta, **{"epsilon": epsilon, "rows_per_unit": each, **asked}).fit(X, Y)
    assert seen or delta >= 1e-6, "noise is too wide somewhere"


@pytest.mark.parametrize("name", ["gradient", "trees"])
def test_the_widest_noise_is_drawn_where_it_was_charged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many steps and trees there are is chosen in view of rows, and was counted as the most it may be."""
    monkeypatch.setattr(descent, "LEAST_STEPS", descent.MOST_STEPS)
    monkeypatch.setattr(boosting, "enough", lambda *_: boosting.MOST_TREES)
    for power in range(-29, 0):
        model = made(name, epsilon=2.0**power, delta=1e-6 if name == "gradient" else 0, account=account())
        if name == "trees":
            model.set_params(trees=None)
        if refused(model) is None:
            assert power > -20
            return
    raise AssertionError


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (tabular.CategoricalNB(epsilon=1, classes=[0, 1], categories=10**6), 100),
        (tabular.KMeans(10**5, epsilon=1, bounds=(0, 1)), 1000),
        (tabular.LogisticRegression(epsilon=1, bounds=(0, 1), classes=list(range(100))), 100),
    ],
)
def test_more_than_a_machine_holds_costs_nothing(model: Any, columns: int) -> None:
    found = refused(model.set_params(account=account()), np.zeros((4, columns)), np.arange(4) % 2)
    assert isinstance(found, InvalidArgument) and "fewer columns" in found.remedy


@pytest.mark.parametrize("name", [*PURE, "gradient"])
def test_types_are_refused_before_the_charge(name: str) -> None:
    """A type is a fact of the schema, known before a row is read."""
    given = {"epsilon": 1, "delta": 1e-6 if name == "gradient" else 0}
    texts, days = X.astype("U8"), np.zeros(40, "M8[D]")
    assert refused(made(name, **given, account=account()), texts) is not None
    for units in (days, np.zeros((40, 1), int), np.zeros(40), np.arange(41)):
        assert refused(made(name, **given, account=account()), units=units) is not None
    if name == "linear":
        assert refused(made(name, **given, account=account()), y=Y.astype("U3")) is not None


@pytest.mark.parametrize("name", [*PURE, "gradient"])
def test_numbers_beyond_floats_are_refused_before_the_charge(name: str) -> None:
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6 if name == "gradient" else 0}
    wrong: list[dict[str, Any]] = [{"delta": Decimal("1e-400")}]
    if name in ("objective", "gradient", "linear"):
        wrong += [{"ridge": Decimal("1e400")}, {"ridge": 1e200}]
    for change in wrong:
        found = refused(made(name, **{**given, "account": account()}).set_params(**change))
        assert isinstance(found, InvalidArgument) and found.remedy
