"""Uniqueness: how many rows of a table are the only one with what they tell, for each choice of columns.

Rows equal in the chosen columns are a class. Whoever knows these columns of one person finds them in a class
of one for certain, and in a class of k with probability 1/k. That every class has k rows or more
(k-anonymity, Samarati and Sweeney 1998) bounds neither what the rest of a class has in common nor what a
second table adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dalenius.attacks.columns import row_codes
from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series

MOST_COLUMNS = 12
"""All choices among so many columns are looked at: 4,095."""


@dataclass(frozen=True)
class Uniqueness:
    """For each choice of columns the share of rows that are alone; by all of them the sizes of classes."""

    on: tuple[str, ...]
    rows: int
    shares: Mapping[tuple[str, ...], float]
    sizes: Mapping[int, int]
    """How many rows are in a class of each size, by all columns."""

    @property
    def share(self) -> float:
        """The share of rows that are alone by all columns."""
        return self.shares[self.on]

    @property
    def smallest(self) -> int:
        """The size of the smallest class, the k of k-anonymity."""
        return min(self.sizes)

    @property
    def figure(self) -> Figure:
        """The share alone against the number of columns known: the best choice, and the worst."""
        counts = range(1, len(self.on) + 1)
        by_count = [[share for names, share in self.shares.items() if len(names) == k] for k in counts]
        return Figure(
            "How many are the only one with what is known of them?",
            "columns known",
            "share of rows that are alone",
            series=[
                Series("the most telling columns", list(counts), [max(s) for s in by_count]),
                Series("the least telling columns", list(counts), [min(s) for s in by_count], style="dashed"),
            ],
            notes=[f"{self.rows:,} rows; columns: {', '.join(self.on)}"],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the keys are stable."""
        return {
            "on": list(self.on),
            "rows": self.rows,
            "share": self.share,
            "smallest": self.smallest,
            "sizes": {str(size): rows for size, rows in self.sizes.items()},
            "shares": [{"on": list(names), "share": share} for names, share in self.shares.items()],
        }

    def __str__(self) -> str:
        return (
            f"{100 * self.share:.3g}% of {self.rows:,} rows are the only one with their "
            f"{', '.join(self.on)}; the smallest class has {self.smallest}."
        )


def uniqueness(table: Any, *, on: Sequence[str]) -> Uniqueness:
    """How many rows are alone, by every choice among the columns `on`."""
    names = tuple(on)
    if len(names) > MOST_COLUMNS:
        raise InvalidArgument(
            f"Choices among more than {MOST_COLUMNS} columns are too many.", remedy="Choose fewer columns."
        )
    classes = {
        chosen: _class_sizes(table, chosen)
        for k in range(1, len(names) + 1)
        for chosen in combinations(names, k)
    }
    if not names or not len(classes[names]):
        raise InvalidArgument("There is nothing to compare.", remedy="Pass rows, and columns in on.")
    sizes, rows = np.unique(classes[names], return_counts=True)
    shares = {chosen: float(np.mean(found == 1)) for chosen, found in classes.items()}
    return Uniqueness(
        names, len(classes[names]), shares, dict(zip(sizes.tolist(), rows.tolist(), strict=True))
    )


def _class_sizes(table: Any, on: Sequence[str]) -> Any:
    """For each row, how many rows equal it."""
    (codes,) = row_codes([table], on)
    return np.bincount(codes)[codes] if len(codes) else codes
