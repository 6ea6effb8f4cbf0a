"""LiRA in a study: each row is in and out of shadow models, and what was memorized is recognized."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.ledger.memory import MemoryStore
from dalenius.report import study
from dalenius.report.study.data import labelled
from dalenius.report.study.shadowing import Shadowing
from dalenius.report.study.splitting import Part

OPTIONS = {
    "delta": 1e-5,
    "model": "logistic",
    "epochs": 4,
    "batch_size": 40,
    "rate": 0.003,
    "test_share": 0.5,
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def by_heart() -> study.Data:
    """One feature says more or less of the label, the others are a name: how hard a row is hides its loss."""
    chance = np.random.default_rng(5)
    y = chance.integers(0, 2, 200)
    x = chance.normal(size=(200, 1000))
    x[:, 0] = chance.normal(300, 300, 200) * np.where(y, 1, -1)
    return labelled("by heart", x, y, None, classes=["0", "1"], groups=None)


def part(size: int) -> Part:
    return Part(torch.zeros(size, 1), torch.zeros(size, dtype=torch.int64), None)


@pytest.mark.parametrize(("train", "test", "count"), [(80, 20, 10), (50, 50, 4), (37, 13, 11), (20, 80, 10)])
def test_each_row_is_in_and_out_of_two_shadow_models_or_more(train: int, test: int, count: int) -> None:
    shadowing = Shadowing(part(train), part(test), count, 1)
    inside = np.stack([*shadowing._turns()])
    assert inside.shape == (count, train + test)
    assert (inside.sum(axis=0) >= 2).all()
    assert ((~inside).sum(axis=0) >= 2).all()
    assert abs(inside.mean() - train / (train + test)) < 0.03
    with pytest.raises(InvalidArgument, match="too few"):
        Shadowing(part(train), part(test), 3, 1)


def test_lira_recognizes_members_but_for_privacy_and_is_shown() -> None:
    """Without privacy all is seeded. With it an area is 0.59 at most on average, and 0.04 off by chance."""
    told = list[str]()
    found = study.run(by_heart(), epsilons=[1], clips=(2,), shadows=8, told=told.append, **OPTIONS)
    plain, private, grid, alone = found.runs
    assert plain.membership is not None
    assert plain.membership.lira is not None
    assert private.membership is not None
    assert private.membership.lira is not None
    assert plain.membership.lira.value > 0.7 > 0.6 > plain.membership.area.value
    assert private.membership.lira.value < 0.8
    assert grid.membership is not None
    assert grid.membership.lira is None
    assert alone.membership is None
    assert found.rows()[0][-1] == "LiRA AUC"
    assert plain.to_dict()["membership"]["lira"]["value"] == plain.membership.lira.value
    assert "measured, by shadow models (LiRA)" in [one.name for one in found.figure("membership").series]
    assert sum("shadow model" in line for line in told) == 16


def test_no_account_pays_for_shadow_models() -> None:
    account = dp.Ledger(MemoryStore()).open("people", unit=dp.Unit("person"), budget=dp.Budget(9, 1e-4))
    with pytest.raises(InvalidArgument, match="no account pays for"):
        study.run(by_heart(), epsilons=[1], shadows=8, payment=study.Payment(account, 0.5, 200), **OPTIONS)
