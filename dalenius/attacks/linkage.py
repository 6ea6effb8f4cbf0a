"""Linkage: rows without names joined to people with names on what both tables tell (Sweeney 1997).

A row that agrees with exactly one person in all quasi-identifiers is linked to that person; whatever else the
row holds is then known of them. Where it is known whose row each one is, the report counts right links. An
auxiliary table that lacks people makes some links wrong, and only the truth can tell which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.attacks.columns import row_codes
from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series

NOBODY = -1
"""The link of a row that agrees with no person, or with several."""


def links(released: Any, auxiliary: Any, *, on: Sequence[str]) -> NDArray[np.int64]:
    """For each released row the number of the one auxiliary row that agrees with it, or `NOBODY`."""
    rows, people = row_codes([released, auxiliary], on)
    return np.where(_agreeing(rows, people) == 1, _first(rows, people), NOBODY)


def link(
    released: Any,
    auxiliary: Any,
    *,
    on: Sequence[str],
    truth: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> Attack:
    """Join both tables. `truth` is, for each released row, the auxiliary row of the same person.

    With the truth, success is the share of rows linked rightly; without it, the share linked to one person.
    """
    rows, people = row_codes([released, auxiliary], on)
    agreeing = _agreeing(rows, people)
    if not len(rows) or not len(people):
        raise InvalidArgument("A table has no rows.", remedy="Pass tables with a row or more.")
    found = np.where(agreeing == 1, _first(rows, people), NOBODY)
    linked = found != NOBODY
    right = linked if truth is None else linked & (found == _checked(truth, len(rows)))
    details = {
        "linked to one": float(linked.sum()),
        "linked to several": float((agreeing > 1).sum()),
        "linked to nobody": float((agreeing == 0).sum()),
    }
    return Attack.counted(
        f"linkage on {', '.join(on)}",
        int(right.sum()),
        len(rows),
        baseline=1 / len(people),
        confidence=confidence,
        figure=_figure(agreeing),
        details=details if truth is None else details | {"linked rightly": float(right.sum())},
    )


def _agreeing(rows: NDArray[np.int64], people: NDArray[np.int64]) -> NDArray[np.int64]:
    """With how many people each row agrees."""
    size = int(max(rows.max(initial=0), people.max(initial=0))) + 1
    return np.asarray(np.bincount(people, minlength=size)[rows], np.int64)


def _first(rows: NDArray[np.int64], people: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first person each row agrees with; anybody where there is none."""
    size = int(max(rows.max(initial=0), people.max(initial=0))) + 1
    place = np.zeros(size, np.int64)
    place[people[::-1]] = np.arange(len(people))[::-1]
    return np.asarray(place[rows])


def _checked(truth: ArrayLike, rows: int) -> NDArray[np.int64]:
    known = np.asarray(truth, np.int64)
    if known.shape != (rows,):
        raise InvalidArgument(
            "truth must name one person for each row.", remedy="Pass a number for each row."
        )
    return known


def _figure(agreeing: NDArray[np.int64]) -> Figure:
    """The share of rows that agree with so many people or fewer."""
    sizes, counts = np.unique(agreeing, return_counts=True)
    shares = np.cumsum(counts) / len(agreeing)
    return Figure(
        "With how many people does a row without a name agree?",
        "people who agree with a row",
        "share of rows with so many or fewer",
        series=[Series("rows", sizes.tolist(), shares.tolist(), style="steps")],
    )
