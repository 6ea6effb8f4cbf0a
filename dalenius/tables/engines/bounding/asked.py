"""The keys that are asked for, as a small table beside the rows: their places, values and digests.

Where a key that is asked for has NULL in a column, that column is matched by two equalities, on its value
with a stand-in for NULL and on whether it is NULL: engines join by hash on those, and on no single condition
that says both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime

from dalenius.tables.engines import hashing
from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.engines.types import places
from dalenius.tables.rows import Key, KeyPart
from dalenius.tables.schema import as_known

_STAND_IN: dict[str, KeyPart] = {
    "boolean": False,
    "integer": 0,
    "real": 0.0,
    "text": "",
    "date": date(1970, 1, 1),
    "moment": datetime(1970, 1, 1),
}


@dataclass(frozen=True)
class Asked:
    """Keys of columns that have these kinds."""

    words: Words
    keys: tuple[Key, ...]
    kinds: tuple[str, ...]

    def __post_init__(self) -> None:
        places(self.keys)

    def join(self, salt: bytes = b"") -> str:
        """What goes behind the rows, as `r`: place and digest of their keys are a.place and a.digest."""
        width = range(len(self.kinds))
        found = {place: read for place, key in enumerate(self.keys) if (read := self._read(key)) is not None}
        lines = found or {0: (None,) * len(width)}
        digests = [hashing.digest_of(salt, "k", key) for key in lines.values()]
        columns: list[tuple[str, list[KeyPart]]] = [("integer", list(lines)), ("integer", list(digests))]
        for i, kind in enumerate(self.kinds):
            parts = [key[i] for key in lines.values()]
            columns.append((kind, [_STAND_IN[kind] if part is None else part for part in parts]))
        columns += [("boolean", [key[i] is None for key in lines.values()]) for i in width]
        names = ", ".join(["place", "digest", *(f"k{i}" for i in width), *(f"n{i}" for i in width)])
        table = f"{self.words.listed(columns)} AS a({names})"
        nulls = [i for i in width if any(key[i] is None for key in found.values())]
        held = [self._held(i) if i in nulls else f"r.key_{i}" for i in width]
        conditions = [self.words.matched(held, [f"a.k{i}" for i in width], self.kinds)] if held else []
        conditions += [f"(r.key_{i} IS NULL) = a.n{i}" for i in nulls]
        conditions += [] if found else ["FALSE"]
        return f" JOIN {table} ON {' AND '.join(conditions)}" if conditions else f" CROSS JOIN {table}"

    def _held(self, i: int) -> str:
        """A column of rows, with what stands for NULL."""
        nothing = self.words.dialect.literal(_STAND_IN[self.kinds[i]], as_known(self.kinds[i]))
        return f"COALESCE(r.key_{i}, {nothing})"

    def _read(self, key: Key) -> Key | None:
        """The key as its columns would have it; None where they cannot."""
        parts = [read_as(part, kind) for part, kind in zip(key, self.kinds, strict=True)]
        found = tuple(part[0] for part in parts if part is not None and self._says(part[0]))
        return found if len(found) == len(parts) else None

    def _says(self, part: KeyPart) -> bool:
        return not isinstance(part, str) or self.words.says(part)


def read_as(part: KeyPart, kind: str) -> tuple[KeyPart] | None:
    """A value as a column of that kind would hold it, None where none does."""
    if part is None:
        return (None,)
    if isinstance(part, bool):
        return (part,) if kind == "boolean" else None
    if isinstance(part, str):
        return (part,) if kind == "text" else None
    if isinstance(part, date):
        return _date(part, kind)
    return _real(part) if kind == "real" else _whole(part) if kind == "integer" else None


def _real(part: float) -> tuple[KeyPart] | None:
    near = math.nan if isinstance(part, int) and abs(part) >= 2**1023 else float(part)
    return (near + 0.0,) if near == part else None


def _whole(part: float) -> tuple[KeyPart] | None:
    return (int(part),) if -(2**63) <= part < 2**63 and part == int(part) else None


def _date(part: date, kind: str) -> tuple[KeyPart] | None:
    moment = part if isinstance(part, datetime) else datetime(part.year, part.month, part.day)
    moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    if kind == "moment":
        return (moment,)
    return (moment.date(),) if kind == "date" and moment.time() == datetime.min.time() else None
