"""Sensitivity: how far one unit can move a vector of values, in every norm that is known.

    >>> Sensitivity.of_sum(l0=1, linf=1, nonnegative=True, relation="replace").l1     # a histogram
    Fraction(2, 1)

All bounds are exact rationals. What is stated implies the rest, for x with at most l0 entries that
are not zero (Cauchy–Schwarz and Hölder; l0 is never implied):

    ‖x‖∞ ≤ ‖x‖₂ ≤ ‖x‖₁        ‖x‖₁ ≤ l0 ‖x‖∞        ‖x‖₁ ≤ √l0 ‖x‖₂
    ‖x‖₂ ≤ √l0 ‖x‖∞           ‖x‖₂² ≤ ‖x‖₁ ‖x‖∞

Square roots round up, by less than 2⁻⁶³ relative.

A sum of one vector per unit moves by one vector u under add_remove and zero_out (a null record
adds nothing), and by u − v under replace. There every norm at most doubles; where entries are never
negative, |uᵢ − vᵢ| ≤ max(uᵢ, vᵢ) and ‖u − v‖₂² ≤ ‖u‖₂² + ‖v‖₂², so ‖·‖∞ stays and ‖·‖₂ grows by √2
only. A histogram count thus moves by 1 in every norm under add_remove, by 2 in L1 and √2 in L2
under replace; each of these is attained.

`of_one_number` says that there is no vector at all: l0 is 1 whatever the relation, and a mechanism made with
it refuses vectors, of which more than one entry might change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from dalenius.errors import InvalidArgument, NotSound
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation, read_relation, steps_between

Known = TypeVar("Known", int, Fraction)


@dataclass(frozen=True, init=False)
class Sensitivity:
    """The most that neighbours differ, in each norm; None where nothing is implied."""

    l0: int | None
    l1: Fraction | None
    l2: Fraction | None
    linf: Fraction | None
    relation: Relation
    of_one_number: bool

    def __init__(
        self,
        *,
        l0: int | None = None,
        l1: Number | None = None,
        l2: Number | None = None,
        linf: Number | None = None,
        relation: Relation = "add_remove",
        of_one_number: bool = False,
    ) -> None:
        stated = (_read(l1, "l1"), _read(l2, "l2"), _read(linf, "linf"))
        if stated == (None, None, None):
            raise InvalidArgument("A sensitivity needs a bound.", remedy="State l1, l2 or linf.")
        count = 1 if of_one_number and l0 is None else None if l0 is None else numbers.count(l0, "l0")
        if of_one_number and count != 1:
            raise InvalidArgument("One number has l0 = 1.", remedy="Leave l0 out, or of_one_number.")
        names = ("l0", "l1", "l2", "linf", "relation", "of_one_number")
        values = (count, *_implied(count, *stated), read_relation(relation), bool(of_one_number))
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    @staticmethod
    def of_number(bound: Number, *, relation: Relation = "add_remove") -> Sensitivity:
        """Of one number that neighbours move by at most `bound`."""
        return Sensitivity(linf=bound, relation=relation, of_one_number=True)

    @staticmethod
    def of_sum(
        *,
        l0: int | None = None,
        l1: Number | None = None,
        l2: Number | None = None,
        linf: Number | None = None,
        nonnegative: bool = False,
        relation: Relation = "add_remove",
    ) -> Sensitivity:
        """Of a sum of one vector per unit, each within the stated bounds (and ≥ 0 if so declared)."""
        unit = Sensitivity(l0=l0, l1=l1, l2=l2, linf=linf)
        if read_relation(relation) != "replace":
            return unit._scaled(1, relation)
        doubled = unit._scaled(2, relation)
        if not nonnegative:
            return doubled
        l2_nonnegative = None if unit.l2 is None else sqrt_up(2 * unit.l2**2)
        return Sensitivity(l0=doubled.l0, l1=doubled.l1, l2=l2_nonnegative, linf=unit.linf, relation=relation)

    def under(self, relation: Relation) -> Sensitivity:
        """Under another relation: k-fold by the triangle inequality, refused where no path exists."""
        return self._scaled(steps_between(self.relation, relation), relation)

    def need(self, norm: str) -> Fraction:
        """The bound in `norm` ("l1", "l2" or "linf"), refused where nothing implies one."""
        if norm not in ("l1", "l2", "linf"):
            raise InvalidArgument("norm must be one of l1, l2, linf.", remedy="Pass one of these names.")
        bound: Fraction | None = getattr(self, norm)
        if bound is None:
            raise NotSound(
                f"No bound in {norm} follows from what is stated.",
                remedy=f"State {norm}, or l0: in how many entries one unit can make a difference.",
            )
        return bound

    def _scaled(self, factor: int, relation: Relation) -> Sensitivity:
        l1, l2, linf = (None if bound is None else factor * bound for bound in (self.l1, self.l2, self.linf))
        l0 = None if self.l0 is None or self.of_one_number else factor * self.l0
        return Sensitivity(
            l0=l0, l1=l1, l2=l2, linf=linf, relation=relation, of_one_number=self.of_one_number
        )


def sqrt_up(number: Fraction) -> Fraction:
    """√number, exact for squares and otherwise rounded up by less than 2⁻⁶³ relative."""
    above, below = math.isqrt(number.numerator), math.isqrt(number.denominator)
    if above**2 == number.numerator and below**2 == number.denominator:
        return Fraction(above, below)
    # Scaled by 4^bits the number is at least 2^127, so a ceiling of its root adds below 2^-63 relative.
    bits = max(0, 64 - (number.numerator.bit_length() - number.denominator.bit_length()) // 2)
    scaled = math.ceil(number * 4**bits)
    return Fraction(1 + math.isqrt(scaled - 1), 2**bits)


def _read(bound: Number | None, name: str) -> Fraction | None:
    return None if bound is None else numbers.positive(bound, name)


def _implied(
    l0: int | None, l1: Fraction | None, l2: Fraction | None, linf: Fraction | None
) -> tuple[Fraction | None, Fraction | None, Fraction]:
    linf = min(_known(linf, l2, l1))
    squares = [bound**2 for bound in _known(l2)]
    squares += [bound * linf for bound in _known(l1)]
    squares += [count * linf**2 for count in _known(l0)]
    sums = [*_known(l1)]
    for count in _known(l0):
        sums += [count * linf, sqrt_up(count * min(squares))]
    return min(sums, default=None), sqrt_up(min(squares)) if squares else None, linf


def _known(*values: Known | None) -> list[Known]:
    return [value for value in values if value is not None]
