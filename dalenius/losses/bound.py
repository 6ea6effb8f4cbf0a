"""The answer to every question about a loss: an interval that contains the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Bound:
    """lower ≤ truth ≤ upper, floating-point error included.

    The truth is the supremum (for a false-negative rate, the infimum) over all mechanisms that
    meet the description of the loss. `tight` is False where no mechanism is known that attains
    the safe side up to numerical error.
    """

    lower: float
    upper: float
    tight: bool = True
    side: Literal["upper", "lower"] = field(default="upper", repr=False)

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ArithmeticError(f"an enclosure came out empty: [{self.lower!r}, {self.upper!r}]")

    @property
    def safe(self) -> float:
        """The side that claims less privacy."""
        return self.upper if self.side == "upper" else self.lower

    @property
    def width(self) -> float:
        """How far apart the two sides are."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __float__(self) -> float:
        return self.safe

    def __str__(self) -> str:
        return f"{self.safe:.10g}"
