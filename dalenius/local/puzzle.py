"""The fragment puzzle: frequent strings from single bytes that carry a mark of the whole string.

Apple's way to discover new words (Differential Privacy Team, Apple 2017: sequence fragment puzzle), in a
form where each person reports once: group r < `length` reports on byte r of its strings together with a
mark, a hash of the whole string onto 64 values; the last group reports on whole strings. The server asks
each group about all 16,384 pairs of a byte and a mark, puts bytes of one mark together into strings, drops
those whose own mark is another, and asks the last group which of these are there.

Strings that differ in marks do not mix. Where frequent strings share one, all ways to put their bytes
together are tried, up to `MOST`. What is listed wrongly, and how often: `grouped`; the law is that of the
last group, whatever was put together before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import islice, product

from dalenius.local.grouped import Ask, GroupedSketch

MARKS = 64
MOST = 4096
"""Strings that are put together for one mark."""


@dataclass(frozen=True)
class FragmentPuzzle(GroupedSketch, kind="fragment_puzzle"):
    """A group for each byte, and one for whole strings."""

    @property
    def groups(self) -> int:
        """One for each byte, and one more."""
        return self.length + 1

    def parts(self, text: bytes) -> list[bytes]:
        """Bytes with the mark, then the whole."""
        mark = _mark(text)
        return [_piece(place, one, mark) for place, one in enumerate(text)] + [text]

    def hitters(self, ask: Ask) -> list[bytes]:
        """Strings put together, as the last group has them."""
        pieces = [self._survivors(ask, place) for place in range(self.length)]
        whole = [
            text
            for mark in range(MARKS)
            for text in islice(map(bytes, product(*(piece.get(mark, []) for piece in pieces))), MOST)
            if _mark(text) == mark
        ]
        return ask.surviving(self.length, whole)

    def _survivors(self, ask: Ask, place: int) -> dict[int, list[int]]:
        """The bytes at a place, by their marks."""
        asked = {_piece(place, one, mark): (one, mark) for mark in range(MARKS) for one in range(256)}
        found: dict[int, list[int]] = {}
        for piece in ask.surviving(place, list(asked)):
            one, mark = asked[piece]
            found.setdefault(mark, []).append(one)
        return found


def _mark(text: bytes) -> int:
    return hashlib.blake2b(text, digest_size=1, person=b"mark").digest()[0] % MARKS


def _piece(place: int, one: int, mark: int) -> bytes:
    return b"piece" + bytes([place, one, mark])
