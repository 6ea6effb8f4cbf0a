"""How often guesses about who took part can be right: a bound for every mechanism that keeps a loss.

The game: each of m canaries takes part with probability 1/2, independently. Whoever sees the outcome, and
nothing else, guesses of r canaries whether they took part; which ones, and what is guessed, is free. J
guesses are right.

Theorem. Let δ(ε) be the mean over the two directions of the loss. For all ε₁, … ≥ 0 and weights
w_{gi} ≥ 0, i = 1 … r,

    P[J ≥ c]  ≤  m Σ_g δ(ε_g) max_i w_{gi}  +  max over j of (1{j ≥ c} − D(j)),
    D(j)      =  Σ_g (j w_{gj} − e^{ε_g} (r − j) w_{g,j+1}).

So every choice of weights is sound; a linear program only chooses good ones. The proof, when the
best choice is attained, and what is due to Steinke, Nasr and Jagielski (2023) and to Mahloujifar, Melis and
Chaudhuri (2024): docs/proofs/one_run.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.routes import profiles
from dalenius.mechanisms.mechanism import Floats
from dalenius.profiles.profile import sample

KNOTS = 33
"""So many ε are offered to the linear program."""
NEGLIGIBLE = 1e-2
"""The largest ε is where m δ is so much of the risk that a test allows: 5 % unless said otherwise."""
ROUNDING = 2.0**-40
"""More than the share that a sum of a hundred floats is off by."""
REACH = 3.5
"""So many times √r counts to each side of c get weights of their own."""
LARGE = 100.0
"""Times 1/c: weights need not be larger."""
CLOSELY = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


@dataclass(frozen=True)
class Lines:
    """Knots ε with the mean over both directions of an upper bound on δ: P(E) ≤ e^ε Q(E) + δ."""

    epsilon: tuple[float, ...]
    delta: tuple[float, ...]


@lru_cache(maxsize=512)
def lines(loss: Loss, canaries: int, knots: int = KNOTS) -> Lines:
    """What the loss says, at the ε that matter to so many canaries."""
    at = _knots(loss, 0.05 * NEGLIGIBLE / canaries, knots)
    upper = [sample(profile, at)[1] for profile in profiles(loss)]
    # Only add and remove tell the two directions apart; otherwise the worse one counts for both.
    both = np.mean(upper, axis=0) if loss.relation == "add_remove" else np.max(upper, axis=0)
    delta = np.clip(both * (1 + ROUNDING), 0.0, 1.0)
    return Lines(tuple(map(float, at)), tuple(map(float, delta)))


def _knots(loss: Loss, least: float, count: int) -> Floats:
    """Evenly from 0 to where δ is `least`, and the largest loss where there is one."""
    if isinstance(loss, Pure | Approximate):  # One line says it all.
        failure = loss.failure if isinstance(loss, Approximate) else 0
        return np.array([loss.epsilon(failure).upper])
    tops = (loss.epsilon(level).upper for level in (least, 1e-4, 1e-3, 1e-2, 0.1))
    top = next((one for one in tops if one < math.inf), 1.0)
    end = loss.epsilon(0).upper
    return np.unique([*np.linspace(0.0, top, count), end if end < 700 else top])


@lru_cache(maxsize=4096)
def most_right(right: int, guesses: int, canaries: int, said: Lines) -> float:
    """At least the probability of `right` or more right guesses out of `guesses`, whatever the mechanism."""
    if right <= 0:
        return 1.0
    first = max(1, right - math.ceil(REACH * math.sqrt(guesses)))
    last = min(guesses, right + math.ceil(REACH * math.sqrt(guesses)))
    weights = _weights(right, guesses, canaries, said, np.arange(first, last + 1))
    return 1.0 if weights is None else _certified(right, guesses, canaries, said, first, weights)


def _certified(right: int, guesses: int, canaries: int, said: Lines, first: int, weights: Floats) -> float:
    """The bound of the theorem for weights from `first` on; beyond the last one they stay as they are.

    Below `first` − 1 the sum is 0, and beyond the last it grows with j: neither needs a look.
    """
    here = np.pad(np.maximum(weights, 0.0), ((0, 0), (1, 0)))
    ahead = np.concatenate([here[:, 1:], here[:, -1:]], axis=1)
    j = np.arange(first - 1, first - 1 + here.shape[1])
    gain, pain = here * j, np.exp(said.epsilon)[:, None] * ahead * (guesses - j)
    worst = float(np.max((j >= right) - (gain - pain).sum(axis=0)))
    slack = ROUNDING * (1 + float(np.max((gain + pain).sum(axis=0))))
    price = canaries * float(np.dot(said.delta, here.max(axis=1))) * (1 + ROUNDING)
    return min(1.0, max(0.0, worst) + price + slack)


def _weights(right: int, guesses: int, canaries: int, said: Lines, at: np.ndarray[Any, Any]) -> Floats | None:
    """The best weights at the counts `at`: a linear program in B, c z_g ≥ c w_{gi} and c w, all near 1."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

    j = np.arange(at[0] - 1, at[-1] + 1)
    kinds, size = len(said.epsilon), len(at)
    right_here = eye_array(size + 1, size, k=-1).multiply(j[:, None] / right)
    wrong_here = eye_array(size + 1, size).tolil()
    wrong_here[-1, -1] = 1.0
    wrong_here = csr_array(wrong_here).multiply((guesses - j)[:, None] / right)
    sums = hstack([right_here - factor * wrong_here for factor in np.exp(said.epsilon)])
    above = hstack([np.ones((size + 1, 1)), csr_array((size + 1, kinds)), sums])
    tops = kron(eye_array(kinds), np.ones((size, 1)))
    capped = hstack([csr_array((kinds * size, 1)), tops, -eye_array(kinds * size)])
    cost = np.concatenate([[1.0], canaries / right * np.array(said.delta), np.zeros(kinds * size)])
    limits = np.concatenate([-(j >= right).astype(float), np.zeros(kinds * size)])
    table = -vstack([above, capped]).tocsr()
    # Without a limit, weights that cost nothing (δ = 0) could be any.
    found = linprog(cost, A_ub=table, b_ub=limits, bounds=(0.0, LARGE), method="highs", options=CLOSELY)
    return None if found.x is None else np.asarray(found.x[1 + kinds :]).reshape(kinds, size) / right


def most_right_approximate(right: int, guesses: int, canaries: int, *, epsilon: float, delta: float) -> float:
    """The same for (ε, δ) in the closed form of Steinke, Nasr and Jagielski (2023): larger, but close by.

    With W binomial of r and e^ε/(1 + e^ε): P[W ≥ c] + 2mδ max over i ≥ 1 of P[c − i ≤ W < c]/i.
    """
    from scipy.stats import binom

    chance = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    leak = float(np.max(below / np.arange(1, right + 1), initial=0.0))
    tail = float(binom.sf(right - 1, guesses, chance)) + 2 * canaries * delta * leak
    return min(1.0, tail * (1 + 1e-9))
