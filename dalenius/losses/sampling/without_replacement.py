"""A sample of `batch` of the `population` records, every subset of that size equally likely.

Theorem (Balle, Barthe and Gaboardi 2018; as dominating pairs Zhu, Dong and Wang 2022). Let h(y) bound the
hockey-stick divergence of order y = e^ε ≥ 1 of a release on any two batches that differ in one record. On
a sample of b of n records, γ = b/n, for data sets that differ in one record, and y ≥ 1,
    H(y) ≤ γ·h(1 + (y−1)/γ),
and since neighbours under replace may change places, H(y) ≤ 1 − y + y·H(1/y) for y < 1.

Proof. The record is in the sample with probability γ. So the laws are (1−γ)μ₀ + γμ₁ and
(1−γ)μ₀ + γμ₁′, and with y′ = 1 + γ(y−1), β = y′/y their divergence of order y′ is γ times that of order y of
μ₁ from (1−β)μ₀ + βμ₁′, hence by convexity at most γ times the greater of those from μ₀ and from μ₁′. A batch
with the record and one without become neighbours once the record takes the place of a random other one.
The bound is convex for y ≥ 1, and for y < 1 as a perspective of itself. (docs/amplification/sampling.md)

Tight for one release: where all other records are alike and the release shows the pair of h, one of the
two laws is (1−γ)Q + γP and the other Q. In a composition that mechanism bounds the answer from below. The
bound above is the worst of both directions at once; randomized response of three categories, for the
one record, the other, or neither, attains it, but not every loss leaves room for such a release, and the
worst data sets of one release need not be those of several (Lebeda et al. 2025). So `tight` is False.

The size of the population is public under replace. Under add_remove it is not, and γ would tell it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.attained import attained
from dalenius.losses.composition import Composition
from dalenius.losses.fields import a_loss
from dalenius.losses.group import Group
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Concentrated, single
from dalenius.losses.sampling.moments import chord
from dalenius.losses.sampling.pairs import needed, thin
from dalenius.losses.shuffling.shuffled import Shuffled
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Worst
from dalenius.profiles.worse import both_ways


def draw(loss: Loss, batch: int, population: int) -> Loss:
    """The same on a sample of `batch` of `population` records."""
    drawn = WithoutReplacement(loss, batch, population)
    return loss if drawn.batch == drawn.population else drawn


@dataclass(frozen=True)
class WithoutReplacement(Loss, kind="without_replacement"):
    """A loss on `batch` of `population` records, drawn without replacement."""

    loss: Loss
    batch: int
    population: int
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", numbers.count(self.population, "population"))
        object.__setattr__(self, "batch", numbers.count(self.batch, "batch"))
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)
        if self.batch > self.population:
            raise InvalidArgument(
                "batch must not be larger than population.", remedy="Choose batch up to population."
            )
        _check(self.loss)

    @property
    def rate(self) -> Fraction:
        """The share of the population that a batch is."""
        return Fraction(self.batch, self.population)

    @property
    def tight(self) -> bool:
        """Only of one release: see the module."""
        return False

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as neighbours may change places."""
        pairs = (thin(pair, self.rate) for pair in needed(self.loss))
        return (((both_ways(*pairs), 1),),)

    def attained(self) -> Loss | None:
        """A release that looks for one record, where all others are alike."""
        inner = attained(self.loss)
        return None if inner is None or single(inner) is None else Sighting(inner, self.rate)

    def moment(self, order: float) -> float:
        """From those at a few orders."""
        return chord(self, order)

    def enlarged(self, size: int) -> Loss:
        """The path bound: each of the records in its turn."""
        return Group(self, size)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        """That of the loss without sampling, where D_α/α tends to it: sampling lowers D_α by a constant."""
        known = self.loss.concentration() if isinstance(self.loss, Concentrated) else None
        return known if known is not None and known[1] > 0 else None


@dataclass(frozen=True)
class Sighting(Loss, kind="sighting"):
    """What `loss` tells of one record that is in the sample with probability `rate`, all others alike."""

    loss: Loss
    rate: Fraction
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", numbers.rate(self.rate, "rate"))
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)
        _check(self.loss)

    @property
    def tight(self) -> bool:
        """Where the loss without sampling is."""
        return self.loss.tight

    def directions(self) -> tuple[Worst, ...]:
        """The data set with that record against the one without, then the reverse."""
        pair = thin(needed(self.loss)[0], self.rate)
        return (((pair, 1),), ((pair.reversed(), 1),))


def _check(loss: Loss) -> None:
    """The theorem speaks of records that are replaced, and of pairs."""
    if loss.relation != "replace":
        raise RelationMismatch(
            f"A sample of fixed size is bounded under replace; this loss holds under {loss.relation}.",
            remedy='Carry it over first, by loss.under("replace"), or sample by .poisson(rate).',
        )
    if any(
        isinstance(term, Shuffled)
        for term, _ in (loss.terms if isinstance(loss, Composition) else ((loss, 1),))
    ):
        raise NotSound(
            "A shuffled collection counts on reporters that a sample of it may not hold.",
            remedy="Shuffle the reports of the sample: loss.shuffled(batch).",
        )
    needed(loss)
