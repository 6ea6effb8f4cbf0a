"""`Hunt`: draws on two inputs, batch by batch, and bets against a claim about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.audits.bets import Bet, Scored, Wealth, choose
from dalenius.audits.families import Curve, Floats, Point
from dalenius.audits.report import Audit
from dalenius.audits.scores import EXACT, Scores, learned
from dalenius.losses.loss import Loss

FIRST = 16
"""One draw in so many is seen before the first bet; twice as many again where scores are learned."""
GROWTH = 1.5
"""All draws are so many times as many after a batch as before it."""
TELLING, SILENT = 0.9, 0.5
"""The share of the risk that bets against the whole curve have, where they tell ε and where they do not."""
AT_ONCE = 2**23
"""So many numbers are drawn at a time."""

Draw = Callable[[int], tuple[NDArray[Any], NDArray[Any]]]
"""So many draws on each of two inputs."""


class Learn(Protocol):
    """How scores are learned from draws on both inputs."""

    def __call__(self, first: NDArray[Any], second: NDArray[Any], *, exact: bool) -> dict[str, Scores]:
        """Scores by their names; less where the exact one is known."""


class Hunt:
    """Bets against a claim, as a curve and at one δ."""

    def __init__(self, claim: Loss, delta: Fraction, risk: float) -> None:
        self.claim, self.delta = claim, delta
        curve, point = Curve(claim), Point(claim, delta)
        self.share = TELLING if curve.tells else SILENT
        self.wealths = [Wealth(curve, risk * self.share), Wealth(point, risk * (1 - self.share))]
        self.risk, self.evidence = risk, 1.0

    def run(
        self,
        draw: Draw,
        scores: dict[str, Scores],
        most: int,
        until: float = math.inf,
        *,
        learn: Learn = learned,
    ) -> int:
        """Draw and bet until `most` draws a side, or until ε is shown to be `until`; how many were drawn."""
        first = max(50, most // FIRST)
        scores, drawn = _taught(draw, scores, 2 * first, learn)
        past = _scored(draw, scores, first)
        for size in _sizes(drawn + first, most):
            if self.lower >= until:
                break
            left = most - drawn - first
            bets = [choose(past, one.family, left=left, need=one.need) for one in self.wealths]
            fresh = _scored(draw, scores, size)
            self.settle(bets, fresh)
            past, drawn = _joined(past, fresh), drawn + size
        return drawn + first

    def promise(self, draw: Draw, scores: dict[str, Scores], size: int, *, learn: Learn = learned) -> float:
        """How much the first bet on the curve promises, by draws that serve for this alone."""
        scores, _ = _taught(draw, scores, size, learn)
        curve = self.wealths[0]
        bet = choose(_scored(draw, scores, size), curve.family, left=FIRST * size, need=curve.need)
        return -math.inf if bet is None else bet.promise

    def settle(self, bets: Sequence[Bet | None], fresh: Scored) -> None:
        """Take what they came to."""
        for wealth, bet in zip(self.wealths, bets, strict=True):
            if bet is not None:
                wealth.add(bet, fresh)
        curve, point = (math.exp(min(one.against, 700.0)) for one in self.wealths)
        self.evidence = max(self.evidence, self.share * curve + (1 - self.share) * point)

    @property
    def lower(self) -> float:
        """The ε that is shown so far."""
        return max(self._epsilon(one) for one in self.wealths)

    def _epsilon(self, wealth: Wealth) -> float:
        family = wealth.family
        return family.epsilon(wealth.shown, self.delta) if wealth.shown > family.least else 0.0

    def report(self, confidence: Fraction, drawn: int, able: float | None) -> Audit:
        """All of it."""
        best = max(self.wealths, key=self._epsilon)
        curve, point = self.wealths
        event = best.event or curve.event or point.event
        return Audit(
            epsilon_lower=self.lower,
            epsilon_any=self._epsilon(point),
            claim=self.claim.epsilon(self.delta),
            attainable=able,
            delta=float(self.delta),
            confidence=confidence,
            trials=drawn,
            family=best.family.among,
            score="no event was found" if event is None else event.score,
            violated=self.evidence >= 1 / self.risk,
            evidence=self.evidence,
            event=str(event or "none"),
        )


def _taught(draw: Draw, scores: dict[str, Scores], size: int, learn: Learn) -> tuple[dict[str, Scores], int]:
    """What is learned besides what is known, and from how many draws a side; of one number nothing is."""
    if EXACT in scores and draw(1)[0].ndim == 1:
        return scores, 0
    return scores | learn(*draw(size), exact=EXACT in scores), size


def _sizes(first: int, most: int) -> Iterator[int]:
    """Sizes of batches after the first draws, each a share of all before."""
    drawn = first
    while drawn < most:
        size = min(max(50, int((GROWTH - 1) * drawn)), most - drawn)
        # A rest that is hardly worth a batch of its own goes with this one.
        size = most - drawn if most - drawn - size < size // 4 else size
        yield size
        drawn += size


def _scored(draw: Draw, scores: dict[str, Scores], size: int) -> dict[str, tuple[Floats, Floats]]:
    """All scores of `size` fresh draws on each input, some at a time."""
    parts: dict[str, tuple[list[Floats], list[Floats]]] = {name: ([], []) for name in scores}
    step = max(1, AT_ONCE // max(1, np.size(draw(1)[0])))
    for start in range(0, size, step):
        draws = draw(min(step, size - start))
        for name, score in scores.items():
            for side in (0, 1):
                parts[name][side].append(score(draws[side]))
    return {name: (np.concatenate(a), np.concatenate(b)) for name, (a, b) in parts.items()}


def _joined(past: Scored, fresh: Scored) -> dict[str, tuple[Floats, Floats]]:
    return {
        name: (np.concatenate([past[name][0], a]), np.concatenate([past[name][1], b]))
        for name, (a, b) in fresh.items()
    }
