"""The last iterate of noisy gradient descent on convex losses, all earlier iterates kept secret.

    x ← Π(x − learning_rate·(∇r(x) + (1/batch)·Σ ∇fᵢ(x) + N(0, noise²·I)))    for `steps` steps,

the sum over the units i of a batch. `population` units are dealt into population/batch fixed batches, which
take turns. Π projects onto a convex set of `diameter`, if there is one; r depends on no unit.

Assumptions. Every fᵢ has gradients of norm at most `lipschitz`; whatever the data, the objective of a step,
r + (1/batch)·Σfᵢ, is convex with `strong_convexity` m and `smoothness` M; learning_rate η ≤ 2/M. A step then
leaves at most c = max(|1 − ηm|, |1 − ηM|) ≤ 1 of a distance, and one unit moves the outcome of a step that
uses it by at most s = η·lipschitz/batch, or by twice that under replace. Under add_remove the divisor `batch`
is public and stays as it is when a unit comes, and m and M hold of the sum with that unit, too.

Theorem (Feldman, Mironov, Talwar and Thakurta 2018, Altschuler and Talwar 2022: Rényi divergences; Bok, Su
and Altschuler 2024: trade-off curves). Let z₀ bound the distance of two runs at some step: 0 at the start,
the diameter at any. Let sₖ be s at the steps that use the unit and 0 elsewhere. For any 0 ≤ aₖ ≤ c·zₖ₋₁ + sₖ
with zₖ = c·zₖ₋₁ + sₖ − aₖ that end at z = 0, the last iterate is μ-Gaussian private, μ² = Σaₖ²/(η·noise)².
Here aₖ = sₖ is plain composition; the best aₖ have a closed form (`contraction`). With one batch and no set,

    μ² = (s/(η·noise))² · (1 + c)/(1 − c) · (1 − c^steps)/(1 + c^steps),

attained by linear fᵢ and r = m|x|²/2 where 1 − ηm = c: a last iterate that is Gaussian. The worst batch
is the one used last; `after` says that every unit's was last used at least so many steps before the end (say,
as public data came last). Several `units` at once are worst in the batches used last, as many as these hold:
sₖ = s·min(units, batch) for ⌈units/batch⌉ steps of each turn; the bound for all of them in one batch holds as
well, and the lesser counts. Proofs in docs/amplification/iteration.md.

No iterate but the last may be released: with checkpoints only composition holds, and they are refused.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import MOST_LOSS
from dalenius.losses.gaussian import GaussianDP
from dalenius.losses.iteration.contraction import Course, geometric, root
from dalenius.losses.iteration.descent import Descent
from dalenius.losses.loss import Loss
from dalenius.profiles.balls import ball
from dalenius.profiles.gaussian_pairs import ShiftPair
from dalenius.profiles.pair import Worst

PRECISION, DIGITS, BRIEF = 512, 200, 60
"""Bits of the working precision, as powers of a c next to 1 are taken, of μ, and of one that is attained."""
LEAST = Fraction(1, 10**12)
"""The least μ that is stated: steps with c = 0 after the last use leave nothing."""


class LastIterate(Descent, kind="last_iterate"):
    """The last iterate of noisy gradient descent, and no other: see the module for every argument."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mu > MOST_LOSS:
            raise InvalidArgument("noise is so low that it hides nothing.", remedy="Choose more noise.")

    @cached_property
    def mu(self) -> Fraction:
        """The Gaussian privacy of the last iterate, rounded up."""
        with workprec(PRECISION):
            return max(root(self._squared(), DIGITS, up=True), LEAST)

    @property
    def _shift(self) -> Fraction:
        """s/(η·noise), of one unit."""
        return (2 if self.relation == "replace" else 1) * self.lipschitz / self._size / self.noise

    def _squared(self) -> arb:
        """μ², by the batches that the units fill or as if one held them all."""
        far = None if self.diameter is None else self.diameter / (self.learning_rate * self.noise)
        ways = {(self._filled, self._held), (1, self.units)}
        found: arb | None = None
        for width, units in ways:
            course = Course(self.contraction, self.cycle, self.after, width)
            squared = course.least(self.uses - 1, far, self._shift * units)
            found = squared if found is None or squared < found else found
        assert found is not None
        return found

    @property
    def tight(self) -> bool:
        """Where one batch is used at every step, without a set, and 1 − ηm is c."""
        return self.cycle == 1 and self.diameter is None and self._slow and self.mu > LEAST

    @property
    def _slow(self) -> bool:
        return 1 - self.learning_rate * self.strong_convexity == self.contraction

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((ShiftPair(self.mu), 1),),)

    def attained(self) -> Loss | None:
        """Linear fᵢ and r = m|x|²/2, the units of one batch: a last iterate that is Gaussian."""
        if self.diameter is not None or not self._slow:
            return None
        with workprec(PRECISION):
            moved = geometric(self.contraction, self.cycle, self.uses) * ball(self._shift * self._held)
            moved *= ball(self.contraction) ** self.after
            mu = root(moved**2 / geometric(self.contraction, 2, self.steps), BRIEF, up=False)
        return GaussianDP(mu, relation=self.relation) if mu >= Fraction(1, 10**6) else None

    def concentration(self) -> tuple[Fraction, Fraction]:
        """D_α ≤ αμ²/2, attained where the loss is tight."""
        return (self.mu**2 / 2, self.mu**2 / 2 if self.tight else Fraction(0))

    def enlarged(self, size: int) -> LastIterate:
        """The same for so many times as many units."""
        return replace(self, units=self.units * size)
