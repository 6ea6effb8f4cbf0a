"""The working precision of the twins, for each thread its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

USUAL = 53


class Working(local):
    """How many bits the ends of intervals are rounded to."""

    bits = USUAL


WORKING = Working()


def precision() -> int:
    """The working precision here and now, in bits."""
    return WORKING.bits


@contextmanager
def workprec(bits: int) -> Iterator[None]:
    """Work with so many bits within the block."""
    before = WORKING.bits
    WORKING.bits = bits
    try:
        yield
    finally:
        WORKING.bits = before
