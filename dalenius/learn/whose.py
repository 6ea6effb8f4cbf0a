"""Whose the rows are: where a person may have many of them, one row is not one person."""

from __future__ import annotations

from dalenius.errors import InvalidArgument
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
