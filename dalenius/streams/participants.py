"""Who took part when: what keeps the contributions of one unit within what was charged for.

A unit may take part at up to `most` steps, any two of them at least `separation` apart, and once in a step.
What exceeds that is dropped without a word. Whether something is dropped follows from what the same unit did
before, and from nothing that others did: removing a unit changes no other unit's contributions. The steps of
a unit are thus a pattern of `min_separation(separation, most=most)`, by whomever they are chosen.

The memory needed for this, one line for each unit that ever took part, is no part of what is private about
the outputs, but it says in plain text who was there: keep it as secret as the data. No pan-private state may
hold it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.loss import Loss
from dalenius.mechanisms.above_threshold import whom_for
from dalenius.mechanisms.mechanism import Payer
from dalenius.privacy.records import cells, whole
from dalenius.privacy.unit import Unit

NOBODY = ""
"""Instead of a unit, for events that name none: they do not count."""


class Participants:
    """Steps of each unit: the last one, and how many."""

    def __init__(self, separation: int, most: int) -> None:
        self.separation, self.most = separation, most
        self.seen: dict[Hashable, tuple[int, int]] = {}

    def admitted(self, units: Sequence[Hashable], step: int) -> NDArray[np.bool_]:
        """Which contributions to a step count, the first of each unit if any; they are noted."""
        found = np.zeros(len(units), np.bool_)
        for place, unit in enumerate(units):
            if unit == NOBODY:
                continue
            last, times = self.seen.get(unit, (step - self.separation, 0))
            if times < self.most and step - last >= self.separation:
                self.seen[unit] = (step, times + 1)
                found[place] = True
        return found


def names(units: object, size: int) -> list[Hashable]:
    """Return the units of a batch, one for each number: texts or whole numbers, of which 1 and "1" are two.

    An event whose unit is missing, empty or neither is of nobody: no batch is refused for what a cell holds.
    """
    given = cells(units, "iuUTO", "Units must be texts or whole numbers", "Convert them to text first.")
    several = given if isinstance(given, list) else list(given.tolist())
    if not set(map(type, several)) <= {str, int}:
        several = [_name(unit) for unit in several]
    if len(several) != size:
        raise InvalidArgument(
            "unit must name whose each number is.", remedy="Pass one name, or as many as there are numbers."
        )
    return several


def _name(unit: object) -> Hashable:
    if isinstance(unit, str):
        return str.__str__(unit)
    if isinstance(unit, bool | np.bool_ | float | np.floating):
        return NOBODY
    found = whole(unit)
    return NOBODY if found is None else found


def whom_of_items(
    loss: Loss, account: Payer | None, unit: Unit | None, *, items_are_units: bool
) -> Unit | None:
    """Whom a stream protects that hides single items: units of a column only where they are the items."""
    whom = whom_for(loss, account, unit)
    if whom is not None and whom.column is not None and items_are_units is not True:
        raise NotSound(
            f"This stream protects each item by itself, and a {whom.entity} may have many of them.",
            remedy=f"Add the values of {whom.column!r} themselves and pass items_are_units=True to start; "
            "or charge an account without a column.",
        )
    return whom


def whom_of_units(loss: Loss, account: Payer | None, unit: Unit | None) -> Unit | None:
    """Whom a stream protects that bounds what each unit does: nobody of whom a unit has only some events.

    Where one event of a unit is taken away, another of its events may count in its place: neighbours that
    differ in single rows, or in those of one day, may be twice as far apart.
    """
    whom = whom_for(loss, account, unit)
    if whom is not None and (whom.column is None or whom.window is not None):
        part = "single events" if whom.column is None else f"what a {whom.entity} does in one {whom.window}"
        raise NotSound(
            f"This stream protects all that a unit does together; the account protects {part}.",
            remedy="Charge an account whose unit has a column and no window; or leave out most=, for events.",
        )
    return whom


def same_column(column: str, unit: Unit) -> None:
    """Refuse to bound what others do than the units of an account."""
    if column != unit.column:
        told = "has no column" if unit.column is None else f"is told by {unit.column!r}"
        raise NotSound(
            f"Units of {column!r} would be protected, and a {unit.entity} of the account {told}.",
            remedy="Name the account's column, or charge an account that was opened with this one.",
        )


def whom_of_events(loss: Loss, account: Payer | None, unit: Unit | None, remedy: str) -> Unit | None:
    """Whom a stream protects that hides single events: nobody whose rows a column tells apart."""
    whom = whom_for(loss, account, unit)
    if whom is not None and whom.column is not None:
        raise NotSound(
            f"This stream protects each event by itself, and a {whom.entity} may have many of them.",
            remedy=remedy,
        )
    return whom
