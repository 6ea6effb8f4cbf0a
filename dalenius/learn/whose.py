"""Whose the rows are: where a person may have many of them, one row is not one person.

Ids are whole numbers or texts, and two of them are one unit only where they are the same: two people who were
taken for one would together be held to what one may have, and one of them leaving would change what counts of
the other. Floats do not tell whole numbers from 2^53 on apart, so a column of floats is refused: by its type,
which is no person's. Which id a row has is never an error. A row that has none (missing, no whole number, a
float that stands for several) belongs to nobody and is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.mechanisms import contributions
from dalenius.mechanisms.contributions import NOBODY as NOBODY
from dalenius.privacy import Unit


def check_rows(whom: Unit | None, *, by_unit: bool) -> None:
    """Refuse to protect units of a column where it is not said which rows are whose.

    Bounds on single rows would be charged as bounds on all that a unit has.
    """
    if whom is not None and whom.column is not None and not by_unit:
        raise InvalidArgument(
            f"{whom} may be in many rows, and it is not said whose each row is.",
            remedy="Pass units=, the column that says so, or charge an account that protects single rows.",
        )


def check_units(units: Any, rows: int) -> None:
    """Refuse ids of another number than the rows, or of a type that ids do not have: no id is looked at."""
    contributions.same_length(units, rows)
    contributions.check_ids(units)


def owners(units: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The names of all units, and the number of each row's, NOBODY where it has no id."""
    return contributions.units_of(units)


def counted(units: Any, per_unit: int) -> NDArray[np.bool_]:
    """Which rows count: of each unit `per_unit` at most, chosen by a hash, and none without an id."""
    return contributions.kept(units, per_unit)
