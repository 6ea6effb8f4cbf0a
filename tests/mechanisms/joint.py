"""An attack on mechanisms that release several sums at once, by the exact joint law of their worst case."""

from __future__ import annotations

import math

from contract import ALARM, key
from scipy.special import betaincinv

from dalenius.mechanisms.mechanism import Mechanism


def attack(mechanism: Mechanism, *, epsilon: float, delta: float = 0.0, trials: int = 200_000) -> float:
    """At least this ε at δ, wrong with probability 1e-7.

    The event is where the likelihood ratio is e^epsilon or more, fixed by the laws before any draw; Clopper
    and Pearson bound its two probabilities.
    """
    pair = mechanism.worst_case()
    laws = [mechanism.probabilities(value) for value in pair]
    assert laws[0] is not None and laws[1] is not None
    p, q = ({key(o): m for o, m in zip(law.outcomes, law.masses.tolist(), strict=True)} for law in laws)
    event = {o for o, mass in p.items() if mass >= math.exp(epsilon) * q.get(o, 0.0) * (1 - 1e-9)}
    hits = [sum(key(row) in event for row in mechanism.sample(value, trials).tolist()) for value in pair]
    least = float(betaincinv(hits[0], trials - hits[0] + 1, ALARM / 2)) if hits[0] else 0.0
    most = float(betaincinv(hits[1] + 1, trials - hits[1], 1 - ALARM / 2))
    return math.log((least - delta) / most) if least > delta else 0.0
