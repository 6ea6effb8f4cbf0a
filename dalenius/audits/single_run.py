"""`one_run`: a lower bound on ε from how many guesses about one training run were right.

A claim is rejected where no mechanism that keeps it would have so many right guesses but with probability
below 1 − confidence (`guessing`). The lower bound is the largest ε, at δ, among the rejected members of a
family: the claim with more or less noise. Members are nested, each keeps what a less noisy one keeps; so if
the truth is a member and the bound exceeds its ε, then a bound on the truth's own tail was below 1 −
confidence: the error rate is at most that, however many members are tried. Where a claim has no noise to
vary, the family is everything that is (ε, δ)-private at the one δ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dalenius.audits.families import read_claim
from dalenius.audits.guessing import lines, most_right
from dalenius.errors import InvalidArgument
from dalenius.losses.bound import Bound
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.losses.shrinking import shrunk
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

FINENESS = 256
"""Noise is varied by factors of 2^(1/256), about a quarter of a percent."""
OCTAVES = 8
"""Noise is varied up to 2^8 times, and down to 2^−8."""
USUAL_DELTA = Fraction(1, 10**5)


@dataclass(frozen=True)
class TrainingAudit:
    """What the guesses about one run show."""

    epsilon_lower: float
    claim: Bound
    delta: float
    confidence: Fraction
    canaries: int
    guesses: int
    right: int
    violated: bool
    family: str

    def __str__(self) -> str:
        verdict = "IS BROKEN" if self.violated else "was not refuted"
        return (
            f"the claim epsilon {self.claim.upper:.4g} at delta {self.delta:.3g} {verdict}: {self.right} of "
            f"{self.guesses} guesses right, so epsilon is at least {self.epsilon_lower:.4g} with confidence "
            f"{float(self.confidence):g} ({self.family})"
        )


def one_run(
    right: int,
    guesses: int,
    canaries: int,
    claim: Loss,
    *,
    delta: Number | None = None,
    confidence: Number = 0.95,
) -> TrainingAudit:
    """Judge `right` guesses out of `guesses` about `canaries`, each in with probability 1/2 by its own coin.

    The guesses must follow from the outcome alone, and their number from nothing that the run showed. "Out"
    is what the relation of the claim says: not there, or replaced, or zeroed.
    """
    read_claim(claim)
    all_of_them = numbers.count(canaries, "canaries")
    made = numbers.count(guesses, "guesses", most=all_of_them)
    hits = numbers.count(right, "right", least=0, most=made)
    sure = numbers.confidence(confidence)
    failure = usual_delta(claim) if delta is None else numbers.delta(delta)
    base, name = family(claim, failure)

    def rejected(member: Loss) -> bool:
        return most_right(hits, made, all_of_them, lines(member, all_of_them)) < 1 - sure

    hopeless = _coins(hits, made) >= 1 - sure
    found = None if hopeless else _largest(base, rejected)
    return TrainingAudit(
        0.0 if found is None else max(0.0, found.epsilon(failure).lower),
        claim.epsilon(failure),
        float(failure),
        sure,
        all_of_them,
        made,
        hits,
        not hopeless and rejected(claim),
        name,
    )


def usual_delta(claim: Loss) -> Fraction:
    """The claim's own δ; none for a pure claim."""
    if isinstance(claim, Approximate):
        return claim.failure
    return Fraction(0) if claim.epsilon(0).upper < float("inf") else USUAL_DELTA


def _coins(right: int, guesses: int) -> float:
    """The chance of so many right guesses where the outcome tells nothing: every claim allows this."""
    from scipy.stats import binom

    return float(binom.sf(right - 1, guesses, 0.5))


def family(claim: Loss, delta: Fraction) -> tuple[Loss, str]:
    """A loss whose noise can be varied, and the family in words."""
    if isinstance(claim, Approximate) and claim.failure == delta:
        return claim, "any training that is private at this delta"
    if shrunk(claim, Fraction(2)) is not None:
        return claim, "the claim with more or less noise"
    epsilon = claim.epsilon(delta).upper
    if not 0 < epsilon < float("inf"):
        raise InvalidArgument(
            f"The claim has no finite epsilon above 0 at delta {float(delta):.3g}.",
            remedy="Pass a delta at which the claim says something.",
        )
    return Approximate(
        epsilon, delta=delta, relation=claim.relation
    ), "any training that is private at this delta"


def with_noise(base: Loss, times: float) -> Loss | None:
    """The member of the family with so many times the noise."""
    factor = Fraction(f"{times:.6g}")
    if isinstance(base, Approximate):
        epsilon = Fraction(f"{float(base.limit / factor):.6g}")
        return Approximate(epsilon, delta=base.failure, relation=base.relation)
    return base if factor == 1 else shrunk(base, factor)


def _member(base: Loss, step: int) -> Loss | None:
    return with_noise(base, 2 ** (step / FINENESS)) if step else base


def _largest(base: Loss, rejected: Callable[[Loss], bool]) -> Loss | None:
    """The rejected member with the least noise, to one step of noise; None where no member is rejected."""

    def test(step: int) -> bool:
        member = _member(base, step)
        return member is not None and rejected(member)

    away = -FINENESS if test(0) else FINENESS
    wanted, step = away > 0, 0
    while test(step) != wanted:
        step += away
        if abs(step) > OCTAVES * FINENESS:
            return None if wanted else _member(base, step - away)
    kept, lost = (step, step - away) if wanted else (step - away, step)
    while kept - lost > 1:
        middle = (kept + lost) // 2
        kept, lost = (middle, lost) if test(middle) else (kept, middle)
    return _member(base, kept)
