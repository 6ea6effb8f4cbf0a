"""Composition: adaptively chosen releases about the same units, described together.

Theorem (Zhu, Dong and Wang 2022, Theorem 10): if (P_i, Q_i) dominates release i in one direction,
for every value of the earlier outputs, then the product pair dominates the adaptive composition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
        """Tight when every term is."""
        return all(loss.tight for loss, _ in self.terms)

    def directions(self) -> tuple[Worst, ...] | None:
        """Direction by direction, the worst cases of all terms together."""
        known = [
            (part, n) for part, n in ((loss.directions(), n) for loss, n in self.terms) if part is not None
        ]
        if len(known) < len(self.terms):
            return None
        merged = []
        for i in range(max(len(part) for part, _ in known)):
            pairs: Counter[Pair] = Counter()
            for part, n in known:
                for pair, times in part[min(i, len(part) - 1)]:
                    pairs[pair] += n * times
            merged.append(tuple(pairs.items()))
        return tuple(dict.fromkeys(merged))

    def moment(self, order: float) -> float:
        """Moments of independent losses add."""
        return sum(n * loss.moment(order) for loss, n in self.terms)


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
