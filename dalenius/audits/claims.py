"""`audit`: a lower bound on ε from draws of the real sampler, and what was attainable.

The adversary knows the mechanism and its worst neighbouring inputs a, b. It draws from both, and looks for an
event E that tells them apart: (ε, δ)-privacy demands P_a(E) ≤ e^ε P_b(E) + δ, so

    ε ≥ log((p − δ)/q)   for every p ≤ P_a(E), q ≥ P_b(E).

The event is a set where a score is large: see `scores`. A fifth of the draws choose the score, the direction
and the event. Where several pairs may leak as much (the same move in other entries), as many draws again,
shared among them, first choose the pair. The others, which no choice ever saw, give p and q by the exact
binomial intervals of Clopper and Pearson (1934), each at half the risk: the bound is wrong with probability
at most 1 − confidence, whatever the mechanism. `attainable` is the pair's ε at δ, from its exact law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from dalenius.audits.scores import EXACT, Case, Scores, key, scores
from dalenius.losses.bound import Bound
from dalenius.mechanisms.mechanism import Floats, Law, Mechanism
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

TRIALS = 400_000
"""Draws from each of the two inputs, where nothing else is asked for."""
LEVELS = 512
"""Thresholds among which the event is chosen."""
DOUBT = 0.95
"""What a learned score promises counts for so much less, as chance has a share in it."""
AT_ONCE = 2**23
"""So many numbers are drawn at a time."""


@dataclass(frozen=True)
class Audit:
    """What an adversary found."""

    lower: float
    claim: Bound
    attainable: float | None
    delta: float
    confidence: Fraction
    trials: int
    family: str

    @property
    def holds(self) -> bool:
        """Whether the claim survived."""
        return self.lower <= self.claim.upper

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "IS BROKEN"
        able = "" if self.attainable is None else f", attainable {self.attainable:.4g}"
        return (
            f"the claim epsilon {self.claim.upper:.4g} at delta {self.delta:.3g} {verdict}: at least "
            f"{self.lower:.4g} with confidence {float(self.confidence):g}{able} ({self.family})"
        )


def audit(
    mechanism: Mechanism,
    *,
    delta: Number | None = None,
    trials: int = TRIALS,
    confidence: Number = Fraction(99, 100),
) -> Audit:
    """Attack the mechanism's claim on its worst case, at `delta` (chosen if None)."""
    failure = numbers.delta(_likely(mechanism) if delta is None else delta)
    sure, count = numbers.probability(confidence, "confidence"), numbers.count(trials, "trials", least=100)
    risk, first = float(1 - sure), count // 5
    case = _most_telling(mechanism, first, float(failure), risk)
    attack = _attack(mechanism, case, first, float(failure), risk)
    laws = attack.laws or [mechanism.probabilities(value) for value in case]
    return Audit(
        attack.lower(mechanism, count - first),
        mechanism.loss.epsilon(failure),
        _attainable(laws, float(failure)),
        float(failure),
        sure,
        count,
        attack.family,
    )


def _likely(mechanism: Mechanism) -> Fraction:
    """A δ at which an attack can show something: 0 for a pure claim, else a quarter of the advantage."""
    pure = mechanism.loss.epsilon(0).upper < math.inf
    return Fraction(0) if pure else Fraction(f"{mechanism.loss.advantage().upper / 4:.2g}")


@dataclass(frozen=True)
class _Attack:
    """Sets of large scores, or of small ones, and which input they favour."""

    case: Case
    laws: list[Law | None]
    score: Scores
    family: str
    delta: float
    risk: float
    hope: float
    sign: int
    first: int
    level: float

    def lower(self, mechanism: Mechanism, size: int) -> float:
        """The bound from fresh draws."""
        hits = [
            sum(
                int(np.count_nonzero(self.sign * s >= self.level))
                for s in _scored(mechanism, v, size, self.score)
            )
            for v in self.case
        ]
        least = _clopper(hits[self.first], size, self.risk / 2, lower=True)
        most = _clopper(hits[1 - self.first], size, self.risk / 2, lower=False)
        return max(0.0, math.log((least - self.delta) / most)) if least > self.delta else 0.0


