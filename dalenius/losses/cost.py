"""What a loss costs on each gauge of a filter, in whole steps: sums are exact and have no order."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

STEP = Fraction(1, math.lcm(*range(1, 31)) * 10**24)
"""What measures and slacks are whole multiples of: a tenth and a third are, too."""
Amount: TypeAlias = tuple[int, int]
"""A measure and its slack, in steps."""


_JSON = json.JSONEncoder(separators=(",", ":"))


def steps(amount: Fraction) -> int:
    """An amount in steps, rounded up."""
    return math.ceil(amount / STEP)


@dataclass(frozen=True)
class Cost:
    """What a loss costs on each gauge; a gauge that is not named cannot hold it."""

    amounts: Mapping[str, Amount]

    def __add__(self, other: Cost) -> Cost:
        both = self.amounts.keys() & other.amounts.keys()
        return Cost({name: _plus(self.amounts[name], other.amounts[name]) for name in sorted(both)})

    @staticmethod
    def largest(costs: Iterable[Cost]) -> Cost:
        """Gauge by gauge, the largest measure and the largest slack: what any one of them costs at most."""
        each = list(costs)
        names = set.intersection(*(set(cost.amounts) for cost in each)) if each else set()
        return Cost({name: _top([cost.amounts[name] for cost in each]) for name in sorted(names)})

    def to_json(self) -> str:
        """Measures and slacks in steps."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return _JSON.encode({name: self.amounts[name] for name in sorted(self.amounts)})

    @staticmethod
    def from_json(text: str) -> Cost:
        """Read one back."""
        return Cost({name: (int(measure), int(slack)) for name, (measure, slack) in json.loads(text).items()})


def _plus(one: Amount, other: Amount) -> Amount:
    return one[0] + other[0], one[1] + other[1]


def _top(amounts: list[Amount]) -> Amount:
    return max(amount[0] for amount in amounts), max(amount[1] for amount in amounts)
