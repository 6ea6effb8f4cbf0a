"""The same expression has the same value on the same line as in DuckDB, and never an error."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from engines.conformance.comparing import compare_values, values_sql
from engines.conformance.sites import EXAMPLES, EXPRESSIONS, SITES, Site, sized
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from language.nasty import COLUMNS, applied, expressions
from language.test_total import TYPES

from dalenius.tables.language.expressions import (
    DUCKDB_ALONE,
    RULES,
    Column,
    Expression,
    call,
    literal,
    parts_of,
)

SIX = settings(
    max_examples=6,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
NAMES = sorted(set(RULES) - set(DUCKDB_ALONE))
FUNCTIONS = [NAMES[first : first + 10] for first in range(0, len(NAMES), 10)]
PLACES = {name: Column(place, type_) for place, (name, type_) in enumerate(COLUMNS.items())}
DATED = call("replace", PLACES["t"], literal("30"), literal("29"))
FAILING = {
    "a division by zero": call("divide", literal(1), PLACES["i"]),
    "a remainder by zero": call("modulo", literal(7), PLACES["i"]),
    "a sum of whole numbers that is too large": call("add", PLACES["i"], PLACES["i"]),
    "a product that is too large": call("multiply", PLACES["i"], literal(2**62)),
    "a root of what is negative": call("sqrt", PLACES["x"]),
    "a logarithm of what is not positive": call("ln", PLACES["d"]),
    "a text that is no number": call("cast_real", PLACES["t"]),
    "a text that is no whole number": call("cast_integer", PLACES["t"]),
    "a text that is no date": call("cast_date", DATED),
    "a text that is no moment": call("cast_moment", DATED),
    "a real number that is no whole one": call("cast_integer", PLACES["x"]),
    "a day beyond the calendar": call("date_add", literal("year"), PLACES["day"], literal(9000)),
}


def drawn(number: int, several: st.SearchStrategy[Sequence[Expression]]) -> list[Expression]:
    """What a strategy gives in six draws, the same each time."""
    found: list[Expression] = []

    @seed(number)
    @SIX
    @given(several)
    def keep(some: Sequence[Expression]) -> None:
        found.extend(some)

    keep()
    return found


def some(depth: int, size: int = 12) -> st.SearchStrategy[Sequence[Expression]]:
    """Expressions of any type."""
    one = st.sampled_from(TYPES).flatmap(lambda type_: expressions(type_, depth))
    return st.lists(one, min_size=size, max_size=size)


@sized(EXPRESSIONS)
def test_random_expressions(site: Site, number: int) -> None:
    compare_values(site, drawn(number, some(3)))


@pytest.mark.slow
@sized(dict.fromkeys(SITES, 100), first=1000)
def test_random_expressions_at_length(site: Site, number: int) -> None:
    compare_values(site, drawn(number, some(4, 24)))


@sized(dict.fromkeys(SITES, len(FUNCTIONS)))
def test_every_function(site: Site, number: int) -> None:
    each = st.tuples(*(applied(name) for name in FUNCTIONS[number] for _ in range(EXAMPLES[site.name] // 6)))
    compare_values(site, drawn(number, each))


def test_lines_are_read_the_same(site: Site) -> None:
    compare_values(site, [place for place in PLACES.values() if place.type != "other"])


@pytest.mark.parametrize("what", FAILING)
def test_what_fails_on_one_line_is_null_there(site: Site, what: str) -> None:
    expression = FAILING[what]
    compare_values(site, [expression])
    given = [part for part in parts_of(expression) if isinstance(part, Column)]
    (found,) = site.answers(site.nasty, [values_sql(site.name, [expression, *given])])
    assert any(value is None and None not in arguments for value, *arguments in found)
    assert any(value is not None for value, *_ in found)
