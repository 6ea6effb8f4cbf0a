"""`Recorder`, `replay`: what a training loop did at every step, to be held against what it declares.

A guessing audit sees only outcomes. Many mistakes of a private training loop leave hardly a trace in them,
and are plain to whoever looks inside: who was sampled, what each example added to the sum after clipping, the
sum, and what was released. The noise is not asked for but computed, from what was released and the sum. All
of this is secret, as secret as the data: it is for tests on public or made-up examples, and nothing of it may
be published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import Floats
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class Finding:
    """Something that the loop did and its declared loss does not cover."""

    kind: str
    text: str
    step: int | None = None

    def __str__(self) -> str:
        where = "" if self.step is None else f" (step {self.step})"
        return f"{self.kind}{where}: {self.text}"


@dataclass(frozen=True, eq=False)
class Step:
    """Who was in the batch, the norms of what they added, the sum of it, and the noise on the sum."""

    sampled: NDArray[np.int64]
    norms: Floats
    unexplained: float
    total: Floats
    noise: Floats
    rounding: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """All steps of a run over so many examples, each to add at most `clip` in L2 norm."""

    examples: int
    clip: float
    steps: tuple[Step, ...]


@dataclass(eq=False)
class Recorder:
    """Call `step` once in every step of a training loop; `recorded` is what it saw."""

    examples: int
    clip: Number
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.examples = numbers.count(self.examples, "examples")
        self.clip = float(numbers.positive(self.clip, "clip"))

    def step(
        self,
        *,
        sampled: ArrayLike,
        contributions: ArrayLike,
        total: ArrayLike,
        released: ArrayLike,
        divisor: float = 1,
    ) -> None:
        """A row of `contributions` for each sampled example, their sum before noise, and what was released.

        `released` is (total + noise)/`divisor`: the divisor, such as the expected batch size, is applied
        once.
        """
        who = np.asarray(sampled, dtype=np.int64).reshape(-1)
        before = np.asarray(total, dtype=np.float64).reshape(-1)
        after = np.asarray(released, dtype=np.float64).reshape(-1) * float(divisor)
        rows = np.asarray(contributions, dtype=np.float64).reshape(-1, len(before))
        if after.shape != before.shape or (len(who) and not 0 <= who.min() <= who.max() < self.examples):
            raise InvalidArgument(
                "The released vector and the sum differ in length, or a sampled example is out of range.",
                remedy=f"Pass vectors of one length, and numbers of examples from 0 to {self.examples - 1}.",
            )
        rounding = 8 * float(np.finfo(np.float64).eps * max(np.abs(after).max(), np.abs(before).max()))
        norms = np.linalg.norm(rows, axis=1)
        unexplained = float(np.linalg.norm(before - rows.sum(axis=0)))
        self.steps.append(Step(who, norms, unexplained, before, after - before, rounding))

    def recorded(self) -> Recorded:
        """What was seen so far, as a value."""
        return Recorded(self.examples, float(self.clip), tuple(self.steps))


@dataclass(frozen=True, eq=False)
class Replay:
    """A recorded run, and what was found in it."""

    recorded: Recorded
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        steps = f"{len(self.recorded.steps)} steps recorded"
        return "\n".join([f"{steps}, {len(self.findings)} findings", *map(str, self.findings)])


def replay(
    loop: Callable[[Recorder], Any],
    *,
    examples: int,
    clip: Number,
    declared: Loss,
    false_alarm: Number = 1e-6,
) -> Replay:
    """Run `loop` with a recorder, and hold what it did against the declared loss.

    A correct loop has any finding with probability at most `false_alarm`. None found is no proof of anything.
    """
    from dalenius.audits.replay_checks import check

    recorder = Recorder(examples, clip)
    loop(recorder)
    recorded = recorder.recorded()
    return Replay(recorded, check(recorded, declared, false_alarm=false_alarm))
