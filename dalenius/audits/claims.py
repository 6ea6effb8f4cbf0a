"""`audit`: a lower bound on ε from draws of the real sampler, and what was attainable.

The adversary knows the mechanism and its worst neighbouring inputs a, b. It draws from both, and looks for an
event E that tells them apart: (ε, δ)-privacy demands P_a(E) ≤ e^ε P_b(E) + δ, so

    ε ≥ log((p − δ)/q)   for every p ≤ P_a(E), q ≥ P_b(E).

A fifth of the draws choose the direction and the event, among the sets where a score is large: the
likelihood ratio where the law is closed (by Neyman and Pearson no test does better), else its estimate from
frequencies, else the number itself. The others, which the choice never saw, give p and q by the exact
binomial intervals of Clopper and Pearson (1934), each at half the risk: the bound is wrong with probability
at most 1 − confidence, whatever the mechanism. `attainable` is the pair's ε at δ, from its exact law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.losses.bound import Bound
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

Floats = NDArray[np.float64]
Scores = Callable[[NDArray[Any]], Floats]

TRIALS = 400_000
"""Draws from each of the two inputs, where nothing else is asked for."""
LEVELS = 512
"""Thresholds among which the event is chosen."""
FEW = 4096
"""Up to so many different outcomes are told apart by their frequencies."""


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
    pair = mechanism.worst_case()
    draws = [mechanism.sample(value, count) for value in pair]
    laws = [mechanism.probabilities(value) for value in pair]
    first = count // 5
    score, family = _score(laws, [d[:first] for d in draws])
    train, test = ([score(d[s]) for d in draws] for s in (slice(0, first), slice(first, None)))
    lower = _lower(train, test, float(failure), float(1 - sure))
    return Audit(
        lower,
        mechanism.loss.epsilon(failure),
        _attainable(laws, float(failure)),
        float(failure),
        sure,
        count,
        family,
    )


def _likely(mechanism: Mechanism) -> Fraction:
    """A δ at which an attack can show something: 0 for a pure claim, else a quarter of the advantage."""
    pure = mechanism.loss.epsilon(0).upper < math.inf
    return Fraction(0) if pure else Fraction(f"{mechanism.loss.advantage().upper / 4:.2g}")


def _score(laws: list[Law | None], draws: list[NDArray[Any]]) -> tuple[Scores, str]:
    known = [law for law in laws if law is not None]
    if len(known) == 2:
        return _ratio(*(dict(zip(law.outcomes, law.masses.tolist(), strict=True)) for law in known)), (
            "tests by the exact likelihood ratio"
        )
    names = [_names(d) for d in draws]
    kinds = np.unique(np.concatenate(names))
    if len(kinds) <= FEW:
        counts = [dict(zip(*np.unique(n, return_counts=True), strict=True)) for n in names]
        shares = [
            {k: (c.get(k, 0) + 0.5) / len(n) for k in kinds} for c, n in zip(counts, names, strict=True)
        ]
        return _ratio(*shares), "tests by estimated frequencies"
    return lambda values: np.asarray(values, dtype=np.float64).reshape(len(values), -1)[
        :, 0
    ], "threshold tests"


def _ratio(first: dict[Any, float], second: dict[Any, float]) -> Scores:
    """log P_a/P_b of each outcome."""
    outcomes = sorted({*first, *second}, key=_key)
    with np.errstate(divide="ignore"):
        p, q = (np.log([side.get(o, 0.0) for o in outcomes]) for side in (first, second))
    with np.errstate(invalid="ignore"):
        # Outcomes of one ratio must not be told apart by its last digit: a lucky few would win the training.
        ratios = np.round(np.nan_to_num(p - q, nan=0.0, posinf=1e9, neginf=-1e9), 9)
    keys = np.array([_key(o) for o in outcomes])

    def score(values: NDArray[Any]) -> Floats:
        found = _names(values)
        place = np.clip(np.searchsorted(keys, found), 0, len(keys) - 1)
        return np.where(keys[place] == found, ratios[place], 0.0)

    return score


def _key(outcome: Any) -> Any:
    return float(outcome) if isinstance(outcome, int | float | Fraction) else str(outcome)


def _names(values: NDArray[Any]) -> NDArray[Any]:
    """Outcomes as numbers or texts that compare: rows of several numbers as texts."""
    if values.ndim == 1:
        return values.astype(np.float64) if values.dtype.kind in "biuf" else values.astype(str)
    rows, place = np.unique(values, axis=0, return_inverse=True)
    return np.array([str(tuple(row)) for row in rows.tolist()])[place.reshape(-1)]


def _lower(train: list[Floats], test: list[Floats], delta: float, risk: float) -> float:
    """The bound from the test draws at the event chosen on the training draws."""
    best, chosen = -math.inf, (1, 0, math.inf)
    for sign, first in ((1, 0), (1, 1), (-1, 0), (-1, 1)):
        a, b = (np.sort(sign * train[k]) for k in (first, 1 - first))
        levels = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.0, 1.0, LEVELS)))
        p = 1 - np.searchsorted(a, levels) / len(a)
        q = 1 - np.searchsorted(b, levels) / len(b)
        # What the exact intervals will cost is foreseen by two of their standard deviations.
        spread = 2.6
        least = p - spread * np.sqrt(np.maximum(p * (1 - p), 1 / len(a)) / len(a)) - delta
        most = q + spread * np.sqrt(np.maximum(q * (1 - q), 1 / len(b)) / len(b)) + 4 / len(b)
        hopes = np.where(least > 0, np.log(np.maximum(least, 1e-300) / most), -math.inf)
        i = int(np.argmax(hopes))
        if hopes[i] > best:
            best, chosen = float(hopes[i]), (sign, first, float(levels[i]))
    sign, first, level = chosen
    hits = [int(np.count_nonzero(sign * s >= level)) for s in (test[first], test[1 - first])]
    least_p = _clopper(hits[0], len(test[first]), risk / 2, lower=True)
    most_q = _clopper(hits[1], len(test[1 - first]), risk / 2, lower=False)
    return max(0.0, math.log((least_p - delta) / most_q)) if least_p > delta else 0.0


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
    sides = [dict(zip(law.outcomes, law.masses.tolist(), strict=True)) for law in known]
    outcomes = list({*sides[0], *sides[1]})
    p, q = (np.array([side.get(o, 0.0) for o in outcomes]) for side in sides)
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
