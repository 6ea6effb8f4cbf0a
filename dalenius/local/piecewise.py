"""The piecewise mechanism for the mean of numbers: a report near the number, or with less chance any other.

Theorem (Wang, Xiao, Yang and others 2019). For t in [−1, 1] and C = (e^{ε/2} + 1)/(e^{ε/2} − 1) a report is
uniform on a piece of length C − 1 with probability e^{ε/2}/(e^{ε/2} + 1), else on the rest of [−C, C]. It is
ε-private and unbiased, of variance t²/(e^{ε/2} − 1) + (e^{ε/2} + 3)/(3(e^{ε/2} − 1)²): at worst 5.224 at ε =
1.

Here it is put on a grid (`windows`): `steps` + 1 values, a piece of `width` ≈ steps·e^{−ε/2} reports, steps
+ width reports in all. Every probability is rational and the mean exact on every grid. The worst variance is
the theorem's but for the rounding of the width: to all digits above with 1,024 steps, 11 bits a report.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

from dalenius.local.randomizer import Floats, Ints, ratio_of
from dalenius.local.reals import NumberRandomizer, placed, rounded
from dalenius.local.reports import Rows
from dalenius.local.windows import MOST_STEPS, Window
from dalenius.losses.fields import Parameter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

STEPS = 1024


def read_steps(value: object, name: str) -> int:
    """Steps of a grid, or of a window on it."""
    return numbers.count(value, name, most=MOST_STEPS)


@dataclass(frozen=True)
class PiecewiseResponse(NumberRandomizer, kind="piecewise_response"):
    """A grid of `steps`, and pieces of `width` reports."""

    _: KW_ONLY
    steps: Parameter[int] = Parameter(read_steps)
    width: Parameter[int] = Parameter(read_steps)

    @cached_property
    def window(self) -> Window:
        """Its law."""
        return Window(self.steps, self.width, self.ratio)

    @property
    def places(self) -> int:
        """Of the grid."""
        return self.steps

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """By the two pieces at the ends."""
        return self.window.apart

    @property
    def square(self) -> tuple[Fraction, Fraction]:
        """That of the window."""
        return self.window.square

    @cached_property
    def points(self) -> Floats:
        """Equally far apart."""
        return self.window.points

    def masses(self, place: int) -> Floats:
        """Two heights."""
        return self.window.masses(place)

    def randomize(self, values: Ints) -> Rows:
        """To a place, then in its piece or beside it."""
        return self.window.randomize(rounded(values, self.steps))

    def crowd(self, units: Ints, people: Ints) -> Ints:
        """To places, then by the window."""
        return self.window.crowd(placed(units, people, self.steps))

    @staticmethod
    def calibrate(*, lower: Number, upper: Number, epsilon: Number, steps: int = STEPS) -> PiecewiseResponse:
        """The one whose reports are epsilon-private, with pieces of the least worst variance."""
        many = read_steps(steps, "steps")
        return PiecewiseResponse(
            lower=lower, upper=upper, ratio=ratio_of(epsilon), steps=many, width=best_width(many, epsilon)
        )


def best_width(steps: int, epsilon: Number) -> int:
    """steps·e^{−ε/2}, rounded, and at least one."""
    return max(round(steps / ratio_of(numbers.epsilon(epsilon) / 2)), 1)
