"""What a classical theorem takes and gives: releases described by (ε, δ), and a guarantee for all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.losses.bound import Bound
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

Status = Literal["exact", "upper bound", "approximation"]
"""exact: attained by some mechanism that meets the premises. upper bound: proven, perhaps loose.
approximation: a limit that may lie below the truth; it guarantees nothing."""


@dataclass(frozen=True, init=False)
class Step:
    """`count` releases, each of them (epsilon, delta)-differentially private."""

    epsilon: Fraction
    delta: Fraction
    count: int

    def __init__(self, epsilon: Number, *, delta: Number = 0, count: int = 1) -> None:
        object.__setattr__(self, "epsilon", numbers.non_negative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", numbers.delta(delta))
        object.__setattr__(self, "count", numbers.count(count, "count"))


@dataclass(frozen=True)
class Guarantee:
    """The answer of one theorem: (epsilon, delta)-differential privacy, and how far to trust it."""

    theorem: str
    epsilon: float
    delta: Fraction
    status: Status
    reference: str

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        return f"{self.epsilon:.10g}"


def bound_fields(bound: Bound) -> dict[str, float | bool]:
    """A bound as plain values, for JSON."""
    return {"lower": bound.lower, "upper": bound.upper, "tight": bound.tight}
