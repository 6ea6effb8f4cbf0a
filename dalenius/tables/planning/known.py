"""Bounds that need no search: what the question knows of units, and what the caller gives.

Where a unit has one row, or a row each, nothing is left to find. Where it has few, a search would cost more
than it could save.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.privacy.sensitivity import sqrt_up
from dalenius.tables.bounds import Bounds
from dalenius.tables.planning.budgeting import Norm
from dalenius.tables.question import Question

FEW_ROWS, FEW_GROUPS = 2, 4
"""Where a unit is known to have no more, no search is made."""


@dataclass(frozen=True)
class Known:
    """Bounds that need no search, None where one is needed; `most…` are what is known to hold."""

    rows: Fraction | None
    presence: Fraction | None
    pairs: int | None
    most_rows: int | None
    most_groups: int | None


def known(question: Question, bounds: Bounds, norm: Norm) -> Known:
    """What needs no search."""
    alone = question.rows.units == 0
    rows = 1 if alone else question.rows_per_unit
    groups = _least(rows, question.groups_per_unit, bounds.groups, _count(question))
    limit = _limit(rows, bounds.limit)
    presence = _presence(groups, norm) if groups is not None and _settled(groups, bounds) else None
    pairs = _least(rows if rows is not None and rows <= FEW_ROWS else None, bounds.pairs)
    if pairs is None and bounds.limit is not None:
        pairs = math.ceil(bounds.limit)
    return Known(limit, presence, pairs, rows, groups)


def _limit(rows: int | None, given: Fraction | None) -> Fraction | None:
    if rows is not None and rows <= FEW_ROWS:
        return Fraction(rows) if given is None else min(Fraction(rows), given)
    return given


def _settled(groups: int, bounds: Bounds) -> bool:
    return groups <= FEW_GROUPS or bounds.groups is not None


def _presence(groups: int, norm: Norm) -> Fraction:
    return sqrt_up(Fraction(groups)) if norm == "l2" else Fraction(groups)


def _count(question: Question) -> int | None:
    return None if question.keys is None else max(len(question.keys), 1)


def _least(*counts: int | None) -> int | None:
    return min((count for count in counts if count is not None), default=None)
