"""A count with and without one person: exact and with small groups refused, and noisy under an account.

Each trial is a town of its own with an account of its own, all of which is spent on one person, whose secret
is a fair coin. So trials are independent, and the advantage measured is one that `loss.advantage()` bounds.
Whoever knows all others' secrets needs the first answer only, and attains the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.differencing import Mask, difference, suppressed, tallied
from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.figures import Figure, Series
from dalenius.ledger import Budget, Ledger
from dalenius.losses.loss import Loss
from dalenius.mechanisms import Laplace
from dalenius.privacy import Grid, Unit

PEOPLE, LEAST, TRIALS = 200, 10, 600
"""People of a town, the smallest group that is answered, and towns."""
EPSILON = Fraction(1)
OTHERS = (Fraction(1, 4), Fraction(1, 2), Fraction(2), Fraction(4))
"""Budgets that are tried for the picture, in a third as many towns."""


def demo(*, seed: int | None = None) -> tuple[Attack, Attack]:
    """Differencing with nobody counting, and under an account."""
    rng = np.random.default_rng(seed)
    counted, informed = under_account(EPSILON, trials=TRIALS, rng=rng)
    tried = {EPSILON: (counted, informed)} | {
        epsilon: under_account(epsilon, trials=TRIALS // 3, rng=rng) for epsilon in OTHERS
    }
    figure = _figure({epsilon: tried[epsilon] for epsilon in sorted(tried)})
    details = {"knowing all others": informed.success}
    return replace(exact(trials=TRIALS, rng=rng), figure=figure), replace(
        counted, figure=figure, details=details
    )


def exact(*, trials: int, rng: np.random.Generator) -> Attack:
    """Exact counts, small groups and nearly everyone refused."""
    found, truth = [], []
    for town in _towns(trials, rng):

        def ask(group: Mask, town: NDArray[np.int64] = town) -> float | None:
            return float(town[group].sum())

        # The question is put to whoever is numbered 0, which is anybody.
        told = difference(suppressed(ask, LEAST, both_sides=True), 0, PEOPLE, seed=int(rng.integers(2**31)))
        found.append(told is not None and told > 0.5)
        truth.append(bool(town[0]))
    report = tallied(found, truth, baseline=0.5)
    return replace(report, name=f"exact counts, groups below {LEAST} refused")


def under_account(
    epsilon: Fraction, *, trials: int, rng: np.random.Generator, confidence: float = CONFIDENCE
) -> tuple[Attack, Attack]:
    """Two noisy counts that cost epsilon together: by difference, and by one who knows all others."""
    mechanism = Laplace.calibrate(epsilon=epsilon / 2, sensitivity=1, grid=Grid(0), exact=True)
    ledger, loss = Ledger.memory(), mechanism.loss + mechanism.loss
    blind, informed, truth = [], [], []
    for number, town in enumerate(_towns(trials, rng)):
        account = ledger.open(f"town {number}", unit=Unit("person"), budget=Budget(epsilon=epsilon))
        all_, without = (
            float(account.spend(mechanism, int(town[start:].sum()), by="attacker").value) for start in (0, 1)
        )
        blind.append(all_ - without > 0.5)
        informed.append(all_ - town[1:].sum() > 0.5)
        truth.append(bool(town[0]))
    return _report("the difference", blind, truth, loss, confidence), _report(
        "knowing all others", informed, truth, loss, confidence
    )


def _report(by: str, guesses: list[bool], truth: list[bool], loss: Loss, confidence: float) -> Attack:
    bound = loss.advantage().upper
    found = tallied(guesses, truth, baseline=0.5, bound=bound, confidence=confidence)
    return replace(found, name=f"noisy counts under an account, by {by}")


def _towns(count: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Secrets of the people of each town, half of them set."""
    return (rng.integers(0, 2, PEOPLE) for _ in range(count))


def _figure(tried: dict[Fraction, tuple[Attack, Attack]]) -> Figure:
    """Advantage against what was spent: measured, with the lower ends of its intervals, and the bound."""
    spent = [float(epsilon) for epsilon in tried]
    blind, informed = zip(*tried.values(), strict=True)
    return Figure(
        "What two noisy counts tell of one person",
        "epsilon of both answers",
        "advantage over a coin",
        series=[
            Series("the most the loss allows", spent, [one.bound for one in blind], style="dashed"),
            Series(
                "knowing all others, measured", spent, [one.advantage for one in informed], style="points"
            ),
            Series("the difference, measured", spent, [one.advantage for one in blind], style="points"),
            Series(
                f"knowing all others, at least ({CONFIDENCE:g})",
                spent,
                [one.advantage_low for one in informed],
                style="points",
            ),
            Series("exact counts, small groups refused", spent, [1.0] * len(spent), style="dotted"),
        ],
        x_scale="log",
    )
