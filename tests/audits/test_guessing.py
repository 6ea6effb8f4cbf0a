"""No mechanism that keeps a loss has more right guesses than the bound allows."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import lil_array
from scipy.stats import binom

from dalenius.audits.guessing import Lines, lines, most_right, most_right_approximate
from dalenius.losses import Approximate, DiscretePair, Gaussian, GaussianDP, Pure
from dalenius.losses.loss import Loss

Array = NDArray[Any]


def hockey(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def guess_vectors(m: int, r: int) -> list[tuple[int | None, ...]]:
    """All that can be said: r canaries are guessed in (1) or out (0), the others not (None)."""
    return [
        tuple(dict(zip(who, what, strict=True)).get(k) for k in range(m))
        for who in itertools.combinations(range(m), r)
        for what in itertools.product((0, 1), repeat=r)
    ]


def best_of_all(c: int, r: int, m: int, said: Lines, back: Lines) -> float:
    """The largest P[J ≥ c] of any map from inclusions to laws of guesses; `said` is for in, `back` for out.

    One linear program in all probabilities, with no symmetry assumed.
    """
    inputs, outputs = list(itertools.product((0, 1), repeat=m)), guess_vectors(m, r)
    laws, size = len(inputs) * len(outputs), len(outputs)
    moves = [(u, k) for u in range(len(inputs)) for k in range(m)]
    sums = len(moves) * len(said.epsilon)
    table = lil_array((sums * (size + 1), laws + sums * size))
    limit = np.zeros(sums * (size + 1))
    for n, ((u, k), g) in enumerate(itertools.product(moves, range(len(said.epsilon)))):
        other = inputs.index(tuple(b ^ (i == k) for i, b in enumerate(inputs[u])))
        side = said if inputs[u][k] else back
        for a in range(size):
            row = n * (size + 1) + a
            table[row, u * size + a] = 1
            table[row, other * size + a] = -math.exp(side.epsilon[g])
            table[row, laws + n * size + a] = -1
            table[n * (size + 1) + size, laws + n * size + a] = 1
        limit[n * (size + 1) + size] = side.delta[g]
    gain = np.zeros(laws + sums * size)
    for u, a in itertools.product(range(len(inputs)), range(size)):
        right = sum(x == y for x, y in zip(inputs[u], outputs[a], strict=True))
        gain[u * size + a] = (right >= c) / len(inputs)
    ones = lil_array((len(inputs), laws + sums * size))
    for u in range(len(inputs)):
        ones[u, u * size : (u + 1) * size] = 1
    found = linprog(-gain, table.tocsr(), limit, ones.tocsr(), np.ones(len(inputs)), method="highs")
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize(("m", "r"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_the_bound_is_the_optimum_over_all_mechanisms(m: int, r: int, mu: float) -> None:
    dense = lines(GaussianDP(mu), 1000, 65)
    some = Lines(dense.epsilon[::16], dense.delta[::16])
    for c in range(1, r + 1):
        best = best_of_all(c, r, m, some, some)
        assert best <= most_right(c, r, m, some) <= best + 1e-6


def test_two_different_directions_count_by_their_mean() -> None:
    epsilon = (0.0, 0.5, 1.0, 2.0)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.4, 0.5])
    there = Lines(epsilon, tuple(hockey(p, q, e) for e in epsilon))
    back = Lines(epsilon, tuple(hockey(q, p, e) for e in epsilon))
    mean = Lines(epsilon, tuple((a + b) / 2 for a, b in zip(there.delta, back.delta, strict=True)))
    assert there.delta[1:] != back.delta[1:]
    for c in (1, 2):
        assert best_of_all(c, 2, 3, there, back) <= most_right(c, 2, 3, mean) + 1e-9
    loss = DiscretePair((0.5, 0.3, 0.2), (0.1, 0.4, 0.5))
    said = lines(loss, 10)
    for e, delta in zip(said.epsilon, said.delta, strict=True):
        assert delta == pytest.approx((hockey(p, q, e) + hockey(q, p, e)) / 2, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_randomized_response_attains_the_pure_bound(epsilon: float) -> None:
    chance = 1 / (1 + math.exp(-epsilon))
    for c in (3, 12, 17, 20):
        exact = binom.sf(c - 1, 20, chance)
        assert exact <= most_right(c, 20, 50, lines(Pure(epsilon), 50)) <= exact + 1e-6


@pytest.mark.parametrize(("guesses", "right"), [(75, 54), (150, 109), (300, 219), (1000, 700), (3000, 2000)])
def test_many_guesses_are_bounded_as_closely(guesses: int, right: int) -> None:
    for epsilon in (0.5, 0.77, 0.83):
        exact = binom.sf(right - 1, guesses, 1 / (1 + math.exp(-epsilon)))
        assert exact <= most_right(right, guesses, guesses, lines(Pure(epsilon), guesses)) <= exact + 1e-4


@pytest.mark.parametrize("delta", [1e-4, 1e-3, 0.02])
def test_a_mechanism_that_sometimes_leaks_everything_stays_below(delta: float) -> None:
    said, chance = lines(Approximate(1, delta=delta), 40), 1 / (1 + math.exp(-1))
    for c in range(13, 21):
        leaking = delta + (1 - delta) * binom.sf(c - 1, 20, chance)
        bound = most_right(c, 20, 40, said)
        assert leaking <= bound <= most_right_approximate(c, 20, 40, epsilon=1, delta=delta) + 1e-9


def test_a_leak_of_the_last_missing_guesses_is_worse_and_stays_below() -> None:
    """Corrects i wrong guesses at once where that makes c right: what the closed form's δ term is for."""
    m, r, c, epsilon = 12, 12, 10, 1.0
    for lift in (1, 2, 3):
        for chance in (0.01, 0.1, 1.0):
            law = np.array(binom.pmf(np.arange(r + 1), r, 1 / (1 + math.exp(-epsilon))))
            moved = chance * law[c - lift : c]
            law[c - lift : c] -= moved
            law[c] += moved.sum()
            said = exact_lines(law, m, (0.0, 0.5, 1.0, 1.5, 2.0, 3.0))
            assert law[c:].sum() <= most_right(c, r, m, said)


