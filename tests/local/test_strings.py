"""Strings and their hashes: known answers that never change, and collisions as the theorem says."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.local.puzzle import _mark
from dalenius.local.strings import as_bytes, constants, places, power_of_two, read_strings, words_of


def test_hashes_are_part_of_the_wire_format() -> None:
    """Devices and servers of any version must agree."""
    assert words_of([b"", b"hello"]).tolist() == [[1470146276, 3031595380], [2834151079, 2100618497]]
    assert constants(1).tolist() == [[10926858704152811727, 956920534037384823, 17342748998844960298]]
    assert places(words_of([b"hello"]), constants(4), 1024).tolist() == [279, 777, 379, 223]
    assert _mark(b"hello") == 8


def test_places_are_those_of_the_formula() -> None:
    (x, y), family = words_of([b"a"]).tolist()[0], constants(8).tolist()
    true = [((a * x + b * y + c) % 2**64) >> 58 for a, b, c in family]
    assert places(words_of([b"a"]), constants(8), 64).tolist() == true


def test_pairs_collide_once_in_as_many_places() -> None:
    """Of 65,536 hashes onto 64 places, at six standard deviations for each of three pairs."""
    words = words_of([b"a", b"b", b"c"])
    spots = [places(word[None], constants(65_536), 64) for word in words]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        same = np.count_nonzero(spots[one] == spots[other])
        assert abs(same - 1024) < 6 * (1024 * 63 / 64) ** 0.5


def test_nothing_fails_by_a_value() -> None:
    odd = ["a", b"a", 7, np.int64(7), None, True, 1.5, object(), "\ud800", "x" * 5000]
    assert read_strings(odd)[:8] == [b"a", b"a", b"7", b"7", b"", b"", b"", b""]
    assert len(as_bytes("x" * 5000)) == 1024
    assert read_strings(np.array(odd, dtype=object)) == read_strings(odd)
    assert read_strings("ab") == [b"ab"]
    with pytest.raises(InvalidArgument, match="type"):
        read_strings(np.array([0.5]))


def test_powers_of_two() -> None:
    assert power_of_two(64, "columns") == 64
    with pytest.raises(InvalidArgument, match="power of two") as refusal:
        power_of_two(100, "columns")
    assert "columns=128" in refusal.value.remedy
