"""Bets against a claim: wealth that no true claim lets grow, at any time.

Draw x on one input and y on its neighbour. By a line of the claim (`families`), P(x ∈ E) ≤ s·P(y ∈ E) + d, so

    1 + λ (1[x ∈ E] − s·1[y ∈ E] − d),    0 ≤ λ < 1/(s + 1),

is positive and has mean at most 1, whatever came before, if E, the line and λ are fixed before x and y are
drawn. The product over pairs is a wealth that begins at 1 and is a supermartingale where the claim is true:
by Ville (1939) it ever reaches 1/α with probability at most α. So one may look after every pair, stop, or go
on (Shafer 2021; Waudby-Smith and Ramdas 2024).

All members of a family are bet against at once with the same E, anchor and λ. Lines only rise from member to
member, so wealth only falls: those that are rejected are all up to one, and the least false rejection is that
of the one true member, at α. λ is that of Kelly (1956) for the member that what is still to be drawn will
just reject.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dalenius.audits.families import Family, Floats, Lines

LEVELS = np.concatenate([np.linspace(0.0, 0.94, 40), 1 - np.geomspace(0.06, 2e-5, 40)])
"""Quantiles among which an event's threshold is chosen: rare events may tell most."""
DOUBT = 1.5
"""So many deviations worse than they look frequencies are taken when an event is chosen."""
FULLEST = 0.98
"""The most of what a stake may be that is staked."""
LOOKED, FINE = 16, 400
"""So many bets are looked at finely, each against so many members."""
SPARE = 1.0
"""Wealth is hoped to come to e times what is needed."""
CLOSE = 5e-4
"""How closely the last rejected member is found."""

Scored = Mapping[str, tuple[Floats, Floats]]
"""Scores of the draws on each input, by the name of the score."""


@dataclass(frozen=True)
class Event:
    """Draws whose score is at least `level`, or at most its negative; `first` is the input it favors."""

    score: str
    sign: int
    first: int
    level: float

    def __str__(self) -> str:
        side = ">=" if self.sign > 0 else "<="
        return f"score {side} {self.sign * self.level:.4g} (likelier on the {_ORDINALS[self.first]} input)"


@dataclass(frozen=True)
class Bet:
    """An event, a line of the family by its anchor, and a stake; `promise` orders bets on one family."""

    event: Event
    anchor: float
    stake: float
    promise: float


_ORDINALS = ("first", "second")


class Wealth:
    """What bets against a family came to."""

    def __init__(self, family: Family, risk: float) -> None:
        self.family, self.need = family, -math.log(risk)
        self.shown, self.against = family.least, 0.0
        self.event: Event | None = None
        self._made: list[tuple[Bet, Floats]] = []

    def add(self, bet: Bet, scored: Scored) -> None:
        """Settle a bet on fresh draws."""
        event = bet.event
        inside = [event.sign * side >= event.level for side in scored[event.score]]
        x, y = inside[event.first], inside[1 - event.first]
        counts = [np.count_nonzero(x & y), np.count_nonzero(x & ~y), np.count_nonzero(~x & y)]
        self._made.append((bet, np.array([*counts, len(x) - sum(counts)], dtype=float)))
        self.against = self._log(self.family.own)
        found = self._last() if self.family.tells else self.family.least
        if found > self.shown or self.event is None:
            self.shown, self.event = max(found, self.shown), event

    def _last(self) -> float:
        """The largest member that is rejected now; the least where none is."""
        low, high = max(self.shown, self.family.least), self.family.most
        if self._log(low) < self.need:
            return self.family.least
        while high - low > CLOSE * high:
            middle = (low + high) / 2 if low == 0 or high < 2 * low else math.sqrt(low * high)
            low, high = (middle, high) if self._log(middle) >= self.need else (low, middle)
        return low

    def _log(self, member: float) -> float:
        return sum(
            _settled(bet.stake, *self.family.line(member, bet.anchor), counts) for bet, counts in self._made
        )


def _settled(stake: float, slope: float, intercept: float, counts: Floats) -> float:
    """The logarithm of what a bet came to; one that could go below nothing says nothing."""
    gains = np.array([1 - slope, 1.0, -slope, 0.0]) - intercept
    if stake * gains.min() <= -1:
        return -math.inf
    return float(counts @ np.log1p(stake * gains))


