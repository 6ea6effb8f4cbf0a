"""Tabular reconstruction: the people of a small block from its published tables.

A person is a cell: one value of every attribute. Published tables add cells up, so the counts of cells solve
linear equations in whole numbers. Where they have one solution the block is reconstructed, name by name but
for the names (Garfinkel, Abowd and Martindale 2019). The least and the most of each cell over all solutions,
two integer programs each, tell which people are certain.

Noisy tables contradict each other; then the likeliest block is taken, and nothing is certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series

Counts = NDArray[np.int64]
Tables = Mapping[tuple[str, ...], ArrayLike]
"""Published tables: the attributes each is by, and its counts, an axis for each attribute."""
MOST_SOLUTIONS = 100
"""Solutions are counted up to so many."""


@dataclass(frozen=True, eq=False)
class Block:
    """What the tables of a block tell: one solution, and the least and most of each cell over all of them."""

    solution: Counts
    low: Counts
    high: Counts

    @property
    def unique(self) -> bool:
        """Whether only one block of people has these tables."""
        return bool(np.all(self.low == self.high))

    @property
    def certain(self) -> int:
        """How many people are in every solution."""
        return int(self.low.sum())

    @property
    def figure(self) -> Figure:
        """The least and the most of each kind of person that may be there."""
        there = self.high > 0
        kinds = list(range(1, int(there.sum()) + 1))
        return Figure(
            "What the tables tell of a block",
            "kinds of people that may be there",
            "people",
            series=[
                Series("at most", kinds, self.high[there].tolist(), style="steps"),
                Series("at least", kinds, self.low[there].tolist(), style="points"),
            ],
        )


def published(people: Counts, attributes: Mapping[str, int], chosen: Sequence[tuple[str, ...]]) -> Tables:
    """The tables by the chosen attributes of a block, given as counts with an axis for each attribute."""
    names = list(attributes)
    found: dict[tuple[str, ...], ArrayLike] = {}
    for by in chosen:
        summed = np.sum(people, axis=tuple(i for i, name in enumerate(names) if name not in by))
        kept = [name for name in names if name in by]
        found[by] = np.transpose(summed, [kept.index(name) for name in by])
    return found


def solve_block(tables: Tables, attributes: Mapping[str, int]) -> Block:
    """All that exact tables tell. `attributes` gives how many values each attribute has."""
    rows, sums = _equations(tables, attributes)
    shape, size = tuple(attributes.values()), rows.shape[1]
    solution = _program(np.zeros(size), rows, sums)
    if solution is None:
        raise InvalidArgument(
            "No block of people has these tables.", remedy="Use likeliest_block for noisy tables."
        )
    low, high = _range(rows, sums)
    return Block(solution.reshape(shape), low.reshape(shape), high.reshape(shape))


def likeliest_block(
    tables: Tables, attributes: Mapping[str, int], *, people: int, shares: ArrayLike, scale: float
) -> Counts:
    """The likeliest block of so many people given noisy tables.

    `shares` is how frequent each kind of person is at large. Laplace noise of `scale` makes an error cost
    |error|/scale; the j-th person of a kind of share p costs log j − log p, as the multinomial law has it.
    """
    rows, sums = _equations(tables, attributes)
    answers, size = rows.shape
    costs = np.log(np.arange(1, people + 1)) - np.log(np.asarray(shares, float).reshape(size, 1))
    weights = np.concatenate([costs.ravel(), np.full(2 * answers, 1 / scale)])
    person = np.arange(len(weights)) < size * people
    errors = np.eye(answers)
    wide = np.vstack([np.hstack([np.repeat(rows, people, axis=1), errors, -errors]), person])
    ends = np.append(sums, people)
    found = _program(weights, wide, ends, whole=person, most=np.where(person, 1, np.inf))
    assert found is not None, "any so many people are a solution with large enough errors"
    kept: Counts = found[person].reshape(size, people).sum(axis=1)
    return kept.reshape(tuple(attributes.values()))


def solutions(tables: Tables, attributes: Mapping[str, int], *, most: int = MOST_SOLUTIONS) -> int:
    """How many blocks of people have these tables, counted up to `most`."""
    return _count(*_equations(tables, attributes), most)


def _count(rows: NDArray[np.float64], sums: NDArray[np.float64], most: int) -> int:
    """By fixing one undecided cell at each of its values in turn."""
    if _program(np.zeros(rows.shape[1]), rows, sums) is None:
        return 0
    low, high = _range(rows, sums)
    open_cells = np.flatnonzero(low < high)
    if not len(open_cells):
        return 1
    cell, total = open_cells[0], 0
    fixed = np.vstack([rows, np.arange(rows.shape[1]) == cell])
    for value in range(low[cell], high[cell] + 1):
        total += _count(fixed, np.append(sums, value), most - total)
        if total >= most:
            return most
    return total


def _equations(
    tables: Tables, attributes: Mapping[str, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One row for each published count: the cells it adds up, and the count."""
    shape, names = tuple(attributes.values()), list(attributes)
    place = dict(zip(names, np.indices(shape).reshape(len(names), -1), strict=True))
    rows, sums = [], []
    for by, counts in tables.items():
        sizes, given = tuple(attributes.get(name, 0) for name in by), np.asarray(counts, float)
        if given.shape != sizes:
            raise InvalidArgument(
                "A table does not have a count for each combination of its attributes.",
                remedy="Pass counts with an axis for each attribute, in the order of its key.",
            )
        cell = (
            np.ravel_multi_index([place[name] for name in by], sizes) if by else np.zeros(np.prod(shape), int)
        )
        rows.append(cell == np.arange(max(1, given.size))[:, None])
        sums.append(given.ravel())
    return np.concatenate(rows).astype(float), np.concatenate(sums)


def _range(rows: NDArray[np.float64], sums: NDArray[np.float64]) -> tuple[Counts, Counts]:
    """The least and the most of each cell over all solutions."""
    size = rows.shape[1]
    low, high = np.zeros((2, size), np.int64)
    # No cell exceeds a count that it is part of, so that most need no program.
    for cell in np.flatnonzero(np.where(rows > 0, sums[:, None], np.inf).min(axis=0) > 0):
        for direction, end in ((1.0, low), (-1.0, high)):
            found = _program(direction * (np.arange(size) == cell), rows, sums)
            end[cell] = 0 if found is None else found[cell]
    return low, high


def _program(weights: Any, rows: Any, sums: Any, *, whole: Any = True, most: Any = np.inf) -> Counts | None:
    """Numbers of 0 or more with the least weight that meet the equations; None where there are none."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        weights,
        constraints=LinearConstraint(rows, sums, sums),
        integrality=np.broadcast_to(np.asarray(whole, float), len(weights)),
        bounds=Bounds(0, most),
    )
    return None if found.x is None else np.rint(found.x).astype(np.int64)
