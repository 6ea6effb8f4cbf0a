"""`Audit`: the adversary's report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.losses.bound import Bound


@dataclass(frozen=True)
class Audit:
    """What an adversary found. An audit that finds nothing is no proof."""

    epsilon_lower: float
    """ε at `delta` is at least this, with `confidence`, in the `family` that is named."""
    epsilon_any: float
    """The same for any mechanism whatever: it is not (ε, delta)-private for any smaller ε."""
    claim: Bound
    """ε at `delta` by the claim."""
    attainable: float | None
    """The ε of the pair of inputs at `delta`, from its exact law where that is known."""
    delta: float
    confidence: Fraction
    trials: int
    """Draws on each of the two inputs."""
    family: str
    """Among which mechanisms `epsilon_lower` holds: any, or those of the claim's kind with other noise."""
    score: str
    """By what draws were ranked."""
    violated: bool
    """Whether the claim is rejected."""
    evidence: float
    """The most that betting 1 against the claim came to: a true one lets it reach k with 1/k at most."""
    event: str
    """What tells the two inputs apart best."""

    @property
    def holds(self) -> bool:
        """Whether the claim survived."""
        return not self.violated

    def __str__(self) -> str:
        verdict = "IS BROKEN" if self.violated else "survives"
        able = "" if self.attainable is None else f", attainable {self.attainable:.4g}"
        return (
            f"the claim epsilon {self.claim.upper:.4g} at delta {self.delta:.3g} {verdict}: at least "
            f"{self.epsilon_lower:.4g} with confidence {_percent(self.confidence)}{able} "
            f"for {self.family} ({self.trials:,} draws a side, {self.score}, evidence {self.evidence:.2g})"
        )


def _percent(confidence: Fraction) -> str:
    digits = max(0, math.ceil(-math.log10(max(float(1 - confidence), 1e-300))) - 2)
    return f"{100 * float(confidence):.{digits}f} %"
