"""Every pair of small neighbouring utilities, and the most that a choice between them can tell."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from contract import divergence

from dalenius.mechanisms.choice import Choice
from dalenius.mechanisms.mechanism import Law


def most_told(mechanism: Choice, shares: tuple[float, ...]) -> list[float]:
    """The largest δ(share·ε) of all pairs, by brute force from the exact laws."""
    pairs = list(_pairs(mechanism))
    limit = float(mechanism.limit)
    return [
        max(max(divergence(p, q, x * limit), divergence(q, p, x * limit)) for p, q in pairs) for x in shares
    ]


def _pairs(mechanism: Choice) -> Iterator[tuple[Law, Law]]:
    """Of two and three candidates, the last at 0 and the others up to three steps away from it."""
    far = mechanism.charged
    moves = (0, far) if mechanism.monotone else (-far, 0, far)
    for others in [*itertools.product(range(-3, 4), repeat=1), *itertools.product(range(-2, 3), repeat=2)]:
        before = (*others, 0)
        first = mechanism.probabilities([u * mechanism.step for u in before])
        for move in itertools.product(moves, repeat=len(before)):
            after = [(u + m) * mechanism.step for u, m in zip(before, move, strict=True)]
            second = mechanism.probabilities(after)
            assert first is not None
            assert second is not None
            yield first, second
