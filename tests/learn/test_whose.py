"""Two ids are one unit only where they are the same, whatever library they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.learn import tabular
from dalenius.learn.pate import Teachers
from dalenius.learn.sampling.members import members
from dalenius.learn.shards import shard_numbers, shards
from dalenius.learn.whose import NOBODY, check_units, counted, owners
from dalenius.mechanisms.contributions import kept

FIRST = 2**60
NEAR = [FIRST, FIRST + 1, FIRST + 2, -FIRST, -FIRST - 1]
"""One number as floats, or two."""
HOLES = {
    "list": lambda ids: ids,
    "objects": lambda ids: np.array(ids, dtype=object),
    "pandas": lambda ids: pd.Series(ids, dtype="Int64"),
    "pandas on Arrow": lambda ids: pd.Series(ids, dtype="int64[pyarrow]"),
    "polars": lambda ids: pl.Series(ids, dtype=pl.Int64),
    "Arrow": lambda ids: pa.array(ids, type=pa.int64()),
    "chunks": lambda ids: pa.chunked_array([ids], type=pa.int64()),
    "masked": lambda ids: np.ma.array(
        [0 if one is None else one for one in ids], mask=[one is None for one in ids], dtype=np.int64
    ),
}


@pytest.mark.parametrize("kind", HOLES)
def test_large_ids_stay_apart_where_one_is_missing(kind: str) -> None:
    ids = HOLES[kind]([*NEAR, None, *NEAR])
    check_units(ids, 11)
    names, unit = owners(ids)
    assert len({*unit.tolist()} - {NOBODY}) == len(NEAR), names
    assert unit.tolist()[:5] == unit.tolist()[6:] and unit[5] == NOBODY
    assert counted(ids, 1).sum() == len(NEAR)
    assert kept(ids, 1).sum() == len(NEAR)


@pytest.mark.parametrize("kind", ["int64", "uint64", "U20", "S20"])
def test_columns_of_whole_numbers_and_texts_are_exact(kind: str) -> None:
    ids = np.array([FIRST, FIRST + 1, FIRST, 2**62 + 1, 2**62], dtype=np.int64).astype(kind)
    assert owners(ids)[1].tolist().count(owners(ids)[1][0]) == 2
    assert counted(ids, 1).sum() == 4


def test_the_same_id_is_one_unit_in_every_type() -> None:
    """A null may turn a column of one type into another."""
    expected = owners(np.array([7, 2**40]))[0]
    assert {*owners([7, 2**40])[0]} == {*expected} == {*owners(pd.Series([7, 2**40], dtype="Int64"))[0]}


def test_what_is_no_id_belongs_to_nobody() -> None:
    """As in SQL: neither an error nor a unit that several people share."""
    odd = [None, float("nan"), 0.5, 7.0, float("inf"), 2.0**53, 1e300, np.float64("nan"), pd.NA]
    assert (owners([*odd, 3])[1] == NOBODY).tolist() == [True] * len(odd) + [False]
    assert counted([*odd, 3], 1).sum() == 1
    assert owners([])[1].tolist() == [] and counted([], 1).tolist() == []


def test_floats_are_refused_by_their_type() -> None:
    """Whatever they are: that one of them is too large would tell of it."""
    rows, labels = np.zeros((4, 2)), np.arange(4) % 2
    model = tabular.GaussianNB(epsilon=1, bounds=(-1, 1), classes=[0, 1])
    account = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=9))
    asks: list[Any] = [
        lambda ids: model.set_params(account=account).fit(rows, labels, units=ids),
        lambda ids: dp.learn.evaluate(
            lambda x: x[:, 0] > 0,
            (rows, labels),
            classes=[0, 1],
            units=ids,
            rows_per_unit=1,
            epsilon=1,
            account=account,
        ),
        lambda ids: dp.learn.Ensemble.train(lambda x, y: None, (rows, labels), models=2, units=ids),
        lambda ids: shard_numbers(4, 2, units=ids),
    ]
    for ids in (
        np.arange(4.0),
        pd.Series([1, 2, None, 3]),
        np.full(4, np.nan),
        np.arange(4, dtype=np.float32),
    ):
        for ask in asks:
            with pytest.raises(InvalidArgument, match="floats") as refused:
                ask(ids)
            assert "Int64" in refused.value.remedy
    assert len(account.entries()) == 1, "nothing was charged"


def test_rows_of_nobody_are_in_no_shard() -> None:
    ids = [1, None, 2, None, 1]
    assert sorted(np.concatenate(shards(5, 3, units=ids)).tolist()) == [0, 2, 4]
    assert len(shards(5, 3, units=ids)) == 3 == len(shards(2, 3, units=[None, None]))
    alone = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])

    class Remembers:
        seen: list[float] = []  # noqa: RUF012

        def fit(self, x: Any, y: Any) -> Remembers:
            self.seen.extend(np.ravel(x).tolist())
            return self

        def predict(self, x: Any) -> Any:
            return np.zeros(len(x), int)

    teachers = Teachers(Remembers(), (alone, np.arange(5) % 2), count=3, classes=2, units=ids)
    Remembers.seen.clear()
    teachers.train()
    assert sorted(Remembers.seen) == [0, 2, 4]


def test_two_large_ids_are_two_people_in_training() -> None:
    assert members(5, np.array(NEAR), 1).count == len(NEAR)
    for ids in (np.arange(5.0), pd.Series([1, 2, 3, 4, None])):
        with pytest.raises(InvalidArgument, match="whole numbers"):
            members(5, ids, 1)


@pytest.mark.parametrize("kind", HOLES)
def test_a_row_without_an_id_takes_no_part_in_training(kind: str) -> None:
    """Neither does it raise: that one row has no id would tell of it."""
    found = members(6, HOLES[kind]([*NEAR, None]), 1)
    assert found.count == len(NEAR) and found.rows == 6
    assert 5 not in found.order.tolist()
    whole = members(5, HOLES[kind](NEAR), 1)
    assert whole.order.tolist() == found.order.tolist() == np.argsort(NEAR).tolist()


@pytest.mark.parametrize(
    "odd", [None, pd.NA, float("nan"), "", "ann", 10**5000, [1]], ids=lambda odd: type(odd).__name__
)
def test_one_odd_id_does_not_end_a_training_run(odd: Any) -> None:
    import torch

    model = torch.nn.Linear(2, 1)
    private = dp.learn.Private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (torch.ones(6, 2), torch.ones(6, 1)),
        batch_size=2,
        steps=2,
        clip=1,
        noise_multiplier=1,
        public_size=6,
        units=[1, 2, 3, odd, 1, 2],
        rows_per_unit=2,
    )
    for x, y in private.batches():
        private.zero_grad()
        torch.nn.functional.mse_loss(private.model(x), y).backward()
        private.step()
    assert private.steps == 2


def test_people_with_near_ids_are_each_counted_in_a_fit() -> None:
    """At hardly any noise the counts tell how many people there were."""
    ids = pd.Series([*NEAR, None] * 4, dtype="Int64")
    model = tabular.CategoricalNB(epsilon=1000, categories=1, classes=[0, 1])
    labels = np.array([1, 1, 1, 1, 0, 0] * 4)
    model.fit(np.zeros((24, 1)), labels, units=ids)
    assert model.class_prior_[1] == pytest.approx((4 + 1) / (5 + 2), abs=1e-3)
