"""Allele frequencies of small studies, exact with nobody counting, and noisy under an account of each.

Every study has members of its own, and one person is asked about: a member in every other study. So trials
are independent. Studies differ from their neighbours by one member replaced, hence the relation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import judge
from dalenius.attacks.tracing import inner_product, likelihood_ratio
from dalenius.figures import Figure
from dalenius.ledger import Budget, Ledger
from dalenius.losses.loss import Loss
from dalenius.mechanisms import Gaussian
from dalenius.privacy import Grid, Sensitivity, Unit

PLACES, MEMBERS, STUDIES = 300, 30, 400
EPSILON, DELTA = 1, 1e-6
EXACT, NOISY = "exact frequencies, nobody counting", "noisy frequencies under an account"

Floats = NDArray[np.float64]


def demo(*, seed: int | None = None) -> tuple[Attack, Attack]:
    """Tracing with nobody counting, and under an account."""
    return trials(STUDIES, rng=np.random.default_rng(seed))


def trials(
    studies: int, *, rng: np.random.Generator, confidence: float = CONFIDENCE
) -> tuple[Attack, Attack]:
    """So many studies, attacked by their exact and by their noisy frequencies."""
    usual = rng.uniform(0.05, 0.5, PLACES)
    counts, asked, member = _studies(studies, usual, rng)
    mechanism = Gaussian.calibrate(
        epsilon=0.99 * EPSILON,
        delta=DELTA,
        sensitivity=Sensitivity(l0=PLACES, linf=1, relation="replace"),
        grid=Grid(0),
        exact=True,
    )
    seed = int(rng.integers(2**31))

    def report(name: str, scores: Floats, loss: Loss | None) -> Attack:
        return judge(name, scores[member], scores[~member], loss=loss, confidence=confidence, seed=seed)

    noisy = _published(mechanism, counts) / MEMBERS
    first = report(EXACT, likelihood_ratio(asked, counts / MEMBERS, usual), None)
    second = report(NOISY, inner_product(asked, noisy, usual), mechanism.loss)
    figure = _figure(first, second)
    return replace(first, figure=figure), replace(second, figure=figure)


def _figure(first: Attack, second: Attack) -> Figure | None:
    """Both measured curves, and what the loss allows."""
    if first.figure is None or second.figure is None:
        return None
    exact, (noisy, *others) = first.figure.series[0], second.figure.series
    bounds = [one for one in others if one.style != "points"]
    series = [replace(exact, name=EXACT), replace(noisy, name=NOISY), *bounds]
    notes = ["Measured curves are of so few people that they stray, to either side of what is true."]
    return replace(second.figure, title="Who was in the study?", series=series, notes=notes)


def _studies(
    studies: int, usual: Floats, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """How many members of each study have each allele, the person asked about, and whether they are one."""
    counts, asked = np.zeros((studies, PLACES), np.int64), np.zeros((studies, PLACES))
    member = np.arange(studies) % 2 == 0
    for study in range(studies):
        people = rng.random((MEMBERS + 1, PLACES)) < usual
        counts[study] = people[1:].sum(axis=0)
        asked[study] = people[1 if member[study] else 0]
    return counts, asked, member


def _published(mechanism: Gaussian, counts: NDArray[np.int64]) -> Floats:
    """The counts of each study, each released once under an account of its own."""
    ledger = Ledger.memory()
    # All of delta goes to Gaussian noise, as nothing else will be released.
    budget = Budget(epsilon=EPSILON, delta=DELTA, shares={"gaussian": (100, 0)})
    who = Unit("person", relation="replace")
    return np.array(
        [
            ledger.open(f"study {i}", unit=who, budget=budget)
            .spend(mechanism, study, by="attacker")
            .columns["value"]
            for i, study in enumerate(counts)
        ],
        float,
    )
