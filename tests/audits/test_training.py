"""One training run with canaries shows much of what leaks, and nothing where nothing does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dalenius.audits.guessing import lines, most_right
from dalenius.audits.training import audit_training, best_guesses, count_right
from dalenius.errors import InvalidArgument
from dalenius.losses import Approximate, Gaussian, GaussianDP, Pure
from dalenius.losses.loss import Loss

EIGHT = Gaussian(0.6003)
"""About ε = 8 at δ = 1e-5."""


Bools = NDArray[np.bool_]


@dataclass
class Noisy:
    """Training by one noisy sum in which each canary has its own entry."""

    scale: float
    seed: int
    signal: float = 1.0

    def __call__(self, included: Bools) -> NDArray[np.float64]:
        noise = np.random.default_rng([self.seed, 1]).standard_normal(len(included))
        return self.signal * included + self.scale * noise


def test_dirac_canaries_show_much_of_epsilon_eight() -> None:
    """200 canaries: of 20,000 runs 6 were below 1.9, so all three are with probability below 1e-9."""
    found = [
        audit_training(Noisy(0.6003, k), 200, claim=EIGHT, delta=1e-5, seed=k).epsilon_lower for k in range(3)
    ]
    assert 1.9 < max(found) < 8


def test_too_little_noise_is_caught() -> None:
    """A quarter of the declared noise: of 100 guesses about 97 are right; false alarm below 1e-9."""
    audit = audit_training(Noisy(0.5, 5), 300, claim=Gaussian(2), guesses=100, seed=5)
    assert audit.violated
    assert audit.epsilon_lower > audit.claim.upper


def test_pure_noise_shows_nothing_but_for_the_error_rate() -> None:
    """200 runs at 5 %; false alarm 1e-7."""
    runs = [audit_training(Noisy(1, k, 0), 100, claim=EIGHT, guesses=20, seed=k) for k in range(200)]
    assert sum(run.epsilon_lower > 0 for run in runs) <= binom.isf(1e-7, 200, 0.05)
    assert not any(run.violated for run in runs)


def test_the_highest_are_guessed_in_and_the_lowest_out() -> None:
    scores = np.array([5.0, -2.0, 0.1, 4.0, -3.0, 0.2])
    included = np.array([True, False, True, False, True, False])
    assert count_right(scores, included, 4) == 2
    assert count_right(scores, included, 2) == 1
    assert count_right(scores, scores > 0.15, 6) == 6


@pytest.mark.parametrize("claim", [GaussianDP(0.5), EIGHT, Pure(1), Approximate(1, delta=1e-5)], ids=str)
def test_the_number_of_guesses_is_even_and_known_before_the_run(claim: Loss) -> None:
    chosen = best_guesses(claim, 101)
    assert 2 <= chosen <= 101
    assert chosen % 2 == 0
    assert audit_training(Noisy(1, 0), 101, claim=claim, seed=1).guesses == chosen


def test_a_gaussian_claim_has_fewer_guesses_than_a_pure_one() -> None:
    """A pure claim allows every guess to be as good as any other; a Gaussian one only a few to be good."""
    assert best_guesses(EIGHT, 200) < best_guesses(Pure(1), 200)


def test_the_claim_can_be_refuted_where_that_takes_few_guesses_more() -> None:
    """At ε = 8 and 1,000 canaries, 200 guesses tell most, but no 200 right ones refute the claim."""
    said, chosen = lines(EIGHT, 1000), best_guesses(EIGHT, 1000)
    assert most_right(chosen, chosen, 1000, said) < 0.05 < most_right(200, 200, 1000, said)


def test_a_seed_repeats_the_coins_and_training_cannot_change_them() -> None:
    seen: list[Bools] = []

    def train(included: Bools) -> NDArray[np.float64]:
        seen.append(included.copy())
        included[:] = True
        return np.arange(len(included), dtype=float)

    first, second = (audit_training(train, 50, claim=Pure(1), guesses=10, seed=4) for _ in range(2))
    assert first == second
    assert np.array_equal(seen[0], seen[1])
    assert first.right == count_right(np.arange(50.0), seen[0], 10)


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="one score for each of 10"):
        audit_training(lambda _: np.zeros(9), 10, claim=Pure(1), guesses=2)
    with pytest.raises(InvalidArgument, match="one score for each of 10"):
        audit_training(lambda _: np.full(10, np.nan), 10, claim=Pure(1), guesses=2)
    with pytest.raises(InvalidArgument, match="guesses=4"):
        audit_training(lambda x: x, 10, claim=Pure(1), guesses=5)
