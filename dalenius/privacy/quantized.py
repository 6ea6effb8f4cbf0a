"""Values on a power-of-two grid, so that privacy never rests on floating-point arithmetic.

    >>> grid = Grid(-2)                                            # multiples of one quarter
    >>> steps = grid.quantize(np.array([0.9, -0.9, np.nan, np.inf]), lower=-1, upper=1)
    >>> steps.tolist(), exact_sum(steps)
    ([3, -3, 0, 4], 4)

**Records.** Each value is divided by the step (exact: a power of two), rounded toward zero, and
clipped between the outermost grid points within [lower, upper]. This is a function of the one
record alone, so on neighbours all other records give the same integers; their sum is exact, its
order is immaterial, and rounding adds nothing to the sensitivity. NaN counts as 0, as does a hidden
cell of a masked array, and an infinity as the nearer end, whatever the other records are; nothing
is raised or warned about values.

**Vectors.** `clip_norm` scales an integer vector v by a factor f ≤ 1 and rounds toward zero. With
ŝ the norm in float64 and u = 2⁻⁵³, ŝ ≥ (1 − γ)‖v‖ where γ = (d + 4)u/(1 − (d + 4)u) covers the
conversion of v, d products and the sum in any order (Higham 2002, Section 4.2), and the root; the
factor f = (1 − (2d + 16)u)·bound/ŝ and the product with v add at most 5u more. So the result has norm at
most the bound, and f ≥ 1 shows that v already had.

**Aggregates.** A float computed elsewhere with sensitivity Δ lands within ⌈Δ/g⌉ steps of its
neighbour, since |trunc a − trunc b| ≤ ⌈|a − b|⌉. For a vector, each of the l0 entries that change
adds less than one step: L1 ≤ ⌈Δ₁/g⌉ + l0 − 1 and L2 ≤ Δ₂/g + √l0. The arithmetic that made the
aggregate is the caller's and is not covered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up

Steps = NDArray[np.int64]
"""Grid steps, one integer a value."""

MOST = 2**62
"""The most steps one record may contribute: a difference of two still fits 64 bits."""
TOTAL = 2**127 - 1
"""The most steps an aggregate may hold: sums saturate there, once, at the end."""
MOST_EXPONENT = 1000
_U = 2.0**-53


@dataclass(frozen=True)
class Grid:
    """The multiples of 2**exponent."""

    exponent: int

    def __post_init__(self) -> None:
        numbers.count(self.exponent, "exponent", least=-MOST_EXPONENT, most=MOST_EXPONENT)

    @staticmethod
    def within(step: Number) -> Grid:
        """The coarsest grid whose step is at most `step`."""
        largest = numbers.positive(step, "step")
        exponent = largest.numerator.bit_length() - largest.denominator.bit_length()
        if abs(exponent) >= MOST_EXPONENT:
            raise InvalidArgument(
                "A grid for such numbers would have a step below 2^-1000 or above 2^1000.",
                remedy="Choose another unit of measurement for values, bounds and sensitivity.",
            )
        return Grid(exponent if Fraction(2) ** exponent <= largest else exponent - 1)

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring grid points."""
        return Fraction(2) ** self.exponent

    def quantize(self, values: NDArray[np.generic], *, lower: Number, upper: Number) -> Steps:
        """Each value as grid steps, rounded toward zero and clipped into [lower, upper]."""
        least, most = self._steps_within(lower, upper)
        _check_type(values)
        if isinstance(values, np.ma.MaskedArray):
            values = values.filled(0)
        with np.errstate(all="ignore"):
            steps = _steps_of_floats if values.dtype.kind == "f" else _steps_of_integers
            return np.clip(steps(values, self.exponent), least, most)

    def aggregate(self, value: int | float | Fraction) -> int:
        """A number computed elsewhere as grid steps, rounded toward zero and saturated."""
        if isinstance(value, float):
            if math.isnan(value):
                return 0
            if math.isinf(value):
                return TOTAL if value > 0 else -TOTAL
        return saturate(math.trunc(Fraction(value) / self.step))

    def charge(self, sensitivity: Sensitivity) -> Sensitivity:
        """The sensitivity, in steps, of an aggregate rounded onto the grid."""
        l0 = sensitivity.l0
        if l0 is None:
            raise InvalidArgument(
                "Rounding an aggregate needs l0.", remedy="State l0: 1 for a number, the length for a vector."
            )
        l1, l2, linf = (sensitivity.need(norm) / self.step for norm in ("l1", "l2", "linf"))
        return Sensitivity(
            l0=l0,
            l1=math.ceil(l1) + l0 - 1,
            l2=l2 + sqrt_up(Fraction(l0)),
            linf=math.ceil(linf),
            relation=sensitivity.relation,
        )

    def _steps_within(self, lower: Number, upper: Number) -> tuple[int, int]:
        least = math.ceil(numbers.exact(lower, "lower") / self.step)
        most = math.floor(numbers.exact(upper, "upper") / self.step)
        if not -MOST <= least <= most <= MOST:
            raise InvalidArgument(
                "Between lower and upper lies no grid point, or the bounds exceed 2^62 steps.",
                remedy="Put lower below upper, and choose the grid's step between the two extremes.",
            )
        return least, most


