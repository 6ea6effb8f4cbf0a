"""What a loss costs on each gauge of a filter, in whole steps: sums are exact and have no order."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeAlias

STEP = Fraction(1, math.lcm(*range(1, 31)) * 10**24)
"""What measures and slacks are whole multiples of: a tenth and a third are, too."""
Amount: TypeAlias = tuple[int, int]
"""A measure and its slack, in steps."""


def steps(amount: Fraction) -> int:
    """An amount in steps, rounded up."""
    return math.ceil(amount / STEP)


@dataclass(frozen=True)
class Cost:
    """What a loss costs on each gauge; a gauge that is not named cannot hold it."""

    amounts: Mapping[str, Amount]

    def __add__(self, other: Cost) -> Cost:
        mine, its = self.amounts, other.amounts
        return Cost(
            {
                name: (measure + its[name][0], slack + its[name][1])
                for name, (measure, slack) in mine.items()
                if name in its
            }
        )

    @staticmethod
    def largest(costs: Iterable[Cost]) -> Cost:
        """Gauge by gauge, the largest measure and the largest slack: what any one of them costs at most."""
        each = list(costs)
        names = set.intersection(*(set(cost.amounts) for cost in each)) if each else set()
        return Cost({name: _top([cost.amounts[name] for cost in each]) for name in sorted(names)})

    def to_json(self) -> str:
        """Measures and slacks in steps."""
        text: str | None = self.__dict__.get("_text")
        if text is None:
            names = sorted(self.amounts)
            text = _form(*names) % tuple([number for name in names for number in self.amounts[name]])
            self.__dict__["_text"] = text
            Cost._written = (text, self)
        return text

    _written: ClassVar[tuple[str, Cost] | None] = None
    """The last one written, which on an account is the first to be read again."""

    @staticmethod
    def from_json(text: str) -> Cost:
        """Read one back."""
        known = Cost._written
        if known is not None and known[0] == text:
            return known[1]
        return Cost({name: (int(measure), int(slack)) for name, (measure, slack) in json.loads(text).items()})


@lru_cache(maxsize=256)
def _form(*names: str) -> str:
    """Its JSON, but for the numbers."""
    return "{" + ",".join(json.dumps(name).replace("%", "%%") + ":[%s,%s]" for name in names) + "}"


def _top(amounts: list[Amount]) -> Amount:
    return max(amount[0] for amount in amounts), max(amount[1] for amount in amounts)
