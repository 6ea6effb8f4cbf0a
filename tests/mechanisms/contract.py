"""`check_mechanism`: what every mechanism promises, tested the same way for all of them.

- the law: draws against `probabilities`, by chi-square, and none where the law has no mass;
- the loss: an independent evaluation of Σ (p − e^ε q)₊ on the worst case is never above the claim, and
  within a hundredth of it, at every ε and as the ε at the audit's δ;
- the audit: the adversary finds no more than the claim and at least nine tenths of the attainable;
- the error bars: the law's own coverage, no wider than it asks for, and as often in draws and in releases;
- JSON: reads back as the same value, and the receipt of a release names it and its loss.

Whatever an instance is spared is a reason in words, beside it: `loose` where the worst case does not attain
the claim (then `attained` says at which ε it does, and `share` how much of the ε at the audit's δ), `barless`
where releases have no error bars. A law too long to list is replaced by that of what is `Seen` of a draw.

False alarms: each statistical test below has probability at most 1e-7, but for the nine tenths, which is a
statement of power.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from dalenius.audits import audit
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.release import Release

ALARM = 1e-7
DRAWS = 100_000
TRIALS = 1_000_000
RELEASES = 200
EPSILONS = (0.0, 0.1, 0.5, 1.0)
FULL = 0.99
"""The share of a claim that counts as all of it: laws on a grid come no nearer."""

Truth = Callable[[Any], Any]


def check_mechanism(
    mechanism: Mechanism,
    *,
    truth: Truth = lambda value: value,
    seen: Mechanism | None = None,
    attained: tuple[float, ...] = EPSILONS,
    share: float = FULL,
    loose: str = "",
    barless: str = "",
    trials: int = TRIALS,
    audited: bool = True,
) -> None:
    """Check all of the above, or all but the audit.

    Args:
        mechanism: The mechanism.
        truth: Returns the answer without noise, one number for each that is released.
        seen: What stands for it where its law is too long to list.
        attained: At which ε the worst case attains the claim.
        share: How much of the claimed ε the worst case attains at the audit's δ, at least.
        loose: Why the worst case does not attain the claim.
        barless: Why releases have no error bars.
        trials: Draws a side of the audit.
        audited: Whether the audit is made.
    """
    assert bool(loose) == (attained != EPSILONS or share < FULL), "what is not attained has a reason"
    shown = seen or mechanism
    check_json(mechanism)
    check_law(shown)
    check_loss(shown, attained)
    if audited:
        check_audit(shown, share=share, trials=trials)
    check_error(mechanism, truth)
    check_releases(mechanism, truth, barless=barless)


@dataclass(frozen=True)
class Seen(Mechanism):
    """A mechanism whose draws are read by a function, and the law of what that gives."""

    mechanism: Mechanism
    read: Callable[[NDArray[Any]], NDArray[Any]]
    law: Callable[[Any], Law]

    @property
    def loss(self) -> Loss:
        return self.mechanism.loss

    def release(self, value: Any, **given: Any) -> Release:
        return self.mechanism.release(value, **given)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        return self.read(self.mechanism.sample(value, size))

    def worst_case(self) -> tuple[Any, Any]:
        return self.mechanism.worst_case()

    def probabilities(self, value: Any) -> Law:
        return self.law(value)


def check_json(mechanism: Mechanism) -> None:
    again = Mechanism.from_json(mechanism.to_json())
    assert again == mechanism
    assert again.to_json() == mechanism.to_json()
    receipt = mechanism.release(mechanism.worst_case()[0]).receipt
    assert (receipt.mechanism, receipt.loss) == (mechanism.to_json(), mechanism.loss)


def check_law(mechanism: Mechanism, draws: int = DRAWS) -> None:
    for value in mechanism.worst_case():
        law = mechanism.probabilities(value)
        assert law is not None, "without a law, say what is seen of a draw"
        assert abs(math.fsum(law.masses) - 1) <= law.rest + 1e-9
        assert chi_square(mechanism.sample(value, draws), law) > ALARM


def chi_square(values: NDArray[Any], law: Law) -> float:
    """At least the p-value of the draws under the law, where that is small; cells below 20 are merged.

    Pearson's statistic has a heavier tail than its limit. By convolution of Poisson cells of 20, of which
    there are 1 to 400, its tail where the limit has 1e-10 is 3.2e-8 or less: a thousand times is enough.
    """
    keys = {key(outcome): i for i, outcome in enumerate(law.outcomes)}
    found, times = np.unique(values, axis=0, return_counts=True)
    counts = np.zeros(len(law.masses) + 1)
    for outcome, count in zip(found.tolist(), times.tolist(), strict=True):
        counts[keys.get(key(outcome), len(law.masses))] += count
    if counts[-1] and len(values) * law.rest < ALARM / 1000:
        return 0.0
    expected = np.append(law.masses, law.rest) * len(values)
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    few = max(np.count_nonzero(expected < 20), int(np.searchsorted(np.cumsum(expected), 20)) + 1)
    counts, expected = (np.append(side[:few].sum(), side[few:]) for side in (counts, expected))
    if len(counts) < 2:
        return 1.0
    return min(1.0, 1000 * float(chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1)))


def key(outcome: Any) -> Any:
    """One outcome as something that compares equal to the same outcome drawn."""
    return tuple(outcome) if isinstance(outcome, list | tuple) else float(outcome)


def check_loss(mechanism: Mechanism, attained: tuple[float, ...] = EPSILONS) -> None:
    """Σ (p − e^ε q)₊ over outcomes, both ways round."""
    first, second = (mechanism.probabilities(value) for value in mechanism.worst_case())
    assert first is not None and second is not None
    for epsilon in sorted({*EPSILONS, *attained}):
        claim = mechanism.loss.delta(epsilon)
        found = max(divergence(first, second, epsilon), divergence(second, first, epsilon))
        assert found <= claim.upper + 1e-9
        if epsilon in attained:
            assert found >= FULL * claim.lower - 1e-9


def divergence(first: Law, second: Law, epsilon: float) -> float:
    """The hockey-stick divergence of two finite laws."""
    p, q = (dict(zip(law.outcomes, law.masses.tolist(), strict=True)) for law in (first, second))
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(outcome, 0.0)) for outcome, mass in p.items())


def check_audit(mechanism: Mechanism, *, share: float = 0.0, trials: int = TRIALS) -> None:
    """With more draws where fewer do not show enough."""
    for some in (trials // 20, trials // 5, trials, 3 * trials):
        found = audit(mechanism, confidence=1 - ALARM / 4, trials=some)
        assert found.holds, str(found)
        assert found.attainable is not None
        assert share * found.claim.upper - 1e-9 <= found.attainable <= found.claim.upper + 1e-9, str(found)
        if found.epsilon_lower >= 0.9 * found.attainable:
            return
    raise AssertionError(str(found))


def check_error(mechanism: Mechanism, truth: Truth = lambda value: value, draws: int = DRAWS) -> None:
    """By its law `error` is the least that misses no more often than it says; draws miss as often."""
    for alpha in (0.05, 0.3) if mechanism.error() is not None else ():
        reach = mechanism.error(alpha)
        assert reach is not None
        for value in mechanism.worst_case():
            center, law = np.ravel(np.asarray(truth(value), dtype=float)), mechanism.probabilities(value)
            chance = alpha
            if law is not None:
                off = np.abs(np.array([float(o) for o in law.outcomes]) - center)
                chance = float(law.masses[off > reach * (1 + 1e-12)].sum()) + law.rest
                assert chance <= alpha < float(law.masses[off >= reach * (1 - 1e-12)].sum()) + law.rest
            off = np.abs(np.asarray(mechanism.sample(value, draws), dtype=float).reshape(draws, -1) - center)
            for missed in np.count_nonzero(off > reach * (1 + 1e-12), axis=0).tolist():
                assert binom.sf(missed - 1, draws, chance) > ALARM / len(center)


def check_releases(mechanism: Mechanism, truth: Truth, *, barless: str = "") -> None:
    """The bars that releases show miss no more often than they say; a row that shows none misses nothing."""
    for value in mechanism.worst_case():
        found = [mechanism.release(value) for _ in range(1 if barless else RELEASES)]
        measure, sure = found[0].measures[0], found[0].confidence
        assert (f"{measure}_low" in found[0].columns) != bool(barless), "no bars have a reason"
        if barless:
            assert mechanism.error() is None
            continue
        assert sure is not None
        for row, center in enumerate(np.ravel(np.asarray(truth(value), dtype=float)).tolist()):
            missed = sum(_misses(one, measure, row, center) for one in found)
            assert binom.sf(missed - 1, RELEASES, float(1 - sure)) > ALARM


def _misses(found: Release, measure: str, row: int, center: float) -> bool:
    if row >= len(found):
        return False
    low, high = (found.columns[f"{measure}_{end}"][row] for end in ("low", "high"))
    slack = 1e-9 * max(1.0, abs(center))
    return low is not None and not float(low) - slack <= center <= float(high) + slack
