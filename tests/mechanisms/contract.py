"""`check_mechanism`: what every mechanism promises, tested the same way for all of them.

- the law: draws against `probabilities`, by chi-square;
- the loss: an independent evaluation of Σ (p − e^ε q)₊ on the worst case is never above the claim, and
  where that is attained comes within a hundredth of it;
- the audit: the adversary finds no more than the claim and at least nine tenths of the attainable;
- the error bars: the law's own coverage, one-sided;
- JSON: reads back as the same value, and the receipt of a release names it.

False alarms: each statistical test below has probability at most 1e-7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binom, chi2

from dalenius.audits import audit
from dalenius.mechanisms.mechanism import Law, Mechanism

ALARM = 1e-7
DRAWS = 100_000
TRIALS = 1_000_000


def check_mechanism(
    mechanism: Mechanism, *, epsilons: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0), attained: bool = True
) -> None:
    """All of the above; not `attained` where the loss describes more than this mechanism."""
    check_json(mechanism)
    check_law(mechanism)
    check_loss(mechanism, epsilons, attained=attained)
    check_audit(mechanism)
    check_error(mechanism)


def check_json(mechanism: Mechanism) -> None:
    again = Mechanism.from_json(mechanism.to_json())
    assert again == mechanism
    assert again.to_json() == mechanism.to_json()


def check_law(mechanism: Mechanism, draws: int = DRAWS) -> None:
    for value in mechanism.worst_case():
        law = mechanism.probabilities(value)
        if law is None:
            continue
        assert abs(float(law.masses.sum()) - 1) <= law.rest + 1e-9
        assert chi_square(mechanism.sample(value, draws), law) > ALARM


def chi_square(values: Any, law: Law) -> float:
    """The p-value of the draws under the law, small cells merged."""
    keys = {key(outcome): i for i, outcome in enumerate(law.outcomes)}
    rows = values.tolist()
    counts = np.zeros(len(law.masses) + 1)
    for row in rows:
        counts[keys.get(key(row), len(law.masses))] += 1
    expected = np.append(law.masses, law.rest) * len(rows)
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    small = int(np.searchsorted(np.cumsum(expected), 20.0)) + 1
    counts = np.append(counts[:small].sum(), counts[small:])
    expected = np.append(expected[:small].sum(), expected[small:])
    wide = int(np.searchsorted(expected[1:], 10.0)) + 1
    counts = np.append(counts[:wide].sum(), counts[wide:])
    expected = np.append(expected[:wide].sum(), expected[wide:])
    if len(counts) < 2:
        return 1.0
    return float(chi2.sf(float(np.sum((counts - expected) ** 2 / expected)), len(counts) - 1))


def key(outcome: Any) -> Any:
    """One outcome as something that compares equal to the same outcome drawn."""
    return tuple(outcome) if isinstance(outcome, list | tuple) else float(outcome)


def check_loss(mechanism: Mechanism, epsilons: tuple[float, ...], *, attained: bool = True) -> None:
    """Σ (p − e^ε q)₊ over outcomes, both ways round."""
    laws = [mechanism.probabilities(value) for value in mechanism.worst_case()]
    if laws[0] is None or laws[1] is None:
        return
    for epsilon in epsilons:
        claim = mechanism.loss.delta(epsilon)
        found = max(divergence(laws[0], laws[1], epsilon), divergence(laws[1], laws[0], epsilon))
        assert found <= claim.upper + 1e-9
        if attained and mechanism.loss.tight:
            assert found >= 0.99 * claim.lower - 1e-9


def divergence(first: Law, second: Law, epsilon: float) -> float:
    """The hockey-stick divergence of two finite laws."""
    p, q = (dict(zip(law.outcomes, law.masses.tolist(), strict=True)) for law in (first, second))
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(outcome, 0.0)) for outcome, mass in p.items())


def check_audit(mechanism: Mechanism) -> None:
    found = audit(mechanism, confidence=1 - ALARM, trials=TRIALS)
    assert found.holds, str(found)
    if found.attainable is not None:
        assert found.attainable <= found.claim.upper + 1e-9
        assert found.lower >= 0.9 * found.attainable, str(found)


def check_error(mechanism: Mechanism, draws: int = DRAWS) -> None:
    """Error bars cover no less often than they say."""
    for alpha in (0.05, 0.3):
        reach = mechanism.error(alpha)
        if reach is None:
            return
        value = mechanism.worst_case()[0]
        off = np.abs(np.asarray(mechanism.sample(value, draws), dtype=float) - np.asarray(value, dtype=float))
        missed = int(np.count_nonzero(off.reshape(draws, -1)[:, 0] > reach * (1 + 1e-12)))
        assert binom.sf(missed - 1, draws, alpha) > ALARM
