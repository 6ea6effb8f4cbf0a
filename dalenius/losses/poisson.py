"""Poisson subsampling: each unit takes part independently with probability q, unseen.

Theorem (Zhu, Dong and Wang 2022, Theorem 11). Let (P, Q) dominate a release for removing one unit (P
with it, Q without) and (P', Q') for adding one (P' without, Q' with). On a Poisson sample it is
dominated by ((1−q)Q + qP, Q) for removing and by (P', (1−q)P' + qQ') for adding. Tight where the
given pairs are attained by a unit that is the only one. In profiles, with y = e^ε,
    removing: H'(ε) = q·H(log(1 + (y−1)/q))           for y > 1 − q, else 1 − y,
    adding:   H'(ε) = (1 − (1−q)y)·H'(log(qy/(1 − (1−q)y)))  for y < 1/(1−q), else 0.

It holds under add_remove, and under zero_out, where a unit that was zeroed out is by definition
processed as one that is absent. Under replace the sample of one data set holds the old unit exactly
when that of the other holds the new one, and no such bound from the unsampled pair is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, runtime_checkable

from dalenius.arithmetic import workprec
from dalenius.errors import NotSound
from dalenius.losses.fields import a_loss
from dalenius.losses.group import Group
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.atoms import Atom, Atoms, join
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import between, interval, mass
from dalenius.profiles.gaussian_pairs import MixturePair, ShiftPair
from dalenius.profiles.pair import Pair, Worst
from dalenius.profiles.product import collapse
from dalenius.profiles.sampled import Sampled


@runtime_checkable
class Concentrated(Protocol):
    """A kind that knows its ρ: see `concentration`."""

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        """A ρ that holds, and one that D_α/α tends to for some mechanism of this description."""
        ...


@runtime_checkable
class GroupSampled(Protocol):
    """A kind that knows the loss of a group on a Poisson sample."""

    def sampled_group(self, rate: Fraction, size: int) -> Loss:
        """The loss of `size` units together, each of which takes part with probability `rate`."""
        ...


def subsample(loss: Loss, rate: Fraction) -> Loss:
    """The same on a Poisson sample of the units."""
    if loss.relation == "replace":
        raise NotSound(
            "No theorem bounds a Poisson sample under the replace relation by the loss without sampling.",
            remedy="State the loss for add_remove, where the theorem holds.",
        )
    return loss if rate == 1 else Poisson(loss, rate)


@dataclass(frozen=True)
class Poisson(Loss, kind="poisson"):
    """A loss on a Poisson sample, each unit taking part with probability `sampling_rate`."""

    loss: Loss
    sampling_rate: Fraction
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sampling_rate", numbers.rate(self.sampling_rate, "sampling_rate"))
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)
        if self.loss.relation == "replace" or single(self.loss) is None:
            raise _no_pair()

    @property
    def tight(self) -> bool:
        """Tight where the loss without sampling is."""
        return self.loss.tight

    def directions(self) -> tuple[Worst, ...]:
        """Removing a unit, then adding one."""
        pairs = single(self.loss)
        if pairs is None:
            raise _no_pair()
        remove = sampled(pairs[0], self.sampling_rate)
        add = sampled(pairs[-1].reversed(), self.sampling_rate).reversed()
        return (((remove, 1),), ((add, 1),))

    def enlarged(self, size: int) -> Loss:
        """How many of a group take part is binomial: exact where the kind can say what that makes."""
        if isinstance(self.loss, GroupSampled):
            return self.loss.sampled_group(self.sampling_rate, size)
        return Group(self, size)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        """That of the loss without sampling, where D_α/α tends to it: sampling lowers D_α by a constant."""
        known = self.loss.concentration() if isinstance(self.loss, Concentrated) else None
        return known if known is not None and known[1] > 0 else None


def single(loss: Loss) -> tuple[Pair, ...] | None:
    """All releases of the loss as one pair in each direction, where there are such."""
    pairs = [collapse(worst) for worst in loss.directions() or ()]
    found = tuple(pair for pair in pairs if pair is not None)
    return found if found and len(found) == len(pairs) else None


def _no_pair() -> NotSound:
    return NotSound(
        "This loss is not known as one pair of distributions, which the theorem on Poisson samples needs.",
        remedy="Subsample each release by itself, on a fresh sample, and add the results up.",
    )


@lru_cache(maxsize=1024)
def sampled(pair: Pair, rate: Fraction) -> Pair:
    """((1−q)Q + qP, Q): a finite pair stays finite, and a mixture of Gaussians one such mixture."""
    if isinstance(pair, Atoms):
        return _thinned(pair, rate)
    if isinstance(pair, ShiftPair):
        return MixturePair(((Fraction(0), 1 - rate), (pair.distance, rate)))
    if isinstance(pair, MixturePair) and not pair.backward:
        return _remixed(pair, rate)
    return Sampled(pair, rate)


def _remixed(pair: MixturePair, rate: Fraction) -> MixturePair:
    weights = {Fraction(0): 1 - rate}
    for shift, weight in pair.atoms:
        weights[shift] = weights.get(shift, Fraction(0)) + rate * weight
    return MixturePair(tuple(sorted(weights.items())))


def _thinned(pair: Atoms, rate: Fraction) -> Atoms:
    with workprec(BITS):
        q = ball(rate)
        atoms = [_thin(atom, rate) for atom in pair.atoms]
        if pair.missing[1] > 0:
            least = between(pair.missing)
            atoms.append(Atom.of_ratio(1 - rate, mass((1 - q) * least), pair.missing))
        infinite = mass(q * between(pair.infinite)) if pair.infinite[1] > 0 else pair.infinite
    return Atoms(join(atoms), infinite)


def _thin(atom: Atom, rate: Fraction) -> Atom:
    """Its loss becomes log(1 + q(e^L − 1)) and its mass (1−q)Q + qP."""
    q, loss = ball(rate), between(atom.loss) if atom.exact is None else ball(atom.exact)
    p = mass(q * between(atom.p) + (1 - q) * between(atom.q))
    if atom.ratio is not None or atom.exact == 0:
        return Atom.of_ratio(1 + rate * ((atom.ratio or 1) - 1), p, atom.q)
    return Atom(interval((q * loss.expm1()).log1p()), p, atom.q)
