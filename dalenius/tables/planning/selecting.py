"""Which groups are shown, where the keys are not public: those that enough units hold.

A unit keeps at most `keys` of its keys, those of least keyed hash, so that whatever other units hold, its
coming or going changes at most so many counts by 1 (`Loaded.holders`). A key is shown if the number of units
that hold it, with Gaussian noise, reaches a threshold (`NoisyThreshold`), all of which `budgeting` charges.
The keys that are shown come in an order of their own: that of the data would tell of units.

Deciding key by key with the greatest probability that (ε, δ) a key allows (`PartitionSelection`) is best for
one key of a unit by itself. Beside other noise, and for several keys of a unit, it asks for about twice as
many units, since what it costs adds up as ε does, and this as a Gaussian.

With m keys a unit the threshold grows as √m, and a key of units that have many is held m times as often; of
units with one key it is held as often as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.mechanisms.noisy_threshold import NoisyThreshold
from dalenius.tables.bounds import Bounds
from dalenius.tables.question import Question
from dalenius.tables.rows import Key, KeyPart

MOST_KEYS = 4
"""Keys of one unit that count when keys are selected, where it is not known to have fewer."""


def keys_per_unit(question: Question, bounds: Bounds, delta: Fraction) -> int | None:
    """How many keys of a unit count in selection; None where keys are public."""
    if question.keys is not None:
        return None
    if delta == 0:
        raise InvalidArgument(
            "Which groups there are cannot be told at delta 0: one that a single unit has must never show.",
            remedy=Message(
                "List the groups (",
                Argument("keys", "keys=…"),
                "), declare the categories of their columns, or open the account with a delta.",
            ),
        )
    known = (question.rows_per_unit, question.groups_per_unit, bounds.groups, MOST_KEYS)
    alone = [1] if question.rows.units == 0 else []
    return min([*alone, *(number for number in known if number is not None)])


def check_keys(question: Question) -> None:
    """A key that is listed twice is refused: its rows would count twice, and one unit for two."""
    keys = question.keys or ()
    if len({tuple(map(_same, key)) for key in keys}) < len(keys):
        raise InvalidArgument("A key is listed twice.", remedy="List each key once.")


def select(selection: NoisyThreshold, holders: Mapping[Key, int]) -> tuple[Key, ...]:
    """The keys that are shown, in their own order and each as it is always written."""
    return tuple(key for key, _ in in_order(selection, holders))


def in_order(selection: NoisyThreshold, holders: Mapping[Key, int]) -> list[tuple[Key, int]]:
    """The same, each with its noisy number of units."""
    keys = sorted(holders, key=lambda key: tuple(map(_place, key)))
    shown = selection.release({i: holders[key] for i, key in enumerate(keys)}).columns
    pairs = zip(shown["key"], shown["n"], strict=True)
    return [
        (tuple(map(_plain, keys[i])), int(n)) for i, n in pairs if isinstance(i, int) and isinstance(n, int)
    ]


def _plain(part: KeyPart) -> KeyPart:
    """−0 is 0: whose record came first, and with which of the two, must not show."""
    return part + 0.0 if isinstance(part, float) else part


def nearly_always(selection: NoisyThreshold) -> int:
    """How many units must hold a key for it to be hidden at most once in a thousand times."""
    return selection.threshold + selection.additive.reach(Fraction(1, 500))


def shown_from(selection: NoisyThreshold, who: str) -> str:
    """How many units must hold a key for it to be shown, in words."""
    return (
        f"one that {selection.threshold:,} {who}s have is shown half of the time, one that "
        f"{nearly_always(selection):,} have nearly always"
    )


def _same(part: KeyPart) -> object:
    """What keys are told apart by: NaN is NaN, and a day is the moment at which it begins."""
    if isinstance(part, float) and part != part:
        return "NaN", None
    if isinstance(part, date) and not isinstance(part, datetime):
        return datetime(part.year, part.month, part.day)
    return part


def _place(part: KeyPart) -> tuple[int, int | float, str]:
    """NULL first, then numbers by size, NaN, dates, and texts: no two keys stand at one place."""
    if part is None:
        return 0, 0, ""
    if isinstance(part, int | float):
        return (1, part, type(part).__name__) if part == part else (2, 0, "")
    return (3, 0, part.isoformat()) if isinstance(part, date) else (4, 0, part)
