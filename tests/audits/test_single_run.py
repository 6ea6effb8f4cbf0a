"""The lower bound exceeds the truth as rarely as it says, for the worst mechanisms too."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import binom

from dalenius.audits.guessing import lines, most_right
from dalenius.audits.single_run import TrainingAudit, one_run
from dalenius.audits.training import count_right
from dalenius.errors import InvalidArgument
from dalenius.losses import Approximate, DiscretePair, Gaussian, GaussianDP, Laplace, Pure
from dalenius.losses.loss import Loss

RUNS, ALARM = 2000, 1e-7
CANARIES, GUESSES = 200, 40


@cache
def judged(right: int, claim: Loss) -> TrainingAudit:
    return one_run(right, GUESSES, CANARIES, claim, delta=1e-5)


@cache
def least_refuted(claim: Loss) -> int:
    """The least count at which the bound exceeds the claim; just below, it does not."""
    said = lines(claim, CANARIES)
    counts = range(GUESSES // 2, GUESSES + 2)
    least = next(c for c in counts if c > GUESSES or most_right(c, GUESSES, CANARIES, said) < 0.05)
    below = judged(least - 1, claim)
    assert not below.violated
    assert below.epsilon_lower <= claim.epsilon(1e-5).upper
    if least <= GUESSES:
        assert judged(least, claim).violated
    return least


def allowed(risk: float = 0.05) -> int:
    """More than so many of all runs are reached with probability ALARM at most."""
    return int(binom.isf(ALARM, RUNS, risk))


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_the_bound_exceeds_a_gaussian_truth_rarely(mu: float) -> None:
    """2,000 null runs, one-sided at 5 %; false alarm 1e-7."""
    rng = np.random.default_rng(11)
    over, least = 0, least_refuted(GaussianDP(mu))
    for _ in range(RUNS):
        included = rng.random(CANARIES) < 0.5
        over += count_right(rng.standard_normal(CANARIES) + mu * included, included, GUESSES) >= least
    assert over <= allowed()


def test_the_bound_exceeds_randomized_response_rarely() -> None:
    """2,000 null runs of the mechanism that attains the pure bound; false alarm 1e-7."""
    counts = np.random.default_rng(12).binomial(GUESSES, 1 / (1 + math.exp(-1)), size=RUNS)
    assert np.sum(counts >= least_refuted(Pure(1))) <= allowed()


def worst_law(claim: Loss, least: int) -> NDArray[np.float64]:
    """The law of right guesses that makes `least` of them as likely as the loss permits."""
    said = lines(claim, CANARIES)
    i, kinds, size = np.arange(1, GUESSES + 1), len(said.epsilon), GUESSES
    table = np.zeros((kinds * (size + 1), 1 + size + kinds * size))
    limit = np.zeros(len(table))
    for g, (e, delta) in enumerate(zip(said.epsilon, said.delta, strict=True)):
        rows = g * (size + 1) + np.arange(size)
        table[rows, i], table[rows, i - 1] = i, -math.exp(e) * (GUESSES - i + 1)
        table[rows, 1 + size + g * size + np.arange(size)] = -1
        table[rows[-1] + 1, 1 + size + g * size + np.arange(size)] = 1
        limit[rows[-1] + 1] = CANARIES * delta
    gain = np.zeros(table.shape[1])
    gain[least : size + 1] = 1
    ones = np.zeros((1, table.shape[1]))
    ones[0, : size + 1] = 1
    found = linprog(-gain, table, limit, ones, [1.0], method="highs")
    law = np.maximum(found.x[: size + 1], 0)
    assert np.all(i * law[1:] >= (GUESSES - i + 1) * law[:-1] - 1e-7), "so a mechanism has this law"
    return np.asarray(law / law.sum())


@pytest.mark.parametrize(
    "claim", [GaussianDP(0.5), pytest.param(Laplace(1), marks=pytest.mark.slow)], ids=str
)
def test_the_bound_exceeds_the_worst_truth_rarely_and_sometimes(claim: Loss) -> None:
    """2,000 null runs of the worst mechanism that keeps the claim; false alarm 1e-7 on either side."""
    least = least_refuted(claim)
    law = worst_law(claim, least)
    assert law[least:].sum() == pytest.approx(
        most_right(least, GUESSES, CANARIES, lines(claim, CANARIES)), abs=1e-5
    )
    over = np.sum(np.random.default_rng(13).choice(GUESSES + 1, size=RUNS, p=law) >= least)
    assert binom.ppf(ALARM, RUNS, 0.02) <= over <= allowed()


def test_nothing_is_shown_by_what_coins_would_do() -> None:
    for right in range(GUESSES // 2 + 1):
        assert judged(right, GaussianDP(1)).epsilon_lower == 0.0


@pytest.mark.parametrize(
    "claim",
    [
        GaussianDP(1),
        pytest.param(Gaussian(3).poisson(0.3) * 20, marks=pytest.mark.slow),
        Pure(2),
        Approximate(2, delta=1e-5),
        DiscretePair((0.9, 0.1), (0.2, 0.8)),
    ],
    ids=str,
)
def test_the_bound_grows_with_right_guesses(claim: Loss) -> None:
    found = [judged(c, claim).epsilon_lower for c in (20, 30, 40)]
    assert found[0] == 0
    assert all(a <= b for a, b in itertools.pairwise(found))
    assert found[-1] > found[1]


def test_the_pure_bound_is_that_of_the_binomial() -> None:
    """With δ = 0 it is Clopper and Pearson's: the ε at which so many right guesses have probability 5 %."""
    from scipy.stats import binomtest

    share = binomtest(36, 40, alternative="greater").proportion_ci(0.95, method="exact").low
    found = one_run(36, 40, 200, Pure(1), delta=0).epsilon_lower
    assert found == pytest.approx(math.log(share / (1 - share)), rel=0.01)


def test_a_broken_claim_is_named() -> None:
    audit = judged(40, GaussianDP(0.2))
    assert audit.violated
    assert audit.epsilon_lower > audit.claim.upper
    assert "IS BROKEN: 40 of 40 guesses right" in str(audit)
    assert "was not refuted" in str(judged(30, GaussianDP(3)))


def test_more_right_than_guessed_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="right"):
        one_run(11, 10, 20, Pure(1))
    with pytest.raises(InvalidArgument, match="guesses"):
        one_run(5, 30, 20, Pure(1))
