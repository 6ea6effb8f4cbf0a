"""`Budget`: how much may be learned about any one unit, fixed when an account is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from dalenius.losses.filters import Filter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta)-differential privacy for everything charged, however it was chosen.

    `shares` divides delta among the gauges of the filter in hundredths, for those who know what they will
    release: {"gaussian": (80, 20)} gives all of it to Gaussian noise and training.
    """

    epsilon: Number
    delta: Number = 0
    shares: Mapping[str, tuple[int, int]] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", numbers.positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", numbers.delta(self.delta))

    @cached_property
    def filter(self) -> Filter:
        """The filter that keeps it."""
        return Filter(epsilon=self.epsilon, delta=self.delta, shares=self.shares)

    def __str__(self) -> str:
        return stated(self.filter)


@lru_cache(maxsize=256)
def read_filter(text: str) -> Filter:
    """A filter as it was fixed."""
    return Filter.from_json(text)


def stated(limit: Filter) -> str:
    """The promise of a filter in words."""
    return f"epsilon {float(limit.epsilon):g}" + (f" at delta {float(limit.delta):g}" if limit.delta else "")
