"""Numbers are read as what they print, and refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers


@pytest.mark.parametrize("value", [0.1, Decimal("0.1"), Fraction(1, 10), np.float32(0.1), np.float64(0.1)])
def test_a_tenth_is_a_tenth(value: object) -> None:
    assert numbers.exact(value, "x") == Fraction(1, 10)


READERS = [numbers.exact, numbers.positive, numbers.count, numbers.epsilon, numbers.confidence, numbers.delta]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, True, "1", None, [1], 1j, Decimal("NaN"), Decimal("1e999999999"), np.array(1)],
)
def test_what_is_no_number_is_refused_by_name(read: Callable[..., object], value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^size must be") as caught:
        read(value, "size")
    assert "size" in caught.value.remedy


@pytest.mark.parametrize("read", READERS[2:])
@pytest.mark.parametrize("value", [10**5000, -(10**5000), Fraction(10**5000, 3)], ids="abc")
def test_numbers_of_many_digits_are_refused_without_writing_them(
    read: Callable[..., object], value: object
) -> None:
    with pytest.raises(InvalidArgument, match="a huge number"):
        read(value, "size")


def test_epsilon_and_confidence_have_their_ranges() -> None:
    assert numbers.epsilon(1e-9) == Fraction(1, 10**9)
    assert numbers.epsilon(10**6) == 10**6
    for bad in (9e-10, 1000001, 0, -1):
        with pytest.raises(InvalidArgument, match="epsilon must be from 1e-9 to 1e6"):
            numbers.epsilon(bad)
    assert numbers.confidence(0.95) == Fraction(19, 20)
    for bad in (0, 1, -1, 95):
        with pytest.raises(InvalidArgument, match="confidence must be between 0 and 1"):
            numbers.confidence(bad)


def test_what_no_float_is_near_is_refused_where_floats_are_made() -> None:
    assert numbers.moderate(-(10**300), "lower") == -(10**300)
    for bad in (10**301, -(10**400)):
        with pytest.raises(InvalidArgument, match="lower must be within 1e300 of zero"):
            numbers.moderate(bad, "lower")


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**12))
def test_a_short_decimal_above(number: Fraction) -> None:
    shown = Fraction(numbers.above(number))
    assert number <= shown <= number * Fraction(11, 10)
