"""Rows without names beside a list with names, and the same data as private counts under an account.

The list gives everybody's name, age, sex and postcode; the rows give age, sex, postcode and diagnosis. Linked
rows tell the diagnosis. The private release counts people by all four, in full detail, at ε = 1 for the
replacement of one person's row; the attacker weighs the diagnoses of a person's cell by Bayes' rule.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.linkage import NOBODY, link, links
from dalenius.attacks.result import Attack
from dalenius.attacks.unique import uniqueness
from dalenius.figures import Figure, Series
from dalenius.ledger import Budget, Ledger
from dalenius.mechanisms import Laplace
from dalenius.privacy import Grid, Sensitivity, Unit

PEOPLE, EPSILON = 2_000, 1
AGES, SEXES, POSTCODES = 72, 2, 60
LIKELY = np.array([0.5, 0.25, 0.15, 0.1])
"""How frequent each diagnosis is, which everybody knows."""
KNOWN = ("age", "sex", "postcode")

Town = dict[str, NDArray[np.int64]]


def demo(*, seed: int | None = None) -> tuple[Attack, Attack]:
    """Linkage to rows, and to private counts."""
    rng = np.random.default_rng(seed)
    town = _town(rng)
    order = rng.permutation(PEOPLE)
    rows = {name: values[order] for name, values in town.items()}
    linked = link(rows, town, on=KNOWN, truth=order)
    usual = max(np.bincount(town["diagnosis"])) / PEOPLE
    guesses = _from_rows(rows, town)
    open_data = _told("rows without names", guesses, town, usual, details=dict(linked.details))
    counted = _from_counts(town, usual)
    figure = _figure(town, open_data, counted)
    return replace(open_data, figure=figure), replace(counted, figure=figure)


def _town(rng: np.random.Generator) -> Town:
    """Who lives where, and what they have."""
    sizes = {"age": AGES, "sex": SEXES, "postcode": POSTCODES}
    people = {name: rng.integers(0, size, PEOPLE) for name, size in sizes.items()}
    return people | {"diagnosis": rng.choice(len(LIKELY), PEOPLE, p=LIKELY)}


def _from_rows(rows: Town, town: Town) -> NDArray[np.int64]:
    """The diagnosis of the linked row; of those not linked, the most frequent one."""
    found = links(rows, town, on=KNOWN)
    guesses = np.zeros(PEOPLE, np.int64)
    guesses[found[found != NOBODY]] = rows["diagnosis"][found != NOBODY]
    return guesses


def _from_counts(town: Town, usual: float) -> Attack:
    """The likeliest diagnosis after noisy counts of each person's cell."""
    # One row that is replaced leaves one count and enters another.
    mechanism = Laplace.calibrate(
        epsilon=EPSILON,
        sensitivity=Sensitivity(l0=2, linf=1, relation="replace"),
        grid=Grid(0),
        exact=True,
    )
    account = Ledger.memory().open(
        "town",
        unit=Unit("person", relation="replace"),
        budget=Budget(epsilon=EPSILON),
    )
    cells = np.ravel_multi_index([town[name] for name in KNOWN], (AGES, SEXES, POSTCODES))
    counts = np.zeros((AGES * SEXES * POSTCODES, len(LIKELY)), np.int64)
    np.add.at(counts, (cells, town["diagnosis"]), 1)
    release = account.spend(mechanism, counts.ravel(), by="attacker")
    noisy = np.array(release.columns["value"], float).reshape(counts.shape)[cells]
    gain = (np.abs(noisy) - np.abs(noisy - 1)) / float(mechanism.scale)
    guesses = np.argmax(np.log(LIKELY) + gain, axis=1)
    # A guess is right with the likelihood of the most frequent diagnosis and the advantage, at most.
    most = float(LIKELY.max()) + mechanism.loss.advantage().upper
    bound = min(1.0, (most - usual) / (1 - usual))
    return _told("private counts under an account", guesses, town, usual, bound=bound)


def _told(
    name: str,
    guesses: NDArray[np.int64],
    town: Town,
    usual: float,
    *,
    bound: float | None = None,
    details: dict[str, float] | None = None,
) -> Attack:
    right = int((guesses == town["diagnosis"]).sum())
    return Attack.counted(
        f"diagnosis from {name}", right, PEOPLE, baseline=usual, bound=bound, details=details
    )


def _figure(town: Town, open_data: Attack, counted: Attack) -> Figure:
    """How many are alone with what is known of them, and what is learned of them."""
    alone = uniqueness(town, on=KNOWN)
    known = [1, 2, 3]
    shares = [max(s for names, s in alone.shares.items() if len(names) == k) for k in known]
    ends = (known[0], known[-1])
    return Figure(
        "Diagnoses of named people",
        "how many of age, sex and postcode are known",
        "share of people",
        series=[
            Series("the only one with what is known of them", known, shares),
            Series("diagnosis right, from rows", ends, [open_data.success] * 2, style="dashed"),
            Series("diagnosis right, from private counts", ends, [counted.success] * 2, style="dashed"),
            Series("diagnosis right, by guessing", ends, [counted.baseline] * 2, style="dotted"),
        ],
    )
