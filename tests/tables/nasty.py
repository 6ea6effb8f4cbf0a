"""Small random tables of awkward values, the same as Python rows for the reference engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, Literal

from dalenius.privacy.quantized import Grid
from dalenius.tables.engines.engine import Bounding, Measure
from dalenius.tables.rows import Key, Range, Rows

UNITS: dict[str, Sequence[Any]] = {
    "BIGINT": (0, 1, 2, 3, -7, 40, None),
    "HUGEINT": (2**100, -(2**100), 0, 1, None),
    "UBIGINT": (2**64 - 1, 2**64 - 2, 2**64 - 9, None),
    "INTEGER": (-(2**31), 2**31 - 1, 5, None),
    "VARCHAR": ("", "a", "A", "ä", "a\u0308", "日本", "a'b", "NULL", None),
    "DOUBLE": (0.0, -0.0, math.nan, math.inf, -math.inf, 1e-300, 0.1, None),
    "DATE": (date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None),
    "TIMESTAMP": (datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 1, 1), None),
    "BOOLEAN": (True, False, None),
}
KEYS = UNITS | {"DECIMAL(9,2)": (Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), None)}
PRINTED: dict[str, Sequence[Any]] = {
    "BIGINT": (0, 1, 2, -7, 2**63 - 1, -(2**63), None),
    "VARCHAR": UNITS["VARCHAR"],
    "DOUBLE": (0.0, math.inf, -math.inf, 1e-300, 5e-324, 0.1, None),
    "DATE": UNITS["DATE"],
    "TIMESTAMP": UNITS["TIMESTAMP"],
    "BOOLEAN": UNITS["BOOLEAN"],
}
"""Keys and distinct values as a dialect prints them: no NaN, no −0, whole numbers of 64 bits."""
VALUES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    2.5,
    -2.5,
    1e300,
    -1e300,
    5e-324,
    2.0**60,
    math.nan,
    math.inf,
    -math.inf,
    None,
)


@dataclass(frozen=True)
class Table:
    """Column types, and rows of the columns of `Rows`."""

    types: dict[str, str]
    data: list[dict[str, Any]]
    rows: Rows

    @property
    def keys(self) -> list[Key]:
        """Every key there is, as the engine tells them."""
        found: list[Key] = []
        for row in self.seen():
            key = tuple(row[f"key_{i}"] for i in range(self.rows.keys))
            if repr(key).replace("-0.0", "0.0") not in {repr(one).replace("-0.0", "0.0") for one in found}:
                found.append(key)
        return found

    def seen(self) -> list[dict[str, Any]]:
        """The rows as the reference takes them: decimals are real numbers."""
        return [
            {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}
            for row in self.data
        ]


def table(
    random: Random, kinds_of_keys: Mapping[str, Sequence[Any]] = KEYS, units_of: Sequence[str] = tuple(UNITS)
) -> Table:
    """A table of up to forty rows."""
    units, keys, values, distincts = random.choice(
        [(1, 1, 1, 0), (1, 1, 2, 1), (2, 2, 1, 1), (0, 1, 1, 1), (1, 0, 1, 0), (1, 2, 0, 0), (0, 0, 0, 1)]
    )
    kinds = {f"unit_{i}": random.choice(units_of) for i in range(units)}
    kinds |= {f"key_{i}": random.choice(list(kinds_of_keys)) for i in range(keys)}
    kinds |= {f"value_{i}": "DOUBLE" for i in range(values)}
    kinds |= {f"distinct_{i}": random.choice(list(kinds_of_keys)) for i in range(distincts)}
    data = [
        {name: random.choice(values_of(name, kind, kinds_of_keys)) for name, kind in kinds.items()}
        for _ in range(random.choice([0, 1, 3, 12, 40]))
    ]
    sql = f"SELECT {', '.join(kinds) or '1'} FROM data"
    return Table(kinds, data, Rows(sql, units, keys, values, distincts))


def values_of(name: str, kind: str, kinds_of_keys: Mapping[str, Sequence[Any]]) -> Sequence[Any]:
    if name.startswith("value"):
        return VALUES
    return UNITS[kind] if name.startswith("unit") else kinds_of_keys[kind]


def some_range(random: Random, widest: int = 2**45) -> Range:
    """From a few steps to very many."""
    exponent = random.choice([-40, -3, 0, 1, 5])
    width = random.choice([1, 7, 2**20, widest])
    low = random.choice([0, -width, -width // 2, 3])
    step = Fraction(2) ** exponent
    return Range(
        low * step, (low + width) * step, Grid(exponent), random.choice([0, low, low + width // 2, 5])
    )


def measures(random: Random, table: Table, widest: int = 2**45) -> list[Measure]:
    """Some of each kind that the table allows; squares of so many steps at most."""
    found = [Measure("rows"), Measure("units")]
    for column in range(table.rows.values):
        found += [
            Measure("present", column),
            Measure("sum", column, some_range(random)),
            Measure("squares", column, some_range(random, widest), shift=random.choice([0, 1, 30])),
            Measure("tree", column, some_range(random), levels=random.choice([1, 3, 6])),
        ]
    found += [Measure("distinct", column) for column in range(table.rows.distincts)]
    random.shuffle(found)
    return found


def bounding(random: Random) -> Bounding:
    """Tight and loose."""
    norm: Literal["l2", "l1"] = random.choice(["l2", "l1"])
    limits = [
        Fraction(1, 3),
        Fraction(1),
        Fraction(17, 10),
        Fraction(10),
        Fraction(10**30),
        Fraction(1, 10**9),
    ]
    return Bounding(
        norm,
        limit=random.choice(limits),
        presence=random.choice(limits),
        pairs=random.choice([1, 2, 5]),
        groups=random.choice([None, None, 1, 2, 4]),
        salt=random.randbytes(32),
    )
