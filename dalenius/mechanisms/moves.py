"""Which neighbours to tell apart: moves that use all of a sensitivity, in whole steps.

The largest entries first is the worst move for Laplace noise (see `laplace`), and the longest there is in L2.
For the Gaussian family only the L2 norm counts, so there the move is spread evenly over all entries wherever
that is as long: it then shows what is wrong in any of them.
"""

from __future__ import annotations

import math

from dalenius.privacy.sensitivity import Sensitivity

SPREAD = 4
"""Over so many entries, where their number is not stated."""
LENGTH = 64
"""The longest vector that is shown for moves of fewer entries."""
LONGEST = 2**16
"""No move has more entries."""
TURNS = 8
"""In so many places, at most, a move is shown."""
SHORT = 0.999
"""What an even move may lack of the longest, as a share of its square."""


def furthest(bound: Sensitivity, norm: str) -> list[int]:
    """By how many steps each entry that moves does, within a bound in steps."""
    long = _move(bound, None)
    if norm != "l2":
        return long
    even = _move(bound, SPREAD if bound.l0 is None else bound.l0)
    return even if _square(even) >= SHORT * _square(long) else long


def in_turn(move: list[int], entries: int | None) -> list[list[int]]:
    """The move in the first places of a vector, in the next ones, and so on to the last."""
    length = max(len(move), min(entries or SPREAD, LENGTH))
    room = length - len(move)
    turns = min(TURNS, math.ceil(length / len(move)))
    starts = [room * i // max(turns - 1, 1) for i in range(turns)]
    return [[0] * start + move + [0] * (room - start) for start in starts]


def _move(bound: Sensitivity, parts: int | None) -> list[int]:
    """The largest steps first; or, for so many parts, each its share of what is left of the square."""
    left = math.inf if bound.l1 is None else math.floor(bound.l1)
    square = math.floor(bound.l2**2) if bound.l2 is not None else math.inf
    found: list[int] = []
    while left and square and len(found) < min(bound.l0 or LONGEST, LONGEST):
        size = min(math.floor(bound.need("linf")), left)
        if isinstance(square, int):
            share = square if parts is None else -(-square // max(parts - len(found), 1))
            size = min(size, math.isqrt(square), math.isqrt(share - 1) + 1)
        found.append(int(size))
        left, square = left - size, square - size**2
    return found


def _square(move: list[int]) -> int:
    return sum(size**2 for size in move)
