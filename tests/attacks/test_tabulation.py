"""What integer programs say of a block is what going through all blocks says."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from dalenius.attacks import likeliest_block, solve_block
from dalenius.attacks.tabulation import published, solutions
from dalenius.errors import InvalidArgument

ATTRIBUTES = {"age": 2, "sex": 2, "race": 3}
SHAPE = tuple(ATTRIBUTES.values())
PAIRS = [("age", "sex"), ("race", "age")]
ONES = [("age",), ("sex",), ("race",)]


def block(seed: int, people: int = 4) -> np.ndarray:
    cells = np.random.default_rng(seed).integers(0, np.prod(SHAPE), people)
    return np.bincount(cells, minlength=np.prod(SHAPE)).reshape(SHAPE)


def all_with_these(tables: dict, people: int = 4) -> list[np.ndarray]:
    """Every block of so many people that has the tables, by trying all."""
    size = int(np.prod(SHAPE))
    tried = (
        np.bincount(cells, minlength=size).reshape(SHAPE)
        for cells in combinations_with_replacement(range(size), people)
    )
    return [
        one
        for one in tried
        if all(np.array_equal(tables[by], t) for by, t in published(one, ATTRIBUTES, [*tables]).items())
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("chosen", [PAIRS, ONES])
def test_ranges_and_the_number_of_solutions_are_those_of_trying_all(
    seed: int, chosen: list[tuple[str, ...]]
) -> None:
    tables = published(block(seed), ATTRIBUTES, chosen)
    known = np.array(all_with_these(dict(tables)))
    found = solve_block(tables, ATTRIBUTES)
    assert np.array_equal(found.low, known.min(axis=0))
    assert np.array_equal(found.high, known.max(axis=0))
    assert any(np.array_equal(found.solution, one) for one in known)
    assert found.unique == (len(known) == 1)
    assert found.certain == known.min(axis=0).sum()
    assert solutions(tables, ATTRIBUTES, most=10) == min(10, len(known))


def test_the_whole_table_has_one_solution() -> None:
    people = block(9, 12)
    found = solve_block({("age", "sex", "race"): people}, ATTRIBUTES)
    assert found.unique
    assert np.array_equal(found.solution, people)
    most, least = found.figure.series
    assert most.y == least.y == tuple(people[people > 0])


def test_a_table_has_its_axes_in_the_order_of_its_key() -> None:
    people = block(3, 9)
    tables = published(people, ATTRIBUTES, [("race", "age"), ()])
    assert np.array_equal(tables["race", "age"], people.sum(axis=1).T)
    assert tables[()] == 9


def test_tables_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="No block"):
        solve_block({("age",): [1, 0], ("sex",): [1, 1]}, ATTRIBUTES)
    with pytest.raises(InvalidArgument, match="each combination"):
        solve_block({("age",): [1, 0, 0]}, ATTRIBUTES)


def test_the_likeliest_block_follows_the_tables_where_noise_is_little() -> None:
    people = block(5, 6)
    tables = {("age", "sex", "race"): people + np.where(people > 0, 0.2, -0.3)}
    shares = np.full(SHAPE, 1 / people.size)
    found = likeliest_block(tables, ATTRIBUTES, people=6, shares=shares, scale=0.05)
    assert np.array_equal(found, people)


def test_the_likeliest_block_follows_the_country_where_noise_is_much() -> None:
    """The most probable outcome of a multinomial law with one frequent kind."""
    shares = np.full(SHAPE, 0.01)
    shares[0, 0, 0] = 1 - shares.sum() + 0.01
    tables = {("age",): [0.0, 6.0]}
    found = likeliest_block(tables, ATTRIBUTES, people=6, shares=shares, scale=1e6)
    assert found[0, 0, 0] == found.sum() == 6
