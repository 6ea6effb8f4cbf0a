"""What chance allows in a recorded training loop: tests of its noise and of its sampling.

Each test has a law that is known if the loop does what it declares: χ² for sums of squares of the noise,
binomial for how often examples are taken. A finding is reported where that law gives `level` at most.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dalenius.audits.replaying import Finding, Recorded
from dalenius.mechanisms.mechanism import Floats

ENTRIES = 8
"""Shorter vectors of noise are not compared: rounded to a grid, they could agree by chance."""


def noise(recorded: Recorded, scale: float, level: float) -> Iterator[Finding]:
    """Sums of squares against their χ² laws, from below only: more noise than declared harms nobody."""
    from scipy.stats import chi2

    squares = np.array([step.noise for step in recorded.steps]) ** 2 / scale**2
    steps, entries = squares.shape
    if chi2.cdf(squares.sum(), steps * entries) < level:
        yield Finding("noise", _too_small(float(np.sqrt(squares.mean())), scale, recorded))
        return
    for sums, degrees, where in ((squares.sum(1), entries, "step"), (squares.sum(0), steps, "coordinate")):
        chances = chi2.cdf(sums, degrees)
        at = int(np.argmin(chances))
        if len(sums) * chances[at] < level:
            yield Finding("noise", f"next to none in {where} {at}.", at if where == "step" else None)


def _too_small(ratio: float, scale: float, recorded: Recorded) -> str:
    text = f"its scale is {ratio * scale:.3g}, and {scale:.3g} is declared"
    batch = float(np.mean([len(step.sampled) for step in recorded.steps]))
    twice = batch > 2 and 0.8 < ratio * batch < 1.25
    return text + (f": divided by the batch size, {batch:.4g}, twice?" if twice else ".")


def reuse(recorded: Recorded) -> Iterator[Finding]:
    """Continuous noise is never the same twice."""
    drawn = np.array([step.noise for step in recorded.steps])
    rounding = max(step.rounding for step in recorded.steps)
    for rows, what in ((drawn, "steps"), (drawn.T, "coordinates")):
        pair = _alike(rows, rounding)
        if pair is not None:
            yield Finding("reuse", f"{what} {pair[0]} and {pair[1]} have the same noise.")


def _alike(rows: Floats, rounding: float) -> tuple[int, int] | None:
    """Two rows that agree within rounding, but for the sign: neighbours, once sorted by a weighted sum."""
    if rows.shape[1] < ENTRIES or not rows.any():
        return None
    order = np.argsort(np.abs(rows @ np.cos(np.arange(rows.shape[1]))), kind="stable")
    near, far = rows[order[:-1]], rows[order[1:]]
    apart = np.minimum(np.abs(near - far).max(axis=1), np.abs(near + far).max(axis=1))
    empty = np.abs(near).max(axis=1) <= rounding
    found = np.flatnonzero((apart <= 2 * rounding) & ~empty)
    return None if not len(found) else (min(p := order[found[0] : found[0] + 2].tolist()), max(p))


def sampling(recorded: Recorded, rate: float, level: float) -> Iterator[Finding]:
    """Whether every example was taken by a coin of its own in every step."""
    taken = _taken(recorded)
    yield from _rate(taken, rate, level)
    yield from _shuffled(taken, rate, level)


def _taken(recorded: Recorded) -> NDArray[np.bool_]:
    """Steps by examples: who was in which batch."""
    taken = np.zeros((len(recorded.steps), recorded.examples), dtype=bool)
    for row, step in zip(taken, recorded.steps, strict=True):
        row[step.sampled] = True
    return taken


def _rate(taken: NDArray[np.bool_], rate: float, level: float) -> Iterator[Finding]:
    from scipy.stats import binom, binomtest

    steps, examples = taken.shape
    if binomtest(int(taken.sum()), taken.size, rate).pvalue < level:
        yield Finding(
            "rate", f"examples are taken at the rate {taken.mean():.4g}, and {rate:.4g} is declared."
        )
    most = int(taken.sum(axis=0).max())
    if examples * binom.sf(most - 1, steps, rate) < level:
        yield Finding(
            "rate", f"one example is in {most} of {steps} batches, too many at the rate {rate:.4g}."
        )


def _shuffled(taken: NDArray[np.bool_], rate: float, level: float) -> Iterator[Finding]:
    """Independent coins give batches of many sizes, and take some examples never in an epoch, some twice."""
    from scipy.stats import binom

    steps, examples = taken.shape
    sizes = taken.sum(axis=1)
    usual = float(binom.pmf(int((examples + 1) * rate), examples, rate))
    if len(np.unique(sizes)) == 1 and usual ** (steps - 1) < level:
        yield Finding("shuffled", f"every batch has {sizes[0]} examples: no Poisson sample does that.")
    epoch = round(1 / rate)
    whole = steps // epoch
    per_epoch = taken[: whole * epoch].reshape(whole, epoch, examples).sum(axis=1)
    once = int((per_epoch == 1).sum())
    if whole and binom.sf(once - 1, per_epoch.size, float(binom.pmf(1, epoch, rate))) < level:
        share = once / per_epoch.size
        yield Finding("shuffled", f"{share:.0%} of examples are taken exactly once in {epoch} steps.")