def choose(scored: Scored, family: Family, *, left: int, need: float) -> Bet | None:
    """The bet that promises to reject most with `left` pairs; None where nothing tells the inputs apart."""
    lines = family.lines()
    best: tuple[float, tuple[Event, int, tuple[float, float]] | None] = (-math.inf, None)
    for name, sides in scored.items():
        for sign, first in ((1, 0), (-1, 1), (1, 1), (-1, 0)):
            level, p, q = _frequencies(sides, sign, first)
            if not level.size:
                continue
            hope, row, place = _promise(lines, p, q, left, need)
            if hope > best[0]:
                best = (
                    hope,
                    (Event(name, sign, first, float(level[place])), row, (float(p[place]), float(q[place]))),
                )
    if best[1] is None:
        return None
    event, row, chances = best[1]
    return Bet(event, float(lines.anchors[row]), _finely(lines, row, chances, left, need)[1], best[0])


def _frequencies(sides: tuple[Floats, Floats], sign: int, first: int) -> tuple[Floats, Floats, Floats]:
    """Thresholds, and by them how likely the event is on both inputs, each taken for worse than it looks."""
    a, b = (np.sort(sign * sides[k]) for k in (first, 1 - first))
    levels = np.unique(np.quantile(np.concatenate([a, b]), LEVELS))
    p = _wilson(1 - np.searchsorted(a, levels) / len(a), len(a), -1)
    q = _wilson(1 - np.searchsorted(b, levels) / len(b), len(b), +1)
    likelier = p > q
    return levels[likelier], p[likelier], q[likelier]


def _wilson(shares: Floats, trials: int, side: int) -> Floats:
    """One side of Wilson's interval."""
    spread = np.sqrt(shares * (1 - shares) / trials + (DOUBT / (2 * trials)) ** 2)
    middle = shares + DOUBT**2 / (2 * trials) + side * DOUBT * spread
    return np.asarray(np.clip(middle / (1 + DOUBT**2 / trials), 0.0, 1.0))


def _promise(lines: Lines, p: Floats, q: Floats, left: int, need: float) -> tuple[float, int, int]:
    """How far up the family the best event and line should reach, and which they are."""
    growth = _growth(p[:, None, None], q[:, None, None], lines.slopes, lines.intercepts)[1]
    reached = left * growth >= need + SPARE
    top = np.where(reached.any(axis=2), reached.shape[2] - np.argmax(reached[:, :, ::-1], axis=2), 0)
    grown = np.take_along_axis(growth, np.maximum(top - 1, 0)[:, :, None], axis=2)[:, :, 0]
    rough = top + np.minimum(left * grown / (need + SPARE), 1e6) * 1e-7
    best = np.argsort(rough, axis=None)[-LOOKED:]
    places, rows = np.unravel_index(best, rough.shape)
    pairs = zip(places.tolist(), rows.tolist(), strict=True)
    found = [(_finely(lines, row, (float(p[k]), float(q[k])), left, need)[0], row, k) for k, row in pairs]
    return max(found)


def _finely(
    lines: Lines, row: int, chances: tuple[float, float], left: int, need: float
) -> tuple[float, float]:
    """The member that a bet will just reject, as its place among many, and Kelly's stake against it."""
    p, q = map(np.asarray, chances)
    members = np.exp(np.linspace(math.log(lines.members[0]), math.log(lines.members[-1]), FINE))
    stakes, growth = _growth(p, q, *lines.at(row, members))
    reached = np.flatnonzero(left * growth >= need + SPARE)
    last = int(reached[-1]) if reached.size else 0
    return (last + 1 if reached.size else 0) + 1e-7 * min(left * float(growth[last]), 1e6), float(
        stakes[last]
    )


def _growth(p: Floats, q: Floats, slope: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """The best stake, nearly, and by how much the logarithm of wealth then grows for each pair."""
    drift = p - slope * q - intercept
    spread = p * (1 - p) + slope**2 * q * (1 - q) + drift**2
    stake = np.clip(drift / np.maximum(spread, 1e-300), 0.0, FULLEST / (slope + 1))
    gains = (
        (p * q, 1 - slope - intercept),
        (p * (1 - q), 1 - intercept),
        ((1 - p) * q, -slope - intercept),
        ((1 - p) * (1 - q), -intercept),
    )
    grown = sum(chance * np.log1p(np.maximum(stake * gain, -0.999)) for chance, gain in gains)
    return stake, np.asarray(np.where(drift > 0, grown, -math.inf))
