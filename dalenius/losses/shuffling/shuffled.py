"""Shuffling: n people each send one local report, and all that is seen is the unordered collection.

Theorem (docs/proofs/shuffling.md proves it with these constants; after Balle, Bell, Gascón and Nissim 2019,
and Feldman, McMillan and Talwar 2021 and 2023). Let all n use one randomizer whose reports on any two values
have a likelihood ratio of at most r = e^{ε₀}, and let one person's value be replaced. The collection is
dominated by a `ShuffledPair`, in which each other report is hidden among reports of the first
or second kind with probability p each:

    Pure                  p = 1/(r + 1)
    RandomizedResponse    p = 1/(r + k − 1) and a third kind; k = 2 is no better than Pure
    LocalRandomizer       p = (1 − γ)/(r − 1) and a third kind, γ the mass of the common part
    any other with ε(0)   p = β/(r − 1) and a third kind, β its δ(0), how far apart two reports are at most

n counts the honest: reports that somebody forges, or that the observer knows, hide nobody. Each person
reports once; collections repeated about the same people add up. All use one randomizer, chosen beforehand.

Not tight: the theorem shows the observer which reports are not of the kinds above. From below stands
randomized response of k ≥ 3 categories when all others hold one and the same third value (`SameOthers`): some
mechanism that meets the description, not the one that a LocalRandomizer may have been made for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.composition import Composition
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import a_loss, whole
from dalenius.losses.group import Group
from dalenius.losses.joint import Joint
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.raw import DiscretePair
from dalenius.losses.shuffling.randomizer import LocalRandomizer
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.pair import Worst
from dalenius.profiles.shuffling.pair import ShuffledPair

LEAST_LOCAL, MOST_LOCAL = Fraction(1, 10**9), 64
"""Local ε below or above which shuffling is not counted on: the loss stays that of one report."""
REPORTS = (DiscreteLaplace, DiscretePair, Laplace, LocalRandomizer, Pure, RandomizedResponse)
"""Losses that may be those of one report on any two values; also several of them together."""
MOST_CATEGORIES = 10**12
"""Of a response that bounds from below."""
MOST_REPORTERS = 10**10
"""More than there are people; those beyond are not counted on, which bounds from above."""


def shuffle(loss: Loss, reporters: int) -> Loss:
    """The collection of `reporters` honest local reports of this `loss`, each sent once, shuffled.

    A report seen among others says no more than by itself, so where shuffling is not counted on the
    loss is that of the report.
    """
    many = numbers.count(reporters, "reporters")
    local = _local(a_loss(loss, "loss"))
    if many == 1 or not LEAST_LOCAL <= local.epsilon(0).lower <= local.epsilon(0).upper <= MOST_LOCAL:
        return local
    return Shuffled(local, many)


@dataclass(frozen=True)
class Shuffled(Loss, kind="shuffled"):
    """`reporters` reports, each of the local `loss`, seen as an unordered collection."""

    loss: Loss
    reporters: int
    relation: Relation = field(default="replace", init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reporters", whole(self.reporters, "reporters"))
        if not LEAST_LOCAL <= _local(a_loss(self.loss, "loss")).epsilon(0).upper <= MOST_LOCAL:
            raise InvalidArgument(
                f"A local epsilon must be from 1e-9 to {MOST_LOCAL} to count on shuffling.",
                remedy="Use loss.shuffled(reporters), which leaves the loss as it is then.",
            )

    @property
    def tight(self) -> bool:
        """No randomizer is known that attains the bound for many reporters."""
        return False

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((hidden(self.loss, self.reporters), 1),),)

    def enlarged(self, size: int) -> Loss:
        """Several people replaced one after the other: the path bound."""
        return Group(self, size)

    def attained(self) -> Loss | None:
        """Randomized response of as few categories as the description allows, but at least three."""
        least = _categories(self.loss) if self.reporters <= MOST_REPORTERS else None
        return None if least is None else SameOthers(self.loss, least, self.reporters)


@dataclass(frozen=True)
class SameOthers(Loss, kind="shuffled_same_others"):
    """Randomized response of `categories` and the largest loss of `loss`, shuffled, one person in doubt.

    All other `reporters` are known to hold one third category; how many report each of the two categories
    in doubt is seen. For three categories that is all there is to see.
    """

    loss: Loss
    categories: int
    reporters: int
    relation: Relation = field(default="replace", init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reporters", numbers.count(self.reporters, "reporters", most=MOST_REPORTERS))
        object.__setattr__(self, "categories", numbers.count(self.categories, "categories", least=3))
        Shuffled(self.loss, self.reporters)

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        pair = hidden(self.loss, self.reporters)
        known = replace(pair, case="categories", share=Fraction(self.categories), below=True)
        return (((known, 1),),)


@lru_cache(maxsize=1024)
def hidden(loss: Loss, reporters: int) -> ShuffledPair:
    """The pair that dominates a shuffled collection of such reports."""
    nothing, reporters = Fraction(0), min(reporters, MOST_REPORTERS)
    if isinstance(loss, Pure):
        return ShuffledPair(reporters, "free", nothing, loss.limit)
    if isinstance(loss, RandomizedResponse):
        other = loss.randomize / loss.categories
        ratio = (1 - loss.randomize + other) / other
        if loss.categories == 2:
            return ShuffledPair(reporters, "free", nothing, None, ratio)
        return ShuffledPair(reporters, "blanket", loss.randomize, None, ratio)
    if isinstance(loss, LocalRandomizer):
        return ShuffledPair(reporters, "blanket", loss.blanket, loss.limit)
    largest, apart = Fraction(loss.epsilon(0).upper), Fraction(loss.advantage().upper)
    return ShuffledPair(reporters, "apart", apart, largest)


def _local(loss: Loss) -> Loss:
    """The loss, if it is one of a local report; what to do is said where it is not."""
    if loss.relation != "replace":
        raise RelationMismatch(
            f"A local report must hide which value is reported on; this loss is for {loss.relation}.",
            remedy='State the local loss with relation="replace", for any two values.',
        )
    if math.isinf(loss.epsilon(0).upper):
        raise NotSound(
            "Shuffling is bounded for local reports of finite epsilon with delta 0, and this is not one.",
            remedy="State the local loss by its epsilon at delta 0, such as Pure or RandomizedResponse.",
        )
    if not all(isinstance(term, REPORTS) for term in _parts(loss)):
        # Others, a shuffled collection or a sample, hold for one person among many, not for a report's value.
        raise NotSound(
            "This loss is not one of a single person's report, and cannot be shuffled.",
            remedy="Shuffle the local loss, such as Pure or RandomizedResponse; multiply what is shuffled.",
        )
    return loss


def _parts(loss: Loss) -> Iterator[Loss]:
    """Yield the single reports that a loss is made of."""
    terms = loss.terms if isinstance(loss, Composition) else ((loss, 1),)
    for term, _ in terms:
        if isinstance(term, Joint):
            yield from _parts(term.loss)
        else:
            yield term


def _categories(loss: Loss) -> int | None:
    """The fewest categories, from three, of a randomized response that meets the description."""
    if isinstance(loss, Pure):
        return 3
    if isinstance(loss, RandomizedResponse):
        return loss.categories if loss.categories > 2 else None
    if isinstance(loss, LocalRandomizer):
        with workprec(BITS):
            # k/(e^ε + k − 1) ≥ γ
            share = ball(loss.blanket / (1 - loss.blanket))
            least = max(3.0, upper(share * ball(loss.limit).expm1()))
            return math.ceil(least) if least < MOST_CATEGORIES else None
    return None