def _most_telling(mechanism: Mechanism, size: int, delta: float, risk: float) -> Case:
    """The case that promises most, each tried on its share of `size` draws."""
    cases = mechanism.cases()
    if len(cases) == 1:
        return cases[0]
    attacks = (_attack(mechanism, case, max(1, size // len(cases)), delta, risk) for case in cases)
    return max(attacks, key=lambda attack: attack.hope).case


def _attack(mechanism: Mechanism, case: Case, size: int, delta: float, risk: float) -> _Attack:
    """The event that promises most on `size` draws from each input."""
    known, laws = scores(mechanism, case, size)
    found = []
    for family, score in known.items():
        train = [np.concatenate([*_scored(mechanism, value, size, score)]) for value in case]
        for sign, first in ((1, 0), (1, 1), (-1, 0), (-1, 1)):
            hope, level = _hope(train, sign, first, delta, risk)
            hope *= 1 if family == EXACT or hope < 0 else DOUBT
            found.append(_Attack(case, laws, score, family, delta, risk, hope, sign, first, level))
    return max(found, key=lambda attack: attack.hope)


def _scored(mechanism: Mechanism, value: Any, size: int, score: Scores) -> Iterator[Floats]:
    """The scores of `size` draws, some at a time."""
    width = max(1, np.size(mechanism.sample(value, 1)))
    for start in range(0, size, max(1, AT_ONCE // width)):
        yield score(mechanism.sample(value, min(max(1, AT_ONCE // width), size - start)))


def _hope(train: list[Floats], sign: int, first: int, delta: float, risk: float) -> tuple[float, float]:
    """The best bound that the training draws alone would show of this direction, and its threshold."""
    a, b = (np.sort(sign * train[k]) for k in (first, 1 - first))
    levels = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.0, 1.0, LEVELS)))
    least = _wilson(1 - np.searchsorted(a, levels) / len(a), len(a), risk / 2, -1) - delta
    most = _wilson(1 - np.searchsorted(b, levels) / len(b), len(b), risk / 2, +1)
    hopes = np.where(least > 0, np.log(np.maximum(least, 1e-300) / most), -math.inf)
    best = int(np.argmax(hopes))
    return float(hopes[best]), float(levels[best])


def _wilson(shares: Floats, trials: int, risk: float, side: int) -> Floats:
    """One side of Wilson's interval: close to the exact one, and quick for many shares."""
    z = -NormalDist().inv_cdf(risk)
    spread = np.sqrt(shares * (1 - shares) / trials + (z / (2 * trials)) ** 2)
    return np.asarray((shares + z * z / (2 * trials) + side * z * spread) / (1 + z * z / trials))


def _clopper(hits: int, trials: int, risk: float, *, lower: bool) -> float:
    """One side of the exact binomial interval."""
    from scipy.special import betaincinv

    if lower:
        return float(betaincinv(hits, trials - hits + 1, risk)) if hits else 0.0
    return float(betaincinv(hits + 1, trials - hits, 1 - risk)) if hits < trials else 1.0


def _attainable(laws: list[Law | None], delta: float) -> float | None:
    """The ε of the pair at δ, in the worse direction, where its laws are closed."""
    known = [law for law in laws if law is not None]
    if len(known) != 2:
        return None
    keys = [np.array([key(outcome) for outcome in law.outcomes]) for law in known]
    kinds, place = np.unique(np.concatenate(keys), return_inverse=True)
    ends = np.split(place, [len(keys[0])])
    p, q = np.zeros((2, len(kinds)))
    for side, end, law in zip((p, q), ends, known, strict=True):
        np.add.at(side, end, law.masses)
    rest = 2 * max(law.rest for law in known)
    return max(_epsilon(p, q, delta, rest), _epsilon(q, p, delta, rest))


def _epsilon(p: Floats, q: Floats, delta: float, rest: float) -> float:
    """The least ε ≥ 0 with Σ (p − e^ε q)₊ ≤ δ; a mass of `rest` is what the lists leave out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(p) - np.log(q)
    both = (p > 0) & (q > 0)
    infinite = float(p[q == 0].sum())
    infinite = infinite if infinite > rest else 0.0
    if infinite > delta:
        return math.inf
    order = np.argsort(-ratio[both])
    p, q, ratio = p[both][order], q[both][order], ratio[both][order]
    excess = np.cumsum(p) + infinite - delta
    # On the first i outcomes the equation is linear in e^ε; the best set gives the largest solution.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(np.maximum(excess, 0.0)) - np.log(np.cumsum(q))
    return max(0.0, float(np.max(found))) if len(found) else 0.0