def clip_norm(steps: Steps, bound: Number, *, norm: Literal["l1", "l2"]) -> Steps:
    """Each row scaled down, toward zero, until its norm is at most `bound` steps."""
    # Laid out row by row: sums of a row come out alike in any company.
    vectors = np.array(steps, dtype=np.float64, order="C")
    sizes = np.abs(vectors).sum(axis=-1) if norm == "l1" else np.sqrt(np.square(vectors).sum(axis=-1))
    shrink = 1.0 - (2 * steps.shape[-1] + 16) * _U
    with np.errstate(all="ignore"):
        factors = ((_float_below(numbers.positive(bound, "bound")) / sizes) * shrink)[..., np.newaxis]
        # Of a bound below every float and a row of zeros the factor is no number.
        inside = (factors >= 1.0) | (sizes == 0)[..., np.newaxis]
        return np.where(inside, steps, np.trunc(vectors * np.minimum(factors, 1.0)).astype(np.int64))


def exact_sum(steps: Steps) -> int:
    """The exact sum of all entries, saturated once at the end."""
    total = 0
    # Halves of 32 bits sum without overflow in 64 for as many as 2^30 entries at a time.
    flat = steps.reshape(-1)
    for start in range(0, flat.size, 2**30):
        part = flat[start : start + 2**30]
        high, low = (part >> 32).sum(dtype=np.int64), (part & 0xFFFFFFFF).sum(dtype=np.int64)
        total += (int(high) << 32) + int(low)
    return saturate(total)


def saturate(total: int) -> int:
    """Held within ±(2^127 − 1): neighbours come no further apart."""
    return max(-TOTAL, min(TOTAL, total))


def _steps_of_floats(values: NDArray[np.generic], exponent: int) -> Steps:
    # Overflow gives an infinity, held at MOST; underflow is below one step, hence 0.
    scaled = np.ldexp(values.astype(np.float64), -exponent)
    held = np.where(np.isnan(scaled), 0.0, np.clip(scaled, -float(MOST), float(MOST)))
    return np.trunc(held).astype(np.int64)


def _steps_of_integers(values: NDArray[np.generic], exponent: int) -> Steps:
    whole = values.astype(np.int64)
    if exponent > 63:
        return np.zeros_like(whole)
    if exponent > 0:
        # A right shift rounds down: a negative number that is not a multiple goes one step back.
        cut = (whole < 0) & (whole & ((1 << exponent) - 1) != 0)
        down = whole >> exponent
        return np.where(cut, down + 1, down)
    room = MOST >> -exponent
    return np.where(np.abs(np.clip(whole, -MOST, MOST)) > room, np.sign(whole) * MOST, whole << -exponent)


def _float_below(number: Fraction) -> float:
    nearest = float(min(number, Fraction(2**200)))
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)


def _check_type(values: NDArray[np.generic]) -> None:
    # An array's type is a fact of the schema; what a list converts to depends on the values in it.
    exact = isinstance(values, np.ndarray) and np.can_cast(
        values.dtype, np.int64 if values.dtype.kind in "biu" else np.float64
    )
    if not exact:
        raise InvalidArgument(
            "values must be a numpy array of floats, or of integers that fit 64 bits with a sign.",
            remedy="Convert the column to float64 or int64 first.",
        )