def exact_lines(law: Array, m: int, epsilon: tuple[float, ...]) -> Lines:
    """The loss of the symmetric mechanism whose number of right guesses has this law, by enumeration."""
    r = len(law) - 1
    i = np.arange(1, r + 1)
    right, wrong = i * law[1:] / m, (r - i + 1) * law[:-1] / m
    p, q = np.concatenate([right, wrong]), np.concatenate([wrong, right])
    return Lines(epsilon, tuple(hockey(p, q, e) for e in epsilon))


def test_no_law_of_right_guesses_exceeds_the_bound_of_its_own_loss() -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        m = int(rng.integers(1, 9))
        r = int(rng.integers(1, m + 1))
        law = rng.dirichlet(np.full(r + 1, rng.choice([0.1, 1.0, 10.0])))
        said = exact_lines(law, m, tuple(np.linspace(0, 4, 6).tolist()))
        for c in range(1, r + 1):
            assert law[c:].sum() <= most_right(c, r, m, said) + 1e-12


@pytest.mark.parametrize("guesses", [2, 4])
def test_choosing_whom_to_guess_by_the_outcome_gains_nothing(guesses: int) -> None:
    """Five canaries with one of four letters each, all outcomes enumerated; the most telling are guessed."""
    p, q = np.array([0.55, 0.25, 0.15, 0.05]), np.array([0.05, 0.2, 0.25, 0.5])
    order = np.log(p / q)
    law = np.zeros(guesses + 1)
    for u in itertools.product((0, 1), repeat=5):
        for seen in itertools.product(range(4), repeat=5):
            chance = math.prod((p if b else q)[x] for b, x in zip(u, seen, strict=True)) / 32
            ranked = np.argsort(order[list(seen)], kind="stable")
            low, high = ranked[: guesses // 2], ranked[5 - guesses // 2 :]
            law[sum(u[k] for k in high) + sum(1 - u[k] for k in low)] += chance
    said = lines(DiscretePair(tuple(p), tuple(q)), 5)
    for c in range(1, guesses + 1):
        assert law[c:].sum() <= most_right(c, guesses, 5, said)


def test_a_mood_shared_by_all_canaries_stays_below() -> None:
    """With probability π all canaries answer by a large ε, else by a small one, and the mood is seen."""
    for mood, strong, weak in itertools.product((0.01, 0.05, 0.3), (2.0, 4.0), (0.1, 1.0)):
        a, b = 1 / (1 + math.exp(-strong)), 1 / (1 + math.exp(-weak))
        p = np.array([mood * a, mood * (1 - a), (1 - mood) * b, (1 - mood) * (1 - b)])
        epsilon = tuple(np.linspace(0, 4, 9).tolist())
        said = Lines(epsilon, tuple(hockey(p, p[[1, 0, 3, 2]], e) for e in epsilon))
        for c in (15, 20, 25, 30):
            truth = mood * binom.sf(c - 1, 30, a) + (1 - mood) * binom.sf(c - 1, 30, b)
            assert truth <= most_right(c, 30, 100, said)


@pytest.mark.parametrize(
    "loss", [GaussianDP(0.7), Gaussian(2).poisson(0.2) * 30, Pure(1), Approximate(1, delta=1e-4)], ids=str
)
def test_more_right_guesses_are_less_likely(loss: Loss) -> None:
    tails = [most_right(c, 60, 300, lines(loss, 300)) for c in range(0, 61, 6)]
    assert tails[0] == 1.0
    assert all(b <= a + 1e-9 for a, b in itertools.pairwise(tails))
    assert 0 < tails[-1] < 0.05
