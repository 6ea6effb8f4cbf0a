"""Which private runs a study makes: one for each ε, and one for each bound on the norm at the middle ε."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

Told = Callable[[str], None]
"""What is given a line of public facts before each run."""


@dataclass(frozen=True)
class Trial:
    """A private run: its ε and its bound on the norm; `grid` where it only compares bounds."""

    epsilon: Fraction
    clip: Fraction
    grid: bool = False

    @property
    def name(self) -> str:
        """As a table shows it."""
        return f"epsilon {float(self.epsilon):g}" + (f", clip {float(self.clip):g}" if self.grid else "")


@dataclass(frozen=True)
class Trials:
    """Values of ε in rising order, and the bounds to compare."""

    epsilons: tuple[Fraction, ...]
    clip: Fraction
    clips: tuple[Fraction, ...]

    @staticmethod
    def of(epsilons: Sequence[Number], *, clip: Number, clips: Sequence[Number]) -> Trials:
        """Each once, all of them above 0."""
        if not epsilons:
            raise InvalidArgument(
                "A study needs an epsilon or more.", remedy="Pass epsilons such as 1 and 8."
            )
        asked = sorted({numbers.positive(one, "epsilon") for one in epsilons})
        bounds = sorted({numbers.positive(one, "clips") for one in clips})
        return Trials(tuple(asked), numbers.positive(clip, "clip"), tuple(bounds))

    @property
    def middle(self) -> Fraction:
        """The ε at which bounds are compared."""
        return self.epsilons[len(self.epsilons) // 2]

    @property
    def private(self) -> list[Trial]:
        """All private runs, none twice."""
        grid = [Trial(self.middle, one, True) for one in self.clips if one != self.clip]
        return [*(Trial(one, self.clip) for one in self.epsilons), *grid]
