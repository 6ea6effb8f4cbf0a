"""Pure and approximate differential privacy: all that is known of a release is its (ε, δ).

Theorem (Kairouz, Oh and Viswanath 2015, Theorem 3.3; Murtagh and Vadhan 2016). Every
(ε, δ)-differentially private release is dominated by the four outcomes
    P = (δ, (1−δ)e^ε/(1+e^ε), (1−δ)/(1+e^ε), 0),    Q = P read backwards,
which are themselves (ε, δ)-differentially private: the bound is attained, under composition too. The
pair is its own reverse. With δ = 0 two outcomes remain, those of randomized response.

The relation is whichever the guarantee was given for. A group of k has kε where δ = 0; otherwise
its δ grows too, and `group` bounds the whole profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import workprec
from dalenius.losses.fields import Described, Parameter, amount
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.atoms import Atom, Atoms, join
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import around, interval
from dalenius.profiles.pair import Worst


@dataclass(frozen=True, init=False, repr=False)
class Pure(Described, kind="pure"):
    """ε-differential privacy, and nothing more is known. `limit` is that ε."""

    limit: Parameter[Fraction] = Parameter(amount, argument="epsilon")
    relation: Relation = "add_remove"

    def __init__(self, epsilon: Number, *, relation: Relation = "add_remove") -> None:
        self._keep(limit=epsilon, relation=relation)

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((four_points(self.limit, Fraction(0)), 1),),)

    def enlarged(self, size: int) -> Pure:
        """A group of k has k times the ε."""
        return Pure(self.limit * size, relation=self.relation)


@dataclass(frozen=True, init=False, repr=False)
class Approximate(Described, kind="approximate"):
    """(ε, δ)-differential privacy, and nothing more is known. `limit` is the ε and `failure` the δ."""

    limit: Parameter[Fraction] = Parameter(amount, argument="epsilon")
    failure: Parameter[Fraction] = Parameter(numbers.delta, argument="delta")
    relation: Relation = "add_remove"

    def __init__(self, epsilon: Number, *, delta: Number, relation: Relation = "add_remove") -> None:
        self._keep(limit=epsilon, failure=delta, relation=relation)

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((four_points(self.limit, self.failure), 1),),)


@lru_cache(maxsize=1024)
def four_points(epsilon: Fraction, delta: Fraction) -> Atoms:
    """The worst pair of all that are (ε, δ)-differentially private."""
    with workprec(BITS):
        high = (1 - ball(delta)) / (1 + (-ball(epsilon)).exp())
        low = (1 - ball(delta)) / (1 + ball(epsilon).exp())
        p, q = interval(high), interval(low)
    signs = (Atom.of_loss(-epsilon, q, p), Atom.of_loss(epsilon, p, q))
    return Atoms(join(signs), around(delta), around(delta), (delta, delta))
