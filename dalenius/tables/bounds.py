"""`Bounds`: what a unit may contribute, where the caller says so instead of paying for a search.

    Bounds(rows=10, groups=5, ranges={"age": (0, 120)})

A bound that is given is enforced, whatever the data are: one that is too small takes something away, one that
is too large adds noise, and neither costs privacy. It must not come from the data itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.tables.question import Interval, Question

MOST_BOUND = 10**9
"""Rows, groups or values of one unit that may count."""
LEAST_SQUARED, MOST_SQUARED = Fraction(1, 10**120), Fraction(10**120)
"""How large the largest value may be of which a variance is taken."""


@dataclass(frozen=True)
class Bounds:
    """Bounds that the caller gives; None, or no range, where they are to be found privately."""

    rows: Number | None = None
    """The most rows of a unit that count, as a norm over its groups: so many where all are in one group."""
    groups: int | None = None
    """The most groups of a unit that count, drawn at random."""
    pairs: int | None = None
    """The most values of a unit that COUNT(DISTINCT …) counts, over all groups."""
    ranges: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)
    """Where the values of an expression lie, by the name it has in the query."""

    def __post_init__(self) -> None:
        if self.rows is not None:
            _at_most(numbers.at_least(self.rows, "rows", 1), "rows")
        for name in ("groups", "pairs"):
            if getattr(self, name) is not None:
                numbers.count(getattr(self, name), name, most=MOST_BOUND)
        for name in self.ranges:
            _interval(name, self.ranges[name])

    @property
    def limit(self) -> Fraction | None:
        """The bound on rows, exactly."""
        return None if self.rows is None else numbers.exact(self.rows, "rows")

    def intervals(self, question: Question) -> tuple[Interval | None, ...]:
        """Where each value of the rows lies, by what is given here and else by what the question knows."""
        names = names_of(question)
        unknown = sorted(set(self.ranges) - set(names))
        if unknown:
            raise InvalidArgument(
                f"A range is given for {', '.join(unknown)}, of which the query takes no aggregate.",
                remedy=f"Name one of: {', '.join(dict.fromkeys(names)) or 'none, so leave ranges out'}.",
            )
        given = {name: _interval(name, ends) for name, ends in self.ranges.items()}
        return tuple(given.get(name, known) for name, known in zip(names, question.intervals, strict=True))


def names_of(question: Question) -> tuple[str, ...]:
    """How each value of the rows is called."""
    return question.value_names or tuple(f"value_{i}" for i in range(question.rows.values))


def _interval(name: str, ends: object) -> Interval:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidArgument(
            f"The range of {name} must be two numbers.",
            remedy=Message(
                "Pass ", Argument("bounds.ranges", f'ranges={{"{name}": (lower, upper)}}', (name,)), "."
            ),
        )
    lower, upper = (numbers.moderate(end, f"the range of {name}") for end in ends)
    if lower > upper:
        raise InvalidArgument(f"The range of {name} ends before it starts.", remedy="Swap its two ends.")
    return Interval(lower, upper)


def check_squares(name: str, interval: Interval | None) -> None:
    """Squares, and those of steps, must be numbers that floats can hold."""
    furthest = Fraction(0) if interval is None else max(abs(interval.lower), abs(interval.upper))
    if furthest and not LEAST_SQUARED <= furthest <= MOST_SQUARED:
        raise InvalidArgument(
            f"The range of {name} is too far from 1 for a variance, which is of the size of its square.",
            remedy=f"Choose a range of {name} from 1e-120 to 1e120 in size, or another unit of measurement.",
        )


def _at_most(value: Fraction, name: str) -> None:
    if value > MOST_BOUND:
        raise InvalidArgument(
            f"{name} must be at most {MOST_BOUND:g}.".replace("e+0", "e"), remedy=f"Choose {name} below that."
        )
