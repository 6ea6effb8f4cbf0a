"""A slow and obviously right engine: the docstrings of engine.py, word for word, on rows kept in a list.

    engine = ReferenceEngine([{"unit_0": 7, "key_0": "a", "value_0": 1.5}])
    with engine.load(Rows("", units=1, keys=1, values=1)) as loaded:
        loaded.totals([("a",)], [Measure("rows")], Bounding("l2"))

Rows are what the SELECT of `Rows` would give, already evaluated: its SQL is not read. Numbers are Python's
own integers and fractions throughout.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.engine import (
    MAGNITUDES,
    MASS,
    SIZES,
    SPREADS,
    WEIGHT,
    Bounding,
    Integers,
    Measure,
)
from dalenius.tables.rows import Key, Range, Rows

Row = Mapping[str, Any]
Named = tuple[object, ...]
"""A key as what it is compared by: see `name`."""


def name(part: object) -> object:
    """What values of one column are told apart by, as GROUP BY does: NULL is NULL, NaN is NaN, −0 is 0."""
    if part is None or isinstance(part, str):
        return part
    if isinstance(part, bool):
        return ("boolean", part)
    if isinstance(part, float) and math.isnan(part):
        return ("nan",)
    if isinstance(part, int | float):
        return ("number", Fraction(part) if math.isfinite(part) else part)
    if isinstance(part, datetime):
        return ("moment", part)
    return ("moment", datetime(part.year, part.month, part.day)) if isinstance(part, date) else part


def named(parts: Sequence[object]) -> Named:
    return tuple(name(part) for part in parts)


def text(part: object) -> str:
    """How the keyed hash spells a value: a letter for its type, its length in bytes, and its text."""
    letter, said = _spelled(part)
    return f"{letter}{len(said.encode())}:{said}"


def _spelled(part: object) -> tuple[str, str]:
    if part is None:
        return "n", ""
    if isinstance(part, bool):
        return "b", "1" if part else "0"
    if isinstance(part, int):
        return "i", str(part)
    if isinstance(part, float):
        number = math.nan if math.isnan(part) else part + 0.0
        return "r", f"{int.from_bytes(struct.pack('>d', number), 'big'):064b}"
    if isinstance(part, datetime):
        return "m", str((part - datetime(1970, 1, 1)) // timedelta(microseconds=1))
    if isinstance(part, date):
        return "d", str((part - date(1970, 1, 1)).days)
    return "t", str(part)


def digest(salt: bytes, role: Literal["u", "k", "v"], parts: Sequence[object]) -> int:
    """The first 32 bits of SHA-256 of the salt in hexadecimal, the role and the parts."""
    said = salt.hex() + role + "".join(text(part) for part in parts)
    return int(hashlib.sha256(said.encode()).hexdigest()[:8], 16)


def mix(x: int) -> int:
    """A fixed one-to-one mixing of 32 bits."""
    x ^= x >> 16
    x = (x * 0x21F0AAAD) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 0x735A2D97) & 0xFFFFFFFF
    return x ^ (x >> 15)


def least(hashes: Mapping[Any, int], most: int) -> set[Any]:
    """Those of hash below the (most + 1)-th least: `most` of them, or fewer where hashes tie there."""
    if len(hashes) <= most:
        return set(hashes)
    bar = sorted(hashes.values())[most]
    return {name for name, value in hashes.items() if value < bar}


def bin_of(square: Fraction) -> int:
    """⌈2·log₂ x⌉ = ⌈log₂ x²⌉ of the number whose square is given, at least 0."""
    octave = 0
    while square > 2**octave:
        octave += 1
    return octave


def weight(limit: Fraction, square: int) -> int:
    """min(WEIGHT, ⌊WEIGHT·limit/√square⌋)."""
    return min(WEIGHT, math.isqrt(math.floor((WEIGHT * limit) ** 2 / square)))


def steps(value: float, range_: Range) -> int:
    """trunc(x / step), held between the outermost grid points, less the offset."""
    lower = math.ceil(range_.lower / range_.grid.step)
    upper = math.floor(range_.upper / range_.grid.step)
    if math.isinf(value):
        return (upper if value > 0 else lower) - range_.offset
    return max(lower, min(upper, math.trunc(Fraction(value) / range_.grid.step))) - range_.offset


def leaf(value: float, measure: Measure) -> int:
    """The leaf of a tree where a value falls."""
    assert measure.range is not None
    low, high = steps(-math.inf, measure.range), steps(math.inf, measure.range)
    return (steps(value, measure.range) - low) * 2**measure.levels // (high - low + 1)


def magnitude(value: float) -> int:
    """The bin of `magnitudes`."""
    if value == 0:
        return MAGNITUDES // 2
    size, j = Fraction(abs(value)) if math.isfinite(value) else Fraction(2**200), 1
    while j < 256 and size >= Fraction(2) ** (j - 128):
        j += 1
    return 256 + j if value > 0 else 256 - j


class ReferenceLoaded:
    """Rows in a list, by unit."""

    def __init__(self, data: Sequence[Row], rows: Rows) -> None:
        self.rows = rows
        self.units: dict[Named, list[Row]] = defaultdict(list)
        self.said: dict[Named, tuple[object, ...]] = {}
        for number, row in enumerate(data):
            unit = tuple(row[f"unit_{i}"] for i in range(rows.units))
            if any(part is None for part in unit):
                continue
            who = named(unit) if rows.units else (number,)
            self.units[who].append(row)
            self.said[who] = unit

    def key(self, row: Row) -> Key:
        return tuple(row[f"key_{i}"] for i in range(self.rows.keys))

    def value(self, row: Row, column: int | None) -> float | None:
        found = row[f"value_{column}"]
        return None if found is None or math.isnan(found) else float(found)

    def hashed(self, salt: bytes, who: Named, key: Key) -> int:
        return mix(digest(salt, "u", self.said[who]) ^ digest(salt, "k", key))

    def held(self, rows: Sequence[Row]) -> dict[Named, list[Row]]:
        """Rows of one unit by the group they are in."""
        found: dict[Named, list[Row]] = defaultdict(list)
        for row in rows:
            found[named(self.key(row))].append(row)
        return found

    def holders(self, *, most: int, salt: bytes) -> Mapping[Key, int]:
        """See `Loaded`."""
        counts: Counter[Named] = Counter()
        keys: dict[Named, Key] = {}
        for who, rows in self.units.items():
            groups = self.held(rows)
            keys |= {group: self.key(inside[0]) for group, inside in groups.items()}
            counts.update(list(self.sample(who, groups, most, salt)))
        return {keys[group]: count for group, count in counts.items()}

    def sample(
        self, who: Named, groups: Mapping[Named, list[Row]], most: int, salt: bytes
    ) -> dict[Named, list[Row]]:
        """The at most `most` groups of least hash."""
        hashes = {group: self.hashed(salt, who, self.key(rows[0])) for group, rows in groups.items()}
        kept = least(hashes, most) if self.rows.units else set(groups)
        return {group: rows for group, rows in groups.items() if group in kept}

    def asked(self, keys: Sequence[Key]) -> Iterator[tuple[Named, dict[Named, list[Row]]]]:
        """Each unit with its rows in the groups that are asked for, if any."""
        wanted = {named(key) for key in keys}
        assert len(wanted) == len(keys)
        for who, rows in self.units.items():
            groups = {group: inside for group, inside in self.held(rows).items() if group in wanted}
            if groups:
                yield who, groups

    def shapes(self, keys: Sequence[Key], *, norm: Literal["l2", "l1"], presence: bool) -> NDArray[np.int64]:
        """See `Loaded`."""
        found = np.zeros((SIZES, SPREADS), np.int64)
        for _, groups in self.asked(keys):
            counts = [1 if presence else len(rows) for rows in groups.values()]
            square = self.square(counts, norm)
            spread = bin_of(Fraction(sum(counts) ** 2, square))
            found[min(bin_of(Fraction(square)), SIZES - 1), min(spread, SPREADS - 1)] += 1
        return found

    def square(self, counts: Sequence[int], norm: Literal["l2", "l1"]) -> int:
        """The square of the norm."""
        return sum(n * n for n in counts) if norm == "l2" else sum(counts) ** 2

    def magnitudes(self, column: int) -> NDArray[np.int64]:
        """See `Loaded`."""
        found = np.zeros(MAGNITUDES, np.int64)
        for rows in self.units.values():
            values = [value for row in rows if (value := self.value(row, column)) is not None]
            for place, count in Counter(magnitude(value) for value in values).items():
                found[place] += MASS * count // len(values)
        return found

    def totals(self, keys: Sequence[Key], measures: Sequence[Measure], bounding: Bounding) -> Integers:
        """See `Loaded`."""
        places = {named(key): place for place, key in enumerate(keys)}
        sums = [[[0] * measure.width for measure in measures] for _ in keys]
        seen: set[object] = set()
        for who, groups in self.asked(keys):
            kept = (
                groups
                if bounding.groups is None
                else self.sample(who, groups, bounding.groups, bounding.salt)
            )
            for group, place, number, value in self.contributed(who, kept, measures, bounding, seen):
                sums[places[group]][number][place] += value
        flat = [[one for measure in line for one in measure] for line in sums]
        width = sum(measure.width for measure in measures)
        return np.array(flat, dtype=object).reshape(len(keys), width)

    def contributed(
        self,
        who: Named,
        groups: Mapping[Named, list[Row]],
        measures: Sequence[Measure],
        bounding: Bounding,
        seen: set[object],
    ) -> Iterator[tuple[Named, int, int, int]]:
        """What one unit adds: group, place within the measure, number of the measure, integer."""
        if not groups:
            return
        whole = weight(bounding.limit, self.square([len(rows) for rows in groups.values()], bounding.norm))
        once = weight(bounding.presence, self.square([1 for _ in groups], bounding.norm))
        for number, measure in enumerate(measures):
            if measure.kind == "distinct":
                yield from self.pairs(who, groups, number, measure, bounding, seen)
                continue
            for group, rows in groups.items():
                if measure.kind == "units":
                    yield group, 0, number, once
                    continue
                for row in rows:
                    for place, amount in self.amounts(row, measure):
                        yield group, place, number, whole * amount

    def amounts(self, row: Row, measure: Measure) -> Iterator[tuple[int, int]]:
        """What one row adds to a measure, before weights."""
        if measure.kind == "rows":
            yield 0, 1
            return
        value = self.value(row, measure.column)
        if value is None:
            return
        if measure.kind == "present":
            yield 0, 1
            return
        assert measure.range is not None
        if measure.kind == "sum":
            yield 0, steps(value, measure.range)
        elif measure.kind == "squares":
            yield 0, steps(value, measure.range) ** 2 >> measure.shift
        else:
            for level in range(1, measure.levels + 1):
                yield 2**level - 2 + (leaf(value, measure) >> (measure.levels - level)), 1

    def pairs(
        self,
        who: Named,
        groups: Mapping[Named, list[Row]],
        number: int,
        measure: Measure,
        bounding: Bounding,
        seen: set[object],
    ) -> Iterator[tuple[Named, int, int, int]]:
        """The pairs (group, value) of one unit that nobody before it has brought."""
        hashes: dict[tuple[Named, object], int] = {}
        for group, rows in groups.items():
            hashed = self.hashed(bounding.salt, who, self.key(rows[0]))
            for row in rows:
                value = row[f"distinct_{measure.column}"]
                if value is not None:
                    hashes[group, name(value)] = mix(hashed ^ digest(bounding.salt, "v", [value]))
        for pair in least(hashes, bounding.pairs) if self.rows.units else set(hashes):
            if (number, pair) not in seen:
                seen.add((number, pair))
                yield pair[0], 0, number, 1


class ReferenceEngine:
    """Rows that have been evaluated already; `evaluate` may make them from a `Rows` instead."""

    dialect = "duckdb"

    def __init__(
        self,
        data: Sequence[Row] = (),
        *,
        columns: Mapping[str, str] | None = None,
        evaluate: Callable[[Rows], Sequence[Row]] | None = None,
    ) -> None:
        self.data = list(data)
        self._columns = dict(columns or {})
        self._evaluate = evaluate

    def columns(self, table: str) -> Mapping[str, str]:
        """What was said at the beginning."""
        return self._columns

    def version(self) -> str:
        """Always the same."""
        return "reference"

    def turn(self) -> AbstractContextManager[object]:
        """Nobody waits."""
        return nullcontext()

    @contextmanager
    def load(self, rows: Rows) -> Iterator[ReferenceLoaded]:
        """The rows given, or those that `evaluate` makes."""
        yield ReferenceLoaded(self._evaluate(rows) if self._evaluate else self.data, rows)

    def same(self, table: str, other: str) -> bool:
        """There is one table."""
        return table == other

    def public(self, sql: str) -> list[dict[str, Any]]:
        """There are no public tables here."""
        return []

    def close(self) -> None:
        """Nothing to let go of."""
