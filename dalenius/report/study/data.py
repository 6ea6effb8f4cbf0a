"""`Data`: rows to learn from, with numbered classes and groups.

A value is spelled by itself, whatever other rows hold: so what becomes of a row never depends on another one.
With public lists of classes and groups a row of another class is left out, and one of another group is in the
group `OTHER`; without them the lists are those of the data, which is what an owner's experiment may do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
LARGEST = 1e30
"""The largest feature, well within single precision."""
OTHER = "(other)"
"""The group of rows whose group is not told, or not in the list."""
FEW = 4
"""Rows that a class or group has on average, at least, where the list was found in the data."""


@dataclass(frozen=True, eq=False)
class Data:
    """Features `x`, one row a record; `y` and `group` are places in `classes` and `groups`."""

    name: str
    x: Floats
    y: Ints
    classes: tuple[str, ...]
    group: Ints | None = None
    groups: tuple[str, ...] = ()
    unscaled: tuple[str, ...] = ()
    """The first columns of `x`, whose range nobody stated: an owner's are scaled later, nulls left out."""
    public: bool = False
    """Whether classes and groups were stated, and not found in the data."""
    left_out: int = 0
    """Rows of no class that was stated: a private number."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row of features."""
        return tuple(self.x.shape[1:])

    def __len__(self) -> int:
        return len(self.y)


def labelled(
    name: str,
    x: NDArray[Any],
    labels: Iterable[Any],
    group: Iterable[Any] | None,
    *,
    classes: Sequence[str] | None,
    groups: Sequence[str] | None,
    unscaled: tuple[str, ...] = (),
) -> Data:
    """Features with labels and groups as they were read."""
    told = [spelled(label) for label in labels]
    named = _classes(told, classes)
    place = {label: i for i, label in enumerate(named)}
    y = np.array([-1 if label is None else place.get(label, -1) for label in told], dtype=np.int64)
    kept = y >= 0
    whose, known = _groups(group, groups)
    return Data(
        readable(name),
        _finite(x[kept], len(unscaled)),
        y[kept],
        named,
        None if whose is None else whose[kept],
        known,
        unscaled,
        classes is not None and (group is None or groups is not None),
        int(np.count_nonzero(~kept)),
    )


def _finite(x: NDArray[Any], waiting: int) -> Floats:
    """What is no number, or infinite, is 0, but in columns that wait for their scale; the rest is held."""
    values = np.asarray(x, dtype=np.float64)
    held = np.clip(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), -LARGEST, LARGEST)
    held[:, :waiting][~np.isfinite(values[:, :waiting])] = np.nan
    return held.astype(np.float32)


def spelled(value: Any) -> str | None:
    """A label as a text: whole numbers alike in every type, None where there is none."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bytes):
        plain = plain.decode("utf-8", "replace")
    if plain is None or (isinstance(plain, float) and not math.isfinite(plain)):
        return None
    if isinstance(plain, float) and plain.is_integer():
        return str(int(plain))
    return readable(str(plain)) or None


def readable(text: str) -> str:
    """The text without halves of letters, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def stated_names(stated: Sequence[Any], word: str) -> tuple[str, ...]:
    """Classes or groups as they were stated, each once."""
    names = tuple(name for name in map(spelled, stated) if name is not None)
    if isinstance(stated, str) or len(names) != len(stated) or len(set(names)) != len(names):
        raise InvalidArgument(
            f"{word} must be a list of different names.",
            remedy=f"State {word} such as ['a', 'b'], each once.",
        )
    return names


def _looks_unlike(found: Sequence[str], told: Sequence[object], word: str) -> None:
    """Refuse a name for nearly each row."""
    if len(found) > max(2, len(told) // FEW):
        raise InvalidArgument(
            f"There are too many different ones for so few rows: this looks like no {word}.",
            remedy=f"Name the column of {word}s as {'label' if word == 'class' else word}.",
        )


def _classes(told: list[str | None], stated: Sequence[Any] | None) -> tuple[str, ...]:
    if stated is None and None in told:
        raise InvalidArgument(
            "There are rows without a label.",
            remedy="Leave these rows out of the file, or state classes: rows of no class are then left out.",
        )
    named = {label for label in told if label is not None}
    found = _in_order(named) if stated is None else stated_names(stated, "classes")
    if len(found) < 2:
        raise InvalidArgument(
            "A study needs two classes or more.",
            remedy="Check which column holds the labels, or state all classes.",
        )
    if stated is None:
        _looks_unlike(found, told, "class")
    return found


def _groups(group: Iterable[Any] | None, stated: Sequence[Any] | None) -> tuple[Ints | None, tuple[str, ...]]:
    if group is None:
        if stated is not None:
            raise InvalidArgument(
                "Groups are stated, and no column tells them.", remedy="Name the column of groups as group."
            )
        return None, ()
    told = [None if one == OTHER else one for one in map(spelled, group)]
    named = {one for one in told if one is not None}
    listed = _in_order(named) if stated is None else stated_names(stated, "groups")
    found = tuple(one for one in listed if one != OTHER)
    if stated is None:
        _looks_unlike(found, told, "group")
    # A list that is stated has a place for all others, whether there are any or not.
    names = (*found, OTHER) if stated is not None or None in told else found
    place = {one: i for i, one in enumerate(found)}
    whose = [len(found) if one is None else place.get(one, len(found)) for one in told]
    return np.array(whose, dtype=np.int64), names


def _in_order(names: set[str]) -> tuple[str, ...]:
    """Numbers by size, then texts."""

    def key(name: str) -> tuple[int, float, str]:
        try:
            size = float(name)
        except ValueError:
            size = math.nan
        return (0, size, name) if math.isfinite(size) else (1, 0.0, name)

    return tuple(sorted(names, key=key))
