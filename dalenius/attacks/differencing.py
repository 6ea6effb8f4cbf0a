"""Differencing: two answers about many people that differ by one person tell that person's secret.

A query function takes a group, as a mask of people, and gives how many in it have the secret, or None for a
group it will not answer. Refusing small groups does not help. What a refused group would have said follows
from allowed ones:

    complement   q(person) = q(everyone) − q(everyone else)
    tracker      q(person) = q(person or T) + q(person or not T) − q(T) − q(not T), T being about half of all
                 (Denning, Denning and Schwartz 1979): against rules that refuse nearly everyone too

`suppressed` is such a rule. Against noisy answers the same differences are taken. Then each person is guessed
by the side of one half on which the difference falls, and no guess can have more advantage than the loss of
all answers together allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.attacks.picture import apart
from dalenius.attacks.result import Attack
from dalenius.errors import InvalidArgument

Mask = NDArray[np.bool_]
Ask = Callable[[Mask], float | None]
"""How many of a group have the secret; None where the answer is refused."""


def suppressed(ask: Ask, least: int, *, both_sides: bool = False) -> Ask:
    """The query function with groups and counts below `least` refused; `both_sides`: complements too."""

    def answer(group: Mask) -> float | None:
        size = int(group.sum())
        if size < least or (both_sides and len(group) - size < least):
            return None
        count = ask(group)
        return None if count is None or count < least else count

    return answer


def difference(ask: Ask, person: int, people: int, *, seed: int | None = None) -> float | None:
    """About 1 if the person has the secret, 0 if not, in the way that asks least; None if refused."""
    for plus, minus in _ways(person, people, np.random.default_rng(seed)):
        found = [ask(group) for group in (*plus, *minus)]
        known = [answer for answer in found if answer is not None]
        if len(known) == len(found):
            return sum(known[: len(plus)]) - sum(known[len(plus) :])
    return None


def by_difference(ask: Ask, secret: ArrayLike, targets: Sequence[int], *, seed: int | None = None) -> Attack:
    """Attack each target through one query function, and count how many secrets are read right.

    A target whom no allowed question reaches is guessed at as everyone is who only knows the share.
    """
    bits = np.asarray(secret, bool)
    found = [difference(ask, person, len(bits), seed=seed) for person in targets]
    usual, truth = float(bits.mean() > 0.5), bits[list(targets)]
    said = np.array([usual if one is None else one for one in found])
    report = tallied((said > 0.5).tolist(), truth, details={"refused": float(sum(x is None for x in found))})
    return replace(report, figure=apart("Secrets from differences of counts", truth, said))


def tallied(
    guesses: Sequence[bool],
    truth: ArrayLike,
    *,
    bound: float | None = None,
    baseline: float | None = None,
    confidence: float = 0.99,
    details: dict[str, float] | None = None,
) -> Attack:
    """The report of guesses beside the truth; by itself, the baseline is the more frequent truth's share."""
    bits = np.asarray(truth, bool)
    if len(guesses) != len(bits) or not len(bits):
        raise InvalidArgument("There must be one guess for each target.", remedy="Pass one target or more.")
    share = float(bits.mean())
    return Attack.counted(
        "differencing",
        int(np.sum(np.asarray(guesses, bool) == bits)),
        len(bits),
        baseline=max(share, 1 - share) if baseline is None else baseline,
        confidence=confidence,
        bound=bound,
        details=details,
    )


def _ways(
    person: int, people: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[Mask, ...], tuple[Mask, ...]]]:
    """Groups whose counts add up to the person's secret: those to add, and those to take away."""
    everyone = np.ones(people, bool)
    alone = np.arange(people) == person
    yield (alone,), ()
    yield (everyone,), (~alone,)
    half = rng.permutation(people) < people // 2
    # Of the two halves, the person is added to the one that lacks them; the other cancels.
    yield (half | alone, ~half | alone), (half, ~half)
