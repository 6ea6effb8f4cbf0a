"""The same integers for the same salt, data and bounds: those of the reference engine, bit for bit."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import nasty
import pytest
from engines.conformance.integers import check
from engines.conformance.sites import BATCH, KEYS, SITES, TABLES, Site, loaded, seen, sized
from reference import ReferenceEngine

TRIED = {
    "NULL": lambda value: value is None,
    "NaN": lambda value: isinstance(value, float) and math.isnan(value),
    "infinity": lambda value: value == math.inf,
    "−infinity": lambda value: value == -math.inf,
    "−0": lambda value: isinstance(value, float) and value == 0 and math.copysign(1, value) < 0,
    "a decimal": lambda value: isinstance(value, Decimal) and value != int(value),
    "a whole number of more than 64 bits": lambda value: type(value) is int and abs(value) > 2**64,
    "a date": lambda value: type(value) is date,
    "a moment": lambda value: isinstance(value, datetime) and value.tzinfo is None,
    "a moment of a time zone": lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    "a text beyond ASCII": lambda value: isinstance(value, str) and not value.isascii(),
}
BATCHES = {name: TABLES[name] // BATCH[name] for name in SITES}


def wide() -> nasty.Table:
    """Units and keys that have each value of every type, by a column of each."""
    random, most = Random(0), max(map(len, KEYS.values()))
    units = [{f"unit_{i}": values[place % (len(values) - 1)] for i, values in enumerate(nasty.UNITS.values())}
             for place in range(most)]  # fmt: skip
    keys = [{f"key_{i}": values[place % len(values)] for i, values in enumerate(KEYS.values())}
            for place in range(most)]  # fmt: skip
    units.append(units[0] | {"unit_0": None})
    others = [{"value_0": value, "distinct_0": day} for value in nasty.VALUES for day in KEYS["DATE"]]
    types = {f"unit_{i}": kind for i, kind in enumerate(nasty.UNITS)}
    types |= {f"key_{i}": kind for i, kind in enumerate(KEYS)} | {"value_0": "DOUBLE", "distinct_0": "DATE"}
    data = [random.choice(units) | keys[place % most] | other for place, other in enumerate(others)]
    return nasty.Table(types, data, nasty.Rows("", len(nasty.UNITS), len(KEYS), 1, 1))


def compare(site: Site, asked: nasty.Table, seed: int = 0) -> None:
    known = seen(asked)
    with ReferenceEngine(known.data).load(asked.rows) as truth, loaded(site, asked) as found:
        check(Random(seed), known, found, truth, few=site.name == "spark")


def batch(site: Site, number: int) -> None:
    for seed in range(number * BATCH[site.name], (number + 1) * BATCH[site.name]):
        compare(site, nasty.table(Random(seed), KEYS), seed)


@sized(BATCHES)
def test_equal_to_the_reference(site: Site, number: int) -> None:
    batch(site, number)


@pytest.mark.slow
@sized({"duckdb": 40, "postgres": 80, "spark": 100}, first=10**5)
def test_equal_to_the_reference_at_length(site: Site, number: int) -> None:
    batch(site, number)


def test_all_that_is_awkward(site: Site) -> None:
    asked = wide()
    for part in ("unit", "key"):
        values = [value for row in asked.data for column, value in row.items() if column.startswith(part)]
        away = {"a decimal", "a moment of a time zone"} if part == "unit" else set()
        assert {what for what, holds in TRIED.items() if any(map(holds, values))} == TRIED.keys() - away
    compare(site, asked)


def test_an_empty_table(site: Site) -> None:
    types = {"unit_0": "BIGINT", "key_0": "VARCHAR", "value_0": "DOUBLE", "distinct_0": "DATE"}
    compare(site, nasty.Table(types, [], nasty.Rows("", 1, 1, 1, 1)))


def test_keys_of_any_alphabet_are_told_as_they_are(site: Site) -> None:
    texts = [
        "ß",
        "SS",
        "İ",
        "i̇",
        "é",
        "e\u0301",
        "日本",
        "🙂",
        "\u202eab",
        " a",
        "a ",
        "'",
        '"',
        "\\",
        '\\"',
        "%_",
        "a\nb",
        "a,b",
        "{}",
        "NULL",
        "",
    ]
    data: list[dict[str, Any]] = [{"unit_0": unit, "key_0": key} for unit, key in enumerate(texts)]
    unicode = nasty.Table({"unit_0": "BIGINT", "key_0": "VARCHAR"}, data, nasty.Rows("", 1, 1))
    with loaded(site, unicode) as found:
        assert found.holders(most=1, salt=bytes(32)) == {(key,): 1 for key in texts}
        assert found.shapes([(key,) for key in texts], norm="l2", presence=False).sum() == len(texts)
