"""A unit's shard follows from the unit alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from dalenius.errors import InvalidArgument
from dalenius.learn.shards import fresh_key, shards

ALARM = 1e-7


def placed(parts: list[np.ndarray], rows: int) -> np.ndarray:
    found = np.full(rows, -1)
    for number, part in enumerate(parts):
        assert (found[part] == -1).all(), "shards are disjoint"
        found[part] = number
    assert (found >= 0).all(), "every row is in one"
    return found


def test_all_rows_of_a_unit_are_in_one_shard_and_others_stay_where_they_are() -> None:
    key, units = fresh_key(), np.random.default_rng(0).integers(0, 40, 300)
    whole = placed(shards(300, 7, units=units, key=key), 300)
    for unit in range(40):
        assert len(set(whole[units == unit])) == 1
    left = units != units[0]
    without = placed(shards(int(left.sum()), 7, units=units[left], key=key), int(left.sum()))
    assert (without == whole[left]).all()
    order = np.random.default_rng(1).permutation(300)
    assert (placed(shards(300, 7, units=units[order], key=key), 300) == whole[order]).all()


def test_names_of_units_count_and_not_their_types() -> None:
    key = fresh_key()
    one = shards(3, 50, units=np.array([1, 2, 3]), key=key)
    two = shards(3, 50, units=[1.0, 2, np.int32(3)], key=key)
    assert all((a == b).all() for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("units", [None, np.arange(60_000)])
def test_shards_are_about_as_large(units: np.ndarray | None) -> None:
    sizes = np.array([len(part) for part in shards(60_000, 30, units=units)])
    statistic = float(((sizes - 2000) ** 2 / 2000).sum())
    assert chi2.sf(statistic, 29) > ALARM


def test_other_keys_give_other_shards() -> None:
    units = np.arange(200)
    one, two = (placed(shards(200, 10, units=units), 200) for _ in range(2))
    assert (one != two).any()


def test_no_row_and_one_shard() -> None:
    assert [len(part) for part in shards(0, 3)] == [0, 0, 0]
    assert [len(part) for part in shards(0, 3, units=[])] == [0, 0, 0]
    assert shards(4, 1)[0].tolist() == [0, 1, 2, 3]


def test_wrong_input() -> None:
    with pytest.raises(InvalidArgument, match="count"):
        shards(3, 0)
    with pytest.raises(InvalidArgument, match="differ in length"):
        shards(3, 2, units=[1, 2])
