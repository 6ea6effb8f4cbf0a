"""Small blocks of people, and their three two-way tables: exact, and noisy under an account of each block.

How many people live in a block is public. Guessing takes the kinds of people that are most frequent in the
whole country, as often as each is likely to be there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.result import Attack
from dalenius.attacks.tabulation import Tables, likeliest_block, published, solve_block
from dalenius.figures import Figure, Series
from dalenius.ledger import Budget, Ledger
from dalenius.mechanisms import Marginals
from dalenius.privacy import Unit

BLOCKS, PEOPLE, EPSILON = 20, 7, 1
ATTRIBUTES = {"age": 5, "sex": 2, "race": 4}
TABLES = [("age", "sex"), ("age", "race"), ("sex", "race")]
SHARES = np.einsum("a,s,r->asr", [0.2, 0.15, 0.25, 0.25, 0.15], [0.5, 0.5], [0.65, 0.15, 0.12, 0.08])
"""How frequent each kind of person is in the country."""

Counts = NDArray[np.int64]


def demo(*, seed: int | None = None) -> tuple[Attack, Attack]:
    """Blocks rebuilt from exact tables, and from private ones."""
    rng = np.random.default_rng(seed)
    people = [rng.choice(SHARES.size, PEOPLE, p=SHARES.ravel()) for _ in range(BLOCKS)]
    truth = [np.bincount(block, minlength=SHARES.size).reshape(SHARES.shape) for block in people]
    solved = [solve_block(published(block, ATTRIBUTES, TABLES), ATTRIBUTES) for block in truth]
    noisy, scale = _private(people)
    close = [
        likeliest_block(tables, ATTRIBUTES, people=PEOPLE, shares=SHARES, scale=scale) for tables in noisy
    ]
    guess = _right([_usual()] * BLOCKS, truth)
    details = {
        "blocks with one solution": float(sum(block.unique for block in solved)),
        "people certain": float(sum(block.certain for block in solved)),
    }
    first = _report("exact tables, nobody counting", [b.solution for b in solved], truth, guess)
    second = _report("noisy tables under an account", close, truth, guess)
    figure = _figure([b.solution for b in solved], close, truth, first.baseline)
    return replace(first, details=details, figure=figure), replace(second, figure=figure)


def _private(people: list[NDArray[np.int64]]) -> tuple[list[Tables], float]:
    """The tables of each block under an account of its own, and the scale of their noise."""
    mechanism = Marginals.calibrate(
        epsilon=EPSILON, columns=ATTRIBUTES, marginals=TABLES, noise="laplace", relation="replace"
    )
    ledger, found = Ledger.memory(), list[Tables]()
    who, budget = Unit("person", relation="replace"), Budget(epsilon=EPSILON)
    sizes = [tuple(ATTRIBUTES[name] for name in by) for by in TABLES]
    for number, block in enumerate(people):
        codes = np.stack(np.unravel_index(block, SHARES.shape), axis=1)
        account = ledger.open(f"block {number}", unit=who, budget=budget)
        counts = np.array(account.spend(mechanism, codes, by="attacker").columns["n"], float)
        parts = np.split(counts, np.cumsum([int(np.prod(size)) for size in sizes])[:-1])
        found.append({by: part.reshape(size) for by, part, size in zip(TABLES, parts, sizes, strict=True)})
    return found, float(mechanism.scale)


def _usual() -> Counts:
    """The block that most people of any block are expected to agree with."""
    from scipy.stats import binom

    gains = binom.sf(np.arange(PEOPLE), PEOPLE, SHARES.ravel()[:, None])
    best = np.argsort(-gains, axis=None)[:PEOPLE] // PEOPLE
    return np.bincount(best, minlength=SHARES.size).reshape(SHARES.shape)


def _right(found: list[Counts], truth: list[Counts]) -> list[int]:
    """How many people of each block are in what was found."""
    return [int(np.minimum(one, block).sum()) for one, block in zip(found, truth, strict=True)]


def _report(name: str, found: list[Counts], truth: list[Counts], guess: list[int]) -> Attack:
    everyone = BLOCKS * PEOPLE
    return Attack.counted(name, sum(_right(found, truth)), everyone, baseline=sum(guess) / everyone)


def _figure(solved: list[Counts], close: list[Counts], truth: list[Counts], guess: float) -> Figure:
    """The share of people found in each block, in rising order."""
    order = list(range(1, BLOCKS + 1))
    exact, noisy = (sorted(k / PEOPLE for k in _right(found, truth)) for found in (solved, close))
    return Figure(
        f"Blocks of {PEOPLE} people from their published tables",
        "blocks, in rising order",
        "share of people reconstructed",
        series=[
            Series("exact tables, nobody counting", order, exact, style="points"),
            Series("noisy tables under an account", order, noisy, style="points"),
            Series("guessing", [1, BLOCKS], [guess, guess], style="dotted"),
        ],
    )
