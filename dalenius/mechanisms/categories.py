"""Public categories, and where a record's value is among them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from dalenius.errors import InvalidArgument
from dalenius.release import Cell


def read_categories(value: object, name: str) -> str:
    """The JSON of a list of different categories: a text stays apart from a number."""
    try:
        found = json.loads(value) if isinstance(value, str) else list(cast(Iterable[Cell], value))
        text = json.dumps(found, allow_nan=False)
        distinct = isinstance(found, list) and len({*found} - {None}) == len(found) > 0
    except (TypeError, ValueError):
        distinct = False
    if not distinct or json.loads(text) != found:
        raise InvalidArgument(
            f"{name} must be a list of different texts or numbers, not taken from the data.",
            remedy=f"Pass {name} such as ['north', 'south'].",
        )
    return text


def values(value: Any) -> list[Any]:
    """A column as a list."""
    found = value.tolist() if hasattr(value, "tolist") else list(value)
    return found if isinstance(found, list) else [found]


def find(place: dict[Any, int], value: Any, outside: int) -> int:
    """The place of a value; `outside` for one that is not there; −1 for none at all (None, NaN)."""
    try:
        if value is None or bool(value != value):
            return -1
        return place.get(value, outside)
    except Exception:
        # A null marker of another library refuses to be compared; what cannot be looked up is outside.
        return outside if isinstance(value, list | dict | set) else -1
