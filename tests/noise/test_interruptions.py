"""An exception in the midst of a draw, or a handler that draws, serves no bit twice."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.noise.pool import DEPTH, Pool
from dalenius.noise.source import Source


class Interrupted(Exception):
    """What a signal handler raises."""


class Rude(np.ndarray):
    """A block whose wiping is interrupted, after the fact."""

    def fill(self, value: object) -> None:
        super().fill(value)
        raise Interrupted


def test_bytes_that_were_wiped_are_not_handed_out() -> None:
    source = Source()
    source.words(8, np.uint64)
    plain = source._block
    source._block = plain.view(Rude)
    with pytest.raises(Interrupted):
        source.words(8, np.uint64)
    source._block = plain
    assert np.count_nonzero(source.words(8, np.uint64)) == 8


def test_a_filling_cut_short_is_not_served() -> None:
    pool = Pool()

    def whole(values: np.ndarray) -> None:
        values[:] = 1

    def half(values: np.ndarray) -> None:
        values[:] = -1
        raise Interrupted

    pool.take(60, whole)
    for _ in range((DEPTH - 60) // 64):
        pool.take(64, whole)
    with pytest.raises(Interrupted):
        pool.take(64, half)
    assert pool.take(4, whole).tolist() == [1, 1, 1, 1]


def test_a_handler_that_draws_in_the_midst_of_a_draw_is_refused() -> None:
    source = Source()

    class Handler(np.ndarray):
        def fill(self, value: object) -> None:
            super().fill(value)
            source.words(1, np.uint64)

    source.words(8, np.uint64)
    source._block = source._block.view(Handler)
    with pytest.raises(NotSound):
        source.words(8, np.uint64)


def test_masked_utilities_are_refused_by_type() -> None:
    for mask in ([0, 0, 0], [1, 1, 1]):
        with pytest.raises(InvalidArgument):
            noise.permute_and_flip(np.ma.array([1, 2, 3], mask=mask), 1)


def test_single_precision_is_read_as_it_prints() -> None:
    from fractions import Fraction

    from dalenius.noise.reading import exact

    assert exact(np.float32(0.1), "scale") == exact(np.float16(0.1), "scale") == Fraction(1, 10)
