"""1,000 people, 4,000 sums: ε = 1 for each answer with nobody counting, and ε = 1 for all under an account.

The noise of one answer is small, and looks safe. Four thousand such answers cost ε = 4,000 and give every
bit away. An account of ε = 1 lets the same questions be answered only with 4,000 times the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.reconstruction import random_groups, reconstruct
from dalenius.attacks.result import Attack
from dalenius.figures import Figure, Series
from dalenius.ledger import Budget, Ledger
from dalenius.mechanisms import Laplace
from dalenius.privacy import Grid, Sensitivity, Unit

PEOPLE, QUESTIONS = 1_000, 4_000
STEPS = (100, 250, 500, 1_000, 2_000, QUESTIONS)
"""After how many answers the attacker tries."""
NOBODY, ACCOUNT = "epsilon 1 per answer, nobody counting", "epsilon 1 for all, under an account"


def demo(*, seed: int | None = None) -> tuple[Attack, Attack]:
    """Reconstruction with nobody counting, and under an account."""
    rng = np.random.default_rng(seed)
    secret = rng.random(PEOPLE) < 0.5
    # A seed of its own: drawn from the same one, the first group would be the secret itself.
    groups = random_groups(PEOPLE, QUESTIONS, seed=int(rng.integers(2**31)))
    truth = groups @ secret.astype(np.int64)
    one = Laplace.calibrate(epsilon=1, sensitivity=1, grid=Grid(0), exact=True)
    every = Laplace.calibrate(
        epsilon=1, sensitivity=Sensitivity(l0=QUESTIONS, linf=1), grid=Grid(0), exact=True
    )
    account = Ledger.memory().open("people", unit=Unit("person"), budget=Budget(epsilon=1))
    first = _Answers(NOBODY, np.array([one.release(t).value for t in truth.tolist()]), one.scale)
    second = _Answers(
        ACCOUNT, np.array(account.spend(every, truth, by="attacker").columns["value"]), every.scale
    )
    open_data, counted = (answers.attack(secret, groups) for answers in (first, second))
    drawn = [answers.series(secret, groups) for answers in (first, second)]
    figure = Figure(
        f"A secret bit of {PEOPLE:,} people from sums over random groups",
        "answers",
        "share of bits recovered",
        series=[*drawn, Series("a coin", [STEPS[0], STEPS[-1]], [0.5, 0.5], style="dotted")],
    )
    bound = every.loss.advantage().upper
    return replace(open_data, figure=figure), replace(counted, figure=figure, bound=bound)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Noisy answers, and the scale of their noise, which is public."""

    name: str
    values: NDArray[np.int64]
    scale: Fraction

    def attack(self, secret: NDArray[np.bool_], groups: NDArray[np.bool_], first: int = QUESTIONS) -> Attack:
        """By so many of the answers."""
        spread = math.sqrt(2) * float(self.scale)
        found = reconstruct(secret, groups[:first], self.values[:first], spread=spread)
        return replace(found, name=self.name)

    def series(self, secret: NDArray[np.bool_], groups: NDArray[np.bool_]) -> Series:
        """The share of bits recovered against the number of answers."""
        return Series(self.name, STEPS, [self.attack(secret, groups, k).success for k in STEPS])
