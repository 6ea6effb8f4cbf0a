"""Reconstruction: a secret bit of every person from sums over random groups (Dinur and Nissim 2003).

Each question is a group, each answer about how many of the group have the bit. From a few times as many
answers as people, with errors well below the root of their number, the bits follow:

    least squares       the point closest to all answers, rounded; seconds for thousands of people
    linear programming  the point of [0, 1]ⁿ with the least sum of errors (Dwork, McSherry and Talwar 2007);
                        it shrugs off a share of wild answers, and is for some hundreds of people

Guessing gives the share of the more frequent bit. Bits of one reconstruction are not independent trials, so
the interval of its report describes the people at hand, not other data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.attacks.picture import apart
from dalenius.attacks.result import Attack
from dalenius.errors import InvalidArgument

Floats = NDArray[np.float64]
Groups = NDArray[np.bool_]
Method = Literal["least_squares", "linear_programming"]
RIDGE = 1e-7
"""The weight of staying at one half, beside that of one answer."""


def random_groups(people: int, questions: int, *, seed: int | None = None) -> Groups:
    """Groups that hold each person with probability one half, one a row."""
    return np.random.default_rng(seed).random((questions, people)) < 0.5


def asked(ask: Callable[[Groups], float], groups: Groups) -> Floats:
    """The answers to all groups, each asked by itself."""
    return np.array([ask(group) for group in groups], float)


def solve(
    groups: ArrayLike, answers: ArrayLike, *, method: Method = "least_squares", spread: float = 0.0
) -> Floats:
    """The point that explains the answers best: above one half for a bit that is likely set.

    `spread` is the standard deviation of an answer's error, where the attacker knows it: least squares then
    weighs the answers against a fair coin for every bit.
    """
    members, sums = np.asarray(groups, float), np.asarray(answers, float)
    if members.ndim != 2 or sums.shape != members.shape[:1]:
        raise InvalidArgument(
            "There must be one answer for each group.", remedy="Pass a row for each answer."
        )
    if method == "least_squares":
        return _least_squares(members, sums, spread)
    if method == "linear_programming":
        return _linear_programming(members, sums)
    raise InvalidArgument(
        "method must be least_squares or linear_programming.", remedy="Choose least_squares."
    )


def reconstruct(
    secret: ArrayLike,
    groups: ArrayLike,
    answers: ArrayLike,
    *,
    method: Method = "least_squares",
    spread: float = 0.0,
    bound: float | None = None,
) -> Attack:
    """Reconstruct bits from answers, and count how many of the `secret` ones are right."""
    bits = np.asarray(secret, bool)
    point = solve(groups, answers, method=method, spread=spread)
    right = (point > 0.5) == bits
    return Attack.counted(
        "reconstruction",
        int(right.sum()),
        len(bits),
        baseline=max(float(bits.mean()), 1 - float(bits.mean())),
        bound=bound,
        figure=apart("Bits from sums over groups", bits, point),
        details={"people": len(bits), "answers": len(np.asarray(answers))},
    )


def _least_squares(members: Floats, sums: Floats, spread: float) -> Floats:
    """The least Σ errors² + (2·spread)² Σ (x − ½)², by the normal equations."""
    people = members.shape[1]
    normal = members.T @ members
    # A fair coin has variance ¼. The ridge is so little that it decides only what the answers leave open.
    normal.flat[:: people + 1] += (2 * spread) ** 2 + RIDGE * len(members)
    return np.asarray(0.5 + np.linalg.solve(normal, members.T @ (sums - members.sum(axis=1) / 2)))


def _linear_programming(members: Floats, sums: Floats) -> Floats:
    """Least Σ e over x in [0, 1]ⁿ and e ≥ |members·x − sums|."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, eye, hstack, vstack

    answers, people = members.shape
    rows, errors = csr_matrix(members), eye(answers)
    found: Any = linprog(
        np.concatenate([np.zeros(people), np.ones(answers)]),
        A_ub=vstack([hstack([rows, -errors]), hstack([-rows, -errors])]),
        b_ub=np.concatenate([sums, -sums]),
        bounds=[(0, 1)] * people + [(0, None)] * answers,
        method="highs",
    )
    return np.asarray(found.x[:people])
