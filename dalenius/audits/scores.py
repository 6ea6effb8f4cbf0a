"""By what draws are ranked: how much likelier each is on the first of two inputs than on the second.

By Neyman and Pearson no test does better than one by the likelihood ratio. It is known where the law is
closed, be it for all of a draw or for each of its entries, which then add. But the law is a part of what is
claimed: for vectors, as where it is not known, ratios are also learned, from draws that serve for nothing
else. They come from the frequencies of outcomes where these are few; from those of every column by
itself, cut at its quantiles, as a sum; and from the direction ⟨w, x⟩ in which the means of the two inputs
differ, each column weighed against its own spread. Every column counts. A score, good or bad, is fixed before
the draws that are judged by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.mechanism import Floats, Law, Mechanism

Scores = Callable[[NDArray[Any]], Floats]
Case = tuple[Any, Any]

EXACT = "tests by the exact likelihood ratio"
FEW = 4096
"""Up to so many different outcomes are told apart by their frequencies."""
BINS = 64
"""Into so many parts a column is cut."""
DIGITS = 9
"""Outcomes of one ratio must not be told apart by its last digits: a lucky few would win the training."""


def known(mechanism: Mechanism, case: Case, laws: Sequence[Law | None]) -> dict[str, Scores]:
    """The exact score by its name, where it is known."""
    if mechanism.log_ratio(mechanism.sample(case[0], 1), case) is not None:
        return {EXACT: lambda draws: _known_ratio(mechanism, draws, case)}
    closed = [dict(zip(law.outcomes, law.masses.tolist(), strict=True)) for law in laws if law is not None]
    return {EXACT: _ratio(*closed)} if len(closed) == 2 else {}


def learned(first: NDArray[Any], second: NDArray[Any], *, exact: bool) -> dict[str, Scores]:
    """Scores by their names, from draws that serve for nothing else."""
    found, draws = dict[str, Scores](), (first, second)
    numeric = all(d.dtype.kind in "biuf" for d in draws)
    few = not numeric or all(len(np.unique(d[: 2 * FEW], axis=0)) <= FEW for d in draws)
    if few and not exact:
        found["tests by estimated frequencies"] = _by_frequencies(*draws)
    if numeric and (first.ndim > 1 or not few):
        columns = [_columns(d) for d in draws]
        found["tests by frequencies, column by column"] = _by_columns(*columns)
        found["threshold tests on a weighted sum"] = _direction(*columns)
    return found


def _known_ratio(mechanism: Mechanism, draws: NDArray[Any], case: Case) -> Floats:
    found = mechanism.log_ratio(draws, case)
    assert found is not None
    return np.round(found, DIGITS)


def _ratio(first: dict[Any, float], second: dict[Any, float]) -> Scores:
    """log P_a/P_b of each outcome."""
    outcomes = sorted({*first, *second}, key=key)
    with np.errstate(divide="ignore"):
        p, q = (np.log([side.get(o, 0.0) for o in outcomes]) for side in (first, second))
    with np.errstate(invalid="ignore"):
        ratios = np.round(np.nan_to_num(p - q, nan=0.0, posinf=1e9, neginf=-1e9), DIGITS)
    keys = np.array([key(o) for o in outcomes])

    def ranked(values: NDArray[Any]) -> Floats:
        found = _names(values)
        place = np.clip(np.searchsorted(keys, found), 0, len(keys) - 1)
        return np.where(keys[place] == found, ratios[place], 0.0)

    return ranked


def _by_frequencies(first: NDArray[Any], second: NDArray[Any]) -> Scores:
    """log P_a/P_b of each outcome, as often as it was drawn."""
    counts = [dict(zip(*np.unique(_names(d), return_counts=True), strict=True)) for d in (first, second)]
    return _ratio(*({k: c.get(k, 0) + 0.5 for k in {*counts[0], *counts[1]}} for c in counts))


def _by_columns(first: Floats, second: Floats) -> Scores:
    """The sum over columns of log P_a/P_b between quantiles."""
    tables = []
    for sides in zip(first.T, second.T, strict=True):
        cuts = np.unique(np.quantile(np.concatenate(sides), np.linspace(0, 1, BINS + 1)[1:-1]))
        places = [np.searchsorted(cuts, side, side="right") for side in sides]
        p, q = (np.bincount(place, minlength=len(cuts) + 1) + 0.5 for place in places)
        tables.append((cuts, np.log(p / q)))

    def ranked(values: NDArray[Any]) -> Floats:
        total = np.zeros(len(values))
        for column, (cuts, ratios) in zip(_columns(values).T, tables, strict=True):
            total += ratios[np.searchsorted(cuts, column, side="right")]
        return total

    return ranked


def _direction(first: Floats, second: Floats) -> Scores:
    """The difference of the means over the variance, column by column."""
    spread = first.var(axis=0) + second.var(axis=0)
    weights = (first.mean(axis=0) - second.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return lambda values: np.asarray(_columns(values) @ weights)


def _columns(values: NDArray[Any]) -> Floats:
    """Rows of finite numbers."""
    return np.nan_to_num(np.asarray(values, dtype=np.float64).reshape(len(values), -1))


def key(outcome: Any) -> Any:
    """An outcome as a number or a text that compares with those drawn."""
    return float(outcome) if isinstance(outcome, int | float | Fraction) else str(outcome)


def _names(values: NDArray[Any]) -> NDArray[Any]:
    """Outcomes as numbers or texts that compare: rows of several numbers as texts."""
    if values.ndim == 1:
        return values.astype(np.float64) if values.dtype.kind in "biuf" else values.astype(str)
    rows, place = np.unique(values, axis=0, return_inverse=True)
    return np.array([str(tuple(row)) for row in rows.tolist()])[place.reshape(-1)]
