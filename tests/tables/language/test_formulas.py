"""Formulas never fail, and where aggregates lie within their bars, so do formulas."""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.tables.language.formulas import (
    AggregateValue,
    Constant,
    Estimate,
    Formula,
    KeyColumn,
    Operation,
    aggregates_of,
    estimate,
    holds,
    value,
)
from dalenius.tables.language.functions import evaluate, like
from dalenius.tables.language.intervals import SPANS, Span

ONE = [
    "cast_real",
    "cast_integer",
    "negate",
    "abs",
    "floor",
    "ceil",
    "trunc",
    "sqrt",
    "cbrt",
    "ln",
    "log10",
    "log2",
    "exp",
    "sign",
    "round",
]
TWO = ["add", "subtract", "multiply", "divide", "modulo", "power", "least", "greatest", "nullif", "coalesce"]
TESTS = ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
NUMBERS = st.floats(-1e6, 1e6) | st.integers(-5, 5).map(float)


def formulas(depth: int = 3) -> st.SearchStrategy[Formula]:
    leaves = st.sampled_from([AggregateValue(0), AggregateValue(1)]) | NUMBERS.map(Constant)
    if depth == 0:
        return leaves
    below = formulas(depth - 1)
    one = st.builds(lambda name, a: Operation(name, (a,)), st.sampled_from(ONE), below)
    two = st.builds(lambda name, a, b: Operation(name, (a, b)), st.sampled_from(TWO), below, below)
    test = st.builds(lambda name, a, b: Operation(name, (a, b)), st.sampled_from(TESTS), below, below)
    case = st.builds(lambda a, b, c: Operation("case", (a, b, c)), test, below, below)
    return leaves | one | two | case


@settings(max_examples=400, deadline=None)
@given(formulas(), NUMBERS, NUMBERS, st.floats(0, 10), st.floats(0, 10))
def test_a_formula_lies_within_its_bar(
    formula: Formula, a: float, b: float, wide: float, high: float
) -> None:
    bars = [Estimate(a, a - wide, a + high), Estimate(b, b - high, b + wide)]
    found = estimate(formula, (), bars)
    for shift in (0, -0.9, 0.7):
        truth = value(
            formula,
            (),
            [a + shift * (wide if shift < 0 else high), b + shift * (high if shift < 0 else wide)],
        )
        if isinstance(truth, int | float) and found.low is not None and found.high is not None:
            slack = 1e-9 * (1 + abs(truth))  # floats round; the bar is of exact arithmetic
            assert found.low - slack <= truth <= found.high + slack


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(SPANS)),
    st.lists(st.none() | NUMBERS | st.text(max_size=2) | st.booleans(), max_size=3),
)
def test_no_function_raises(name: str, arguments: list[object]) -> None:
    result = evaluate(name, arguments)  # type: ignore[arg-type]
    assert not (isinstance(result, float) and math.isnan(result))


def test_null_and_impossible_values() -> None:
    ratio = Operation("divide", (AggregateValue(0), AggregateValue(1)))
    assert value(ratio, (), [1, 0]) is None and value(ratio, (), [None, 2]) is None
    assert value(Operation("exp", (Constant(1e6),)), (), []) is None
    assert value(Operation("and", (Constant(None), Constant(False))), (), []) is False
    assert value(Operation("or", (Constant(None), Constant(True))), (), []) is True
    assert value(Operation("coalesce", (AggregateValue(0), Constant(0))), (), [None]) == 0
    assert not holds(Operation("greater", (AggregateValue(0), Constant(1))), (), [None])
    assert holds(Operation("greater", (AggregateValue(0), Constant(1))), (), [2])


def test_bars_of_ratios() -> None:
    ratio = Operation("divide", (AggregateValue(0), AggregateValue(1)))
    assert estimate(ratio, (), [Estimate(6, 4, 8), Estimate(2, 1, 4)]) == Estimate(3.0, 1.0, 8.0)
    crossing = estimate(ratio, (), [Estimate(6, 4, 8), Estimate(1, -1, 3)])
    assert (crossing.low, crossing.high) == (-math.inf, math.inf)
    touching = estimate(ratio, (), [Estimate(6, 4, 8), Estimate(1, 0, 2)])
    assert (touching.low, touching.high) == (2.0, math.inf)


def test_keys_and_texts_have_no_bars() -> None:
    assert estimate(KeyColumn(0), ("A",), []) == Estimate("A")
    named = Operation(
        "case", (Operation("greater", (AggregateValue(0), Constant(5))), Constant("many"), Constant("few"))
    )
    assert estimate(named, (), [Estimate(9, 1, 20)]) == Estimate("many")
    assert estimate(
        Operation("greater", (AggregateValue(0), Constant(5))), (), [Estimate(9, 1, 20)]
    ) == Estimate(True)


def test_the_text_of_a_formula_tells_it_apart() -> None:
    ratio = Operation("divide", (AggregateValue(0), Constant(7)))
    assert str(ratio) == "divide(aggregate_0, 7)" and aggregates_of(ratio) == {0}
    assert (
        str(Constant("7")) != str(Constant(7))
        and str(Constant(None)) == "null"
        and str(KeyColumn(2)) == "key_2"
    )
    day, noon = date(2024, 1, 1), datetime(2024, 1, 1)
    texts = [day, noon, day.isoformat(), noon.isoformat(), str(Constant(day)), str(Constant(noon))]
    assert len({str(Constant(each)) for each in texts}) == len(texts)


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "_b_", True),
        ("abc", "b", False),
        ("", "%", True),
        ("a.c", "a.c", True),
    ],
)
def test_like(text: str, pattern: str, matches: bool) -> None:
    assert like(text, pattern) is matches


def test_spans_round_outward() -> None:
    third = SPANS["divide"](Span.of(1, 1), Span.of(3, 3))
    assert third.low == third.high == Fraction(1, 3)
    root = SPANS["sqrt"](Span.of(2, 2))
    assert root.low**2 < 2 < root.high**2
    assert SPANS["ln"](Span.of(0, 1)).low == -math.inf and SPANS["ln"](Span.of(0, 1)).high >= 0
    assert SPANS["sqrt"](Span.of(-4, -1)).low == 0
    assert SPANS["multiply"](Span(Fraction(0), math.inf), Span.of(0, 0)) == Span.of(0, 0)


@pytest.mark.parametrize(
    ("name", "bar"), [("cast_real", (0.25, 9.5)), ("cast_integer", (0.0, 10.0)), ("cast_text", (None, None))]
)
def test_casts_between_numbers_carry_bars(name: str, bar: tuple[float | None, float | None]) -> None:
    found = estimate(Operation(name, (AggregateValue(0),)), (), [Estimate(3, 0.25, 9.5)])
    assert (found.low, found.high) == bar
    text = estimate(Operation("cast_real", (KeyColumn(0),)), ("7",), [])
    assert text.value == 7 and text.low == -math.inf and text.high == math.inf
