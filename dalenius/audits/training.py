"""`audit_training`: plant canaries by coin flips, train once, guess which were in, count what is right.

Each of m canaries (examples made to leave a trace) takes part in the training with probability 1/2. The
training gives each a score, larger where it looks as if it had been in, from its outcome alone. The r/2
highest are guessed to be in, the r/2 lowest out. `one_run` says what the number of right guesses shows.

How many guesses? Few are nearly all right but weigh little; many are right little more than half of the
time. The number is fixed before the run, from the claim: the one that would refute the largest member of
the claim's family if scores told as much as the claimed curve allows. Up to half as many again are made
where fewer, all of them right, could not refute the claim itself. The number decides the power, never the
soundness.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.audits.families import read_claim
from dalenius.audits.guessing import Lines, lines, most_right
from dalenius.audits.single_run import TrainingAudit, family, one_run, usual_delta, with_noise
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import Floats
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

Training = Callable[[NDArray[np.bool_]], ArrayLike]
"""Trains with the canaries that are marked, and gives each of all of them a score."""
SHARES = (0.02, 0.04, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.5, 1.0)
"""Of the canaries: the numbers of guesses that are weighed."""
FACTORS = (2.0, 1.7, 1.5, 1.4, 1.3, 1.2, 1.1)
"""Times the claimed noise: the members that are to be refuted, one after the other."""
FEW_KNOTS = 13
CLOSE = 1.5
"""So many times the most telling number of guesses are made if they can refute the claim and fewer cannot."""


def audit_training(
    train: Training,
    canaries: int,
    *,
    claim: Loss,
    delta: Number | None = None,
    guesses: int | None = None,
    confidence: Number = 0.95,
    seed: int | None = None,
) -> TrainingAudit:
    """Run `train` once with about half of the canaries, and say what its scores show against `claim`.

    `train` must compute the scores from what the training releases, and never from which canaries are marked.
    The claim is about one canary more or less, as its relation says. `seed` fixes the coins, for tests.
    """
    total = numbers.count(canaries, "canaries", least=2)
    made = best_guesses(claim, total, confidence=confidence) if guesses is None else _even(guesses, total)
    included = np.random.default_rng(seed).random(total) < 0.5
    right = count_right(_scores(train(included.copy()), total), included, made)
    return one_run(right, made, total, claim, delta=delta, confidence=confidence)


def count_right(scores: Floats, included: NDArray[np.bool_], guesses: int) -> int:
    """How many are right, with half of the guesses "in" for the highest scores, half "out" for the lowest."""
    order, half = np.argsort(scores, kind="stable"), guesses // 2
    return int(np.sum(included[order[len(order) - half :]]) + np.sum(~included[order[:half]]))


def best_guesses(claim: Loss, canaries: int, *, confidence: Number = 0.95) -> int:
    """The number of guesses to fix before the run."""
    return _best(
        read_claim(claim), numbers.count(canaries, "canaries", least=2), numbers.confidence(confidence)
    )


@lru_cache(maxsize=256)
def _best(claim: Loss, canaries: int, confidence: Fraction) -> int:
    """The most telling number, or the next one with which the claim can be refuted."""
    numbers_of_guesses = sorted({max(2, 2 * int(share * canaries / 2)) for share in SHARES})
    full, risk = lines(claim, canaries), float(1 - confidence)
    best = _most_telling(numbers_of_guesses, claim, canaries, full, risk)
    close = [r for r in numbers_of_guesses if best <= r <= CLOSE * best]
    return next((r for r in close if most_right(r, r, canaries, full) < risk), best)


def _most_telling(left: list[int], claim: Loss, canaries: int, full: Lines, risk: float) -> int:
    """The number that refutes the largest member, when as many are right as one would expect."""
    right = {r: _expected(r, canaries, full) for r in left}
    base, best = family(claim, usual_delta(claim))[0], left[0]
    for factor in FACTORS:
        member = with_noise(base, factor)
        if member is None or not left:
            break
        said = lines(member, canaries, FEW_KNOTS)
        tails = {r: most_right(right[r], r, canaries, said) for r in left}
        best = min(left, key=tails.__getitem__)
        left = [r for r in left if tails[r] < risk]
    return best


def _expected(guesses: int, canaries: int, said: Lines) -> int:
    """Right guesses, on average, of scores on the curve: wrong + right = r/m, with right ≤ e^ε wrong + δ."""
    share = guesses / canaries
    wrong = max(0.0, float(np.max((share - np.array(said.delta)) / (1 + np.exp(said.epsilon)))))
    return int(guesses * (1 - wrong / share))


def _even(guesses: int, canaries: int) -> int:
    made = numbers.count(guesses, "guesses", least=2, most=canaries)
    if made % 2:
        raise InvalidArgument(
            f"{made} guesses cannot be half in and half out.", remedy=f"Choose guesses={made - 1}."
        )
    return made


def _scores(found: ArrayLike, canaries: int) -> Floats:
    scores = np.asarray(found, dtype=np.float64)
    if scores.shape != (canaries,) or np.isnan(scores).any():
        raise InvalidArgument(
            f"train must give one score for each of {canaries} canaries.",
            remedy="Return an array of so many numbers, none of them NaN.",
        )
    return scores
