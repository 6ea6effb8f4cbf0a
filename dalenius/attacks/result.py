"""`Attack`: what an attacker achieved, beside what guessing gives.

    >>> found = Attack.counted("guess of a coin", 900, 1000, baseline=0.5)
    >>> print(found)
    guess of a coin: right in 90% of 1,000 trials (87.3% to 92.3% at confidence 0.99), guessing gives 50%.
    >>> round(found.advantage, 3)
    0.8

The advantage is the part of what guessing misses that the attacker gets: (success − baseline)/(1 − baseline).
Where two cases are equally likely and the baseline is one half, it is true over false positives, of which no
attack on a release can have more than `loss.advantage()`. The interval is that of Clopper and Pearson (1934):
it covers the rate of an attack whose trials are independent with probability `confidence` or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dalenius.figures import Figure

CONFIDENCE = 0.99
"""How sure an interval is, where nothing else is asked for."""


@dataclass(frozen=True)
class Attack:
    """A rate of success in `trials`, its interval, and what guessing gives; `bound` caps the advantage."""

    name: str
    success: float
    baseline: float
    low: float
    high: float
    trials: int
    confidence: float = CONFIDENCE
    bound: float | None = None
    """The most advantage that what was spent allows, from the loss; None where nobody counted."""
    figure: Figure | None = None
    details: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def counted(
        name: str,
        hits: int,
        trials: int,
        *,
        baseline: float,
        confidence: float = CONFIDENCE,
        bound: float | None = None,
        figure: Figure | None = None,
        details: Mapping[str, float] | None = None,
    ) -> Attack:
        """The report of an attack that was right `hits` times in `trials`."""
        from scipy.stats import binomtest

        ends = binomtest(hits, trials).proportion_ci(confidence, method="exact")
        low, high = float(ends.low), float(ends.high)
        known = MappingProxyType(dict(details or {}))
        return Attack(name, hits / trials, baseline, low, high, trials, confidence, bound, figure, known)

    @property
    def advantage(self) -> float:
        """The part of what guessing misses that the attacker gets; below 0 for worse than guessing."""
        return self._above(self.success)

    @property
    def advantage_low(self) -> float:
        """The advantage at the lower end of the interval."""
        return self._above(self.low)

    @property
    def within_bound(self) -> bool:
        """Whether the measured advantage, at its lower end, keeps to what the loss allows."""
        return self.bound is None or self.advantage_low <= self.bound

    def _above(self, rate: float) -> float:
        return (rate - self.baseline) / (1 - self.baseline) if self.baseline < 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the keys are stable. The figure is left out."""
        names = ("name", "success", "baseline", "advantage", "low", "high", "confidence", "trials", "bound")
        return {name: getattr(self, name) for name in names} | {"details": dict(self.details)}

    def __str__(self) -> str:
        allowed = "" if self.bound is None else f"; the loss allows an advantage of {self.bound:.3g}"
        return (
            f"{self.name}: right in {_percent(self.success)} of {self.trials:,} trials "
            f"({_percent(self.low)} to {_percent(self.high)} at confidence {self.confidence:g}), "
            f"guessing gives {_percent(self.baseline)}{allowed}."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
