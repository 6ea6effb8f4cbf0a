"""Mechanisms that meet a description, for bounding an answer from below.

The truth about a loss is the supremum over all mechanisms that meet its description. Where the worst pairs
are attained, the description is its own witness. Elsewhere a kind may name a mechanism that meets it; one
that does nothing always does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from dalenius.losses.composition import Composition, compose, together
from dalenius.losses.group import Group
from dalenius.losses.loss import Loss
from dalenius.losses.mixture import Mixture
from dalenius.losses.poisson import Poisson
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Worst


@runtime_checkable
class Witnessed(Protocol):
    """A kind that names a mechanism meeting its description."""

    def attained(self) -> Loss | None:
        """The loss of such a mechanism; None for one that does nothing."""
        ...


def attained(loss: Loss) -> Loss | None:
    """The loss, known by attained pairs, of a mechanism that meets this description; None for nothing.

    Part of a composition, or one unit of a group, is a case of the whole.
    """
    if loss.tight:
        return loss
    if isinstance(loss, Witnessed):
        return loss.attained()
    if isinstance(loss, Composition):
        parts = [(attained(term), count) for term, count in loss.terms]
        known = [(part, count) for part, count in parts if part is not None]
        if not known:
            return None
        whole = compose(part * count for part, count in known)
        return whole if whole.tight else Ordered(tuple(known), whole.relation)
    if isinstance(loss, Group):
        return attained(loss.loss)
    if isinstance(loss, Poisson):
        inner = attained(loss.loss)
        return None if inner is None else inner.poisson(loss.sampling_rate)
    return _mixture(loss) if isinstance(loss, Mixture) else None


@dataclass(frozen=True)
class Ordered(Loss):
    """Releases whose pairs have a fixed order each, of which the worst of a few is taken.

    Under replace every order of every release meets the description, so that each bounds the truth from
    below: as they are stated, all with the greater divergence first, and half of each turned. It is never
    stored, and its name serves to put it in order among others.
    """

    kind: ClassVar[str] = "ordered"
    terms: tuple[tuple[Loss, int], ...]
    relation: Relation

    def directions(self) -> tuple[Worst, ...] | None:
        """Return the cases that were chosen, and their reverses."""
        known = [(loss.directions(), n) for loss, n in self.terms]
        stated = together(known)
        if stated is None:
            return None
        sorted_ = [(part and tuple(sorted(part, key=_apart, reverse=True)), n) for part, n in known]
        turned = [(part and part[::-1], n // 2) for part, n in sorted_ if n > 1]
        halves = [(part, n - n // 2) for part, n in sorted_] + turned
        return tuple(dict.fromkeys((*stated, *(together(sorted_) or ()), *(together(halves) or ()))))


def _apart(worst: Worst) -> float:
    """Return how large losses are in one direction: log E e^L, or infinity."""
    return sum(n * pair.log_moment(1.0)[0] for pair, n in worst)


def _mixture(loss: Mixture) -> Loss | None:
    """The mixture of the parts' witnesses, where all have one and it is a pair."""
    known = [part for part in map(attained, loss.losses) if part is not None]
    whole = Mixture(known, loss.weights) if len(known) == len(loss.losses) else None
    return whole if whole is not None and whole.tight else None
