"""`Specimen`: a broken mechanism beside its correct twin, and `table`: which are caught, and at what price.

how         what `broken` and `twin` are                      what is asked
black box   a function, each call of which is one draw        `audit(function, inputs=…, claim=…)`
curve       a `Mechanism`, whose `loss` is the claim          `audit(mechanism)`
gray box    a training loop that reports to a `Recorder`,     `replay(loop, …)`
            over `inputs[0]` examples clipped to norm 1
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from dalenius.audits.claims import audit
from dalenius.audits.replaying import replay
from dalenius.audits.report import Audit
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

SURE = 1 - Fraction(1, 10**6)
"""The confidence with which a mechanism is called broken."""

How = Literal["black box", "curve", "gray box"]


@dataclass(frozen=True)
class Verdict:
    """What one attack came to; draws are those on each of two inputs, of a training loop one run."""

    caught: bool
    draws: int
    shown: float
    """The ε at `delta` of any mechanism that was seen to do this is at least so much."""
    evidence: float
    event: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Specimen:
    """A broken mechanism that makes a claim, and a twin that keeps it. See the module."""

    name: str
    wrong: str
    source: str
    broken: Any
    twin: Any
    claim: Loss
    inputs: Sequence[Any] = (0,)
    neighbors: Callable[[Any], Iterable[Any]] | None = None
    delta: Number = 0
    trials: int = 3_000
    how: How = "black box"
    leaks: float | None = None
    """The exact ε of the broken one at `delta` between the worst of the inputs given, where it is known."""

    def attack(
        self, subject: Any, *, trials: int | None = None, confidence: Number = SURE, early: bool = False
    ) -> Verdict:
        """Attack `broken` or `twin`; `early` stops as soon as the claim is broken."""
        if self.how == "gray box":
            return self._replayed(subject, confidence)
        return _read(self.audit(subject, trials=trials, confidence=confidence, early=early))

    def audit(
        self, subject: Any, *, trials: int | None = None, confidence: Number = SURE, early: bool = False
    ) -> Audit:
        """The same as an `Audit`, of all but training loops."""
        claimed = self.claim.epsilon(self.delta).upper
        where: dict[str, Any] = {"inputs": self.inputs, "neighbors": self.neighbors, "claim": self.claim}
        return audit(
            subject,
            **(where if self.how == "black box" else {}),
            delta=self.delta,
            trials=trials or self.trials,
            confidence=confidence,
            until=claimed * (1 + 1e-9) if early else math.inf,
        )

    def _replayed(self, loop: Any, confidence: Number) -> Verdict:
        risk = 1 - numbers.exact(confidence, "confidence")
        found = replay(loop, examples=self.inputs[0], clip=1, declared=self.claim, false_alarm=risk).findings
        caught = bool(found)
        return Verdict(
            caught, 1, 0.0, float(1 / risk) if caught else 1.0, "; ".join(map(str, found)) or "none"
        )


def _read(found: Audit) -> Verdict:
    return Verdict(
        found.violated,
        found.trials,
        found.epsilon_any,
        found.evidence,
        f"{found.score}: {found.event}",
    )


@dataclass(frozen=True)
class Row:
    """What the attack on a broken one found, at what price in CPU seconds, and the verdict on its twin."""

    name: str
    how: str
    caught: bool
    draws: int
    seconds: float
    shown: float
    evidence: float
    event: str
    twin_rejected: bool
    twin_evidence: float


def table(specimens: Iterable[Specimen], *, confidence: Number = SURE, early: bool = True) -> list[Row]:
    """One row for each: both are attacked once, the broken one until it is caught if `early`."""
    return [_row(specimen, confidence, early) for specimen in specimens]


def _row(specimen: Specimen, confidence: Number, early: bool) -> Row:
    start = time.process_time()
    found = specimen.attack(specimen.broken, confidence=confidence, early=early)
    seconds = time.process_time() - start
    twin = specimen.attack(specimen.twin, confidence=confidence)
    return Row(
        name=specimen.name,
        how=specimen.how,
        caught=found.caught,
        draws=found.draws,
        seconds=seconds,
        shown=found.shown,
        evidence=found.evidence,
        event=found.event,
        twin_rejected=twin.caught,
        twin_evidence=twin.evidence,
    )
