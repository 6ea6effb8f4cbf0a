"""The duration of a draw as a side channel: does it tell how large the noise is?

A sampler that tosses coins until one falls takes as long as the noise is large; who can time a release then
knows the noise, and subtracts it. `timing_attack` draws many times, sets the draws with noise above the
median apart from the others, and judges how well the processor time of a draw tells the two apart. The
interval is about independent draws on this machine as it was then: another load, or another machine, is
another measurement, and a duration that tells nothing here is no proof that it tells nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import Floats, judge, noted
from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers

WARM = 20
"""Draws that are not timed, so that imports and caches are not measured."""


def timing_attack(
    draw: Callable[[], float],
    *,
    trials: int = 4_000,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    clock: Callable[[], int] = time.process_time_ns,
) -> Attack:
    """Tell large noise from small by the processor time of its draw; `draw` gives the noise alone."""
    durations, sizes = _measured(draw, numbers.count(trials, "trials", least=8), clock)
    large = sizes > np.median(sizes)
    if min(np.count_nonzero(large), np.count_nonzero(~large)) < 4:
        raise InvalidArgument(
            "Hardly any noise is above its median.", remedy="Draw more often, or from a wider law."
        )
    found = judge("timing", durations[large], durations[~large], confidence=confidence, seed=seed)
    return noted(found, rank_correlation=_correlation(durations, sizes))


def _measured(draw: Callable[[], float], trials: int, clock: Callable[[], int]) -> tuple[Floats, Floats]:
    for _ in range(WARM):
        draw()
    durations, sizes = np.zeros(trials), np.zeros(trials)
    for trial in range(trials):
        start = clock()
        noise = draw()
        durations[trial] = clock() - start
        sizes[trial] = abs(noise)
    return durations, sizes


def _correlation(durations: Floats, sizes: Floats) -> float:
    """Spearman's, and 0 where all durations are equal."""
    from scipy.stats import spearmanr

    if np.ptp(durations) == 0 or np.ptp(sizes) == 0:
        return 0.0
    return float(spearmanr(durations, sizes).statistic)
