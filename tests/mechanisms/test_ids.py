"""A person who leaves moves nothing but that person's records, whether the records have an id or not.

The law of each release is enumerated on all data sets of three records and on all of their neighbours: the
noise is independent in each sum, so that the largest log ratio is the sum of those of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.mechanisms import (
    BoundedMean,
    BoundedSum,
    Covariance,
    Evaluation,
    Histogram,
    Marginals,
    Variance,
)
from dalenius.privacy import Grid

IDS = [None, math.nan, 2.0**53, "a"]
"""No id, none, a float that stands for two whole numbers, and an id."""
ENDS: dict[str, Any] = {"lower": -1, "upper": 1, "scale": 2, "grid": Grid(0)}
MECHANISMS: dict[str, tuple[Any, tuple[Any, Any]]] = {
    "sum": (BoundedSum(**ENDS), (-1, 1)),
    "mean": (BoundedMean(**ENDS), (-1, 1)),
    "variance": (Variance(**ENDS | {"scale": 8}), (-1, 1)),
    "covariance": (Covariance(lower=[-1], upper=[1], scale=8, noise="laplace", bits=1), ([-1], [1])),
    "evaluation": (Evaluation(classes=["x", "y"], scale=2), (("x", "x"), ("x", "y"))),
    "histogram": (Histogram(categories=["x", "y"], scale=2), ("x", "y")),
    "marginals": (Marginals(columns={"c": 2}, marginals=[["c"]], scale=2, noise="laplace"), ([0], [1])),
}


def sums(mechanism: Any, records: list[Any], ids: list[Any]) -> tuple[int, ...]:
    if isinstance(mechanism, Histogram | Marginals):
        return tuple(mechanism.counts(records, ids).tolist())
    pair = [[one[side] for one in records] for side in (0, 1)] if isinstance(mechanism, Evaluation) else []
    rows = mechanism.rows(pair or records, ids)
    return tuple(mechanism.totals(rows).tolist())


def neighbours(values: tuple[Any, Any]) -> Iterator[tuple[list[Any], list[Any], list[int]]]:
    """Records, their ids, and the places that stay when one person leaves."""
    for records, ids in product(product(values, repeat=3), product(IDS, repeat=3)):
        people = [{0, 1, 2} & {i for i, one in enumerate(ids) if one == "a"}]
        people += [{i} for i, one in enumerate(ids) if one != "a"]
        for person in filter(None, people):
            yield [*records], [*ids], [i for i in range(3) if i not in person]


def largest_ratio(mechanism: Any, apart: tuple[int, ...]) -> float:
    return sum(map(ratio_of(mechanism), map(abs, apart)))


def ratio_of(mechanism: Any) -> Callable[[int], float]:
    law = mechanism.parts[0][0] if hasattr(mechanism, "parts") else mechanism.additive

    @cache
    def ratio(steps: int) -> float:
        near, far = (law.probabilities(k) for k in (0, steps))
        masses = dict(zip(far.outcomes, far.masses.tolist(), strict=True))
        pairs = zip(near.outcomes, near.masses.tolist(), strict=True)
        return max(abs(math.log(mass / masses[one])) for one, mass in pairs if one in masses)

    return ratio


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_person_moves_the_law_by_more_than_the_loss(name: str) -> None:
    mechanism, values = MECHANISMS[name]
    claimed = float(mechanism.loss.epsilon(0).upper)
    moves = set()
    for records, ids, stay in neighbours(values):
        with_one = sums(mechanism, records, ids)
        without = sums(mechanism, [records[i] for i in stay], [ids[i] for i in stay])
        moves.add(tuple(a - b for a, b in zip(with_one, without, strict=True)))
    worst = max(largest_ratio(mechanism, apart) for apart in moves)
    assert worst <= claimed + 1e-9
    assert worst > 0, "a person with an id counts"


@pytest.mark.parametrize("kind", [BoundedSum, BoundedMean, Variance])
def test_under_replace_a_record_without_an_id_counts_as_one_without_a_number(kind: Any) -> None:
    """Left out, it would change the number of records, which is public there."""
    mechanism = kind(lower=5, upper=7, scale=2, grid=Grid(0), relation="replace")
    found = mechanism.rows([6, 6, 6], ["a", None, 2.5])
    assert found.tolist() == mechanism.vectors([6, None, math.nan]).tolist()


def released(ids: Any) -> list[Callable[[], Any]]:
    rows, labels = np.zeros((3, 1)), ["x", "x", "y"]
    ends: dict[str, Any] = {"lower": 0, "upper": 1, "epsilon": 1}
    return [
        lambda: dp.count(labels, epsilon=1, ids=ids),
        lambda: dp.sum([1, 1, 1], ids=ids, **ends),
        lambda: dp.mean([1, 1, 1], ids=ids, **ends),
        lambda: dp.histogram(labels, categories=["x", "y"], epsilon=1, ids=ids),
        *(lambda kind=kind: kind(**ENDS).release([1, 1, 1], ids=ids) for kind in (BoundedSum, Variance)),
        lambda: MECHANISMS["covariance"][0].release(rows, ids=ids),
        lambda: MECHANISMS["evaluation"][0].release((labels, labels), ids=ids),
        lambda: MECHANISMS["histogram"][0].release(labels, ids=ids),
        lambda: MECHANISMS["marginals"][0].release(rows, ids=ids),
    ]


@pytest.mark.parametrize(
    "ids", [np.array([1.0, 2, 3]), pd.Series([10**17, None, 10**17 + 1])], ids=["floats", "CSV"]
)
def test_a_column_of_floats_is_refused_as_ids(ids: Any) -> None:
    for ask in released(ids):
        with pytest.raises(InvalidArgument, match="ids are floats"):
            ask()


def test_no_cell_of_the_ids_is_refused() -> None:
    for odd in (None, math.nan, 10**5000, b"a", [1], {"a": 1}, pd.NA, "\ud800", np.datetime64("NaT"), 2.5):
        for ask in released([1, odd, 2]):
            ask()
