"""Codes in whatever type a table has them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.coded_columns import read_codes

CODES = [[0, 1], [2, 3], [1, 0]]


@pytest.mark.parametrize(
    "value",
    [
        CODES,
        [tuple(row) for row in CODES],
        [[np.int64(c) for c in row] for row in CODES],
        [np.array(row) for row in CODES],
        [[float(c) for c in row] for row in CODES],
        np.array(CODES),
        np.array(CODES, dtype=np.uint64),
        np.array(CODES, dtype=np.int8),
        np.array(CODES, dtype=float),
        np.array(CODES, dtype=object),
    ],
)
def test_codes_read_alike_in_every_type(value: object) -> None:
    assert read_codes(value, 2).tolist() == CODES


def test_what_is_no_code_is_outside_every_range() -> None:
    odd = [None, math.nan, math.inf, -1, 0.5, True, "1", 10**400, -(10**400), np.float64("nan"), [1]]
    assert set(read_codes([[cell] for cell in odd], 1).ravel().tolist()) == {-1}
    assert read_codes(np.array([[math.nan], [math.inf], [0.5], [1e300], [-0.0]]), 1).ravel().tolist() == [
        -1, -1, -1, -1, 0,
    ]  # fmt: skip
    assert read_codes(np.array([[2**64 - 1]], dtype=np.uint64), 1).tolist() == [[-1]]
    assert read_codes([[1], [1, 2], "a", None], 1).tolist() == [[1], [-1], [-1], [-1]]


@pytest.mark.parametrize(
    "value", [np.zeros(2), np.zeros((2, 3)), np.array([["a", "b"]]), np.zeros((2, 2), "M8[D]")]
)
def test_a_table_of_another_type_or_shape_is_refused(value: np.ndarray) -> None:
    with pytest.raises(InvalidArgument, match="table of integer codes"):
        read_codes(value, 2)
