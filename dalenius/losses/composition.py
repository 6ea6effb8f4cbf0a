"""Composition: adaptively chosen releases about the same units, described together.

Theorem (Zhu, Dong and Wang 2022, Theorem 10): if (P_i, Q_i) dominates release i in one direction,
for every value of the earlier outputs, then the product pair dominates the adaptive composition.

Under add_remove and zero_out one of two neighbours has the unit and the other one has not, so that all
releases are composed in the same direction, and the worse direction counts. Under replace nothing tells the
two data sets apart: a release whose worst pair is not its own reverse may have either order, whatever the
others have, and by what they gave: even a single such release, after one that is its own reverse. So each is
taken by a pair that dominates both orders (`Loss.either_way`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dalenius.losses.loss import Loss, same_relation
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Pair, Worst


@dataclass(frozen=True)
class Composition(Loss, kind="composition"):
    """Losses and how often each occurs, in a canonical order."""

    terms: tuple[tuple[Loss, int], ...]
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", same_relation(tuple(loss for loss, _ in self.terms)))

    @property
    def tight(self) -> bool:
        """Tight when every term is, and no release may be turned by what the others give."""
        return all(loss.tight for loss, _ in self.terms) and not self._turns

    def directions(self) -> tuple[Worst, ...] | None:
        """Direction by direction, the worst cases of all terms together."""
        if not self._turns:
            return together([(loss.directions(), n) for loss, n in self.terms])
        cases = [(loss.either_way(), n) for loss, n in self.terms]
        return together([(None if case is None else (case,), n) for case, n in cases])

    @property
    def _turns(self) -> bool:
        """Whether a release has two directions, one of which earlier outputs may choose (`either_way`)."""
        return self.relation == "replace" and turning(self.terms) > 0

    def moment(self, order: float) -> float:
        """Moments of independent losses add."""
        return sum(n * loss.moment(order) for loss, n in self.terms)


def turning(terms: Iterable[tuple[Loss, int]]) -> int:
    """Return how many of these releases have other pairs for (D, D') than for (D', D)."""
    return sum(n for loss, n in terms if len(loss.directions() or ()) > 1)


def together(parts: Sequence[tuple[tuple[Worst, ...] | None, int]]) -> tuple[Worst, ...] | None:
    """Return the worst cases of releases made together, direction by direction; None where one has none.

    Args:
        parts: For each release its directions, and how often it is made. One direction stands for all.
    """
    known = [(part, n) for part, n in parts if part is not None]
    if len(known) < len(parts):
        return None
    merged = []
    for i in range(max(len(part) for part, _ in known)):
        pairs: Counter[Pair] = Counter()
        for part, n in known:
            for pair, times in part[min(i, len(part) - 1)]:
                pairs[pair] += n * times
        merged.append(tuple(pairs.items()))
    # Directions with the same pairs, listed in another order, are the same.
    return tuple({frozenset(case): case for case in reversed(merged)}.values())[::-1]


def compose(losses: Iterable[Loss], *, times: int = 1) -> Loss:
    """The loss of all releases together, each made `times` times."""
    parts = tuple(losses)
    same_relation(parts)
    total: Counter[Loss] = Counter()
    for loss in parts:
        for term, n in loss.terms if isinstance(loss, Composition) else ((loss, 1),):
            total[term] += n * times
    for n in total.values():
        numbers.count(n, "count")
    if len(total) == 1:
        ((only, n),) = total.items()
        if n == 1:
            return only
    return Composition(tuple(sorted(total.items(), key=lambda item: item[0].to_json())))
