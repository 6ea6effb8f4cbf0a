"""Randomized response: with probability r the answer is replaced by a uniformly random category.

Theorem (Warner 1965; Kairouz, Oh and Viswanath 2016 for k categories). The true category is reported
with probability p = 1 − r + r/k and each other one with s = r/k. For two values the worst pair has
three outcomes: the first value (p against s), the second (s against p), any other (s against s, of
mass (k−2)s), so that ε₀ = log(p/s). It is attained and its own reverse.

What neighbouring means. The report is local: who reports is public. Under `replace` the person's value
changes; under `zero_out` it becomes a default category. Under `add_remove` a person who is absent must be one
who reports a default category all the same, or a uniform one, which is a mixture of the reports of all
values, so by convexity the same pair dominates; where the presence of a report is secret, this is not its
loss, and the mechanism does not offer it.

A group of k persons sends k reports, each randomized by itself: the loss is k-fold.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache

from dalenius.losses.fields import Described, Parameter
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.atoms import Atoms, rational
from dalenius.profiles.pair import Worst


def _categories(value: object, name: str) -> int:
    return numbers.count(value, name, least=2)


@dataclass(frozen=True, repr=False)
class RandomizedResponse(Described, kind="randomized_response"):
    """With probability `randomize` the answer is a uniformly random one of `categories`."""

    randomize: Parameter[Fraction] = Parameter(numbers.probability)
    _: KW_ONLY
    categories: Parameter[int] = Parameter(_categories, 2)
    relation: Relation = "add_remove"

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((reports(self.randomize, self.categories), 1),),)

    def enlarged(self, size: int) -> Loss:
        """As many reports, each randomized by itself."""
        return self * size


@lru_cache(maxsize=1024)
def reports(randomize: Fraction, categories: int) -> Atoms:
    """The laws of the report of two different values."""
    other = randomize / categories
    true = 1 - randomize + other
    return rational(((true, other), (other, true), ((categories - 2) * other, (categories - 2) * other)))
