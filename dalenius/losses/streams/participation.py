"""What one unit may do in a stream: at which steps it may contribute.

    once()                          at one step of its choice
    min_separation(b, most=k)       at up to k steps, any two of them at least b apart ("b-min-sep")
    cyclic(b)                       at steps o, o + b, o + 2b, … for some o < b: epochs in a fixed order

Whoever contributes at step i may choose any contribution of norm at most 1 there, after seeing all that was
released before; to leave a step out is to contribute zero. The schedule must be kept by whoever runs the
stream, as nothing here enforces it (Choquette-Choo et al. 2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import whole


@dataclass(frozen=True)
class Participation:
    """Up to `most` steps at least `separation` apart; when `fixed`, all that are exactly so far apart."""

    separation: int = 1
    most: int | None = None
    fixed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "separation", whole(self.separation, "separation"))
        if self.most is not None:
            object.__setattr__(self, "most", whole(self.most, "most"))
        if self.fixed and self.most is not None:
            raise InvalidArgument(
                "A cyclic participation takes part in every epoch.",
                remedy="Leave most out, or use min_separation(separation, most=...).",
            )

    def times(self, length: int) -> int:
        """How often one unit may contribute to a stream of that length."""
        fit = -(-length // self.separation)
        return fit if self.most is None else min(self.most, fit)

    def patterns(self, length: int) -> Iterator[tuple[int, ...]]:
        """Every set of steps at which one unit may contribute, for short streams."""
        if self.fixed:
            yield from (
                tuple(range(first, length, self.separation)) for first in range(min(self.separation, length))
            )
        else:
            yield from self._from(0, self.times(length), length)

    def _from(self, start: int, left: int, length: int) -> Iterator[tuple[int, ...]]:
        for first in range(start, length):
            yield (first,)
            if left > 1:
                for rest in self._from(first + self.separation, left - 1, length):
                    yield (first, *rest)


def once() -> Participation:
    """One contribution in the whole stream."""
    return Participation(most=1)


def min_separation(separation: int, *, most: int | None = None) -> Participation:
    """Contributions at least `separation` steps apart, at most `most` of them."""
    return Participation(separation, most)


def cyclic(period: int) -> Participation:
    """One contribution in each epoch of `period` steps, always at the same place in it."""
    return Participation(period, fixed=True)
