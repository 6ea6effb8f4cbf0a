"""Gradients: what one example moves, the noise on their sum, and how batches are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import losses, noise
from dalenius.audits.replaying import Recorder
from dalenius.audits.zoo.drawing import clamped, gaussian, next_to
from dalenius.audits.zoo.specimen import Specimen

CLIP = 64
"""The bound on one gradient, in steps of the grid."""
EXAMPLES, EPOCHS, RATE, ENTRIES = 100, 4, 0.1, 16

_noise, _eighth = gaussian(CLIP), gaussian(CLIP // 8)

Gradients = Sequence[int]
Batches = Callable[[], list[NDArray[np.int64]]]


def _clipped_sum(gradients: Gradients) -> int:
    return sum(clamped(each, -CLIP, CLIP) for each in gradients)


def _microbatches(gradients: Gradients) -> int:
    """Averages of two are clipped, not gradients."""
    averages = [sum(gradients[k : k + 2]) // len(gradients[k : k + 2]) for k in range(0, len(gradients), 2)]
    return _clipped_sum(averages) + _noise()


def _normalized(records: Gradients) -> int:
    """The gradient of each is its distance from the mean of all."""
    mean = sum(records) // max(len(records), 1)
    return _clipped_sum([each - mean for each in records]) + _noise()


def _by_entry(rows: Sequence[Gradients]) -> list[int]:
    return [_clipped_sum(column) + _noise() for column in zip(*rows, strict=True)]


def _by_norm(rows: Sequence[Gradients]) -> list[int]:
    """Rows above the norm are scaled down, toward zero."""
    return _by_entry([_within(row) for row in rows])


def _within(row: Gradients) -> Gradients:
    norm = sum(each * each for each in row) ** 0.5
    return row if norm <= CLIP else [int(each * CLIP / norm * (1 - 1e-9)) for each in row]


def _poisson() -> list[NDArray[np.int64]]:
    steps = EPOCHS * 10
    taken = noise.bernoulli(RATE, steps * EXAMPLES).reshape(steps, EXAMPLES)
    return [np.flatnonzero(row) for row in taken]


def _shuffled() -> list[NDArray[np.int64]]:
    orders = [np.random.default_rng().permutation(EXAMPLES) for _ in range(EPOCHS)]
    return [part for order in orders for part in np.split(order, 10)]


def _loop(batches: Batches, divisor: int) -> Callable[[Recorder], None]:
    """Steps over unit gradients; the noise is divided by so much before the sum is by the batch size."""

    def run(recorder: Recorder) -> None:
        for batch in batches():
            rows = np.zeros((len(batch), ENTRIES))
            rows[:, 0] = 1
            total = rows.sum(axis=0)
            drawn = noise.rounded_gaussian(2**20, ENTRIES) / 2**20 / divisor
            recorder.step(
                sampled=batch, contributions=rows, total=total, released=(total + drawn) / 10, divisor=10
            )

    return run


def _gray(name: str, wrong: str, source: str, broken: Callable[[Recorder], None]) -> Specimen:
    return Specimen(
        name=name,
        wrong=wrong,
        source=source,
        broken=broken,
        twin=_loop(_poisson, 1),
        claim=losses.Gaussian(1).poisson(RATE) * (EPOCHS * 10),
        inputs=[EXAMPLES],
        delta=1e-5,
        how="gray box",
    )


def _step(name: str, wrong: str, source: str, broken: Any, twin: Any, one: Any, *others: Any) -> Specimen:
    return Specimen(
        name=name,
        wrong=wrong,
        source=source,
        broken=broken,
        twin=twin,
        claim=losses.Gaussian(1),
        inputs=[one],
        neighbors=next_to(*others),
        delta=0.05,
        trials=4_000,
    )


def _right(gradients: Gradients) -> int:
    return _clipped_sum(gradients) + _noise()


SPECIMENS = (
    _step(
        "averages of microbatches clipped",
        "one example can move the clipped average from one bound to the other",
        "Ponomareva et al. 2023",
        _microbatches,
        _right,
        (-640, 1280),
        (-640,),
        (1280,),
    ),
    _step(
        "noise divided by the batch size twice",
        "the average of eight has an eighth of the noise it should",
        "Abadi et al. 2016",
        lambda gradients: _clipped_sum(gradients) + _eighth(),
        _right,
        (64,) * 8,
        (64,) * 7,
    ),
    _step(
        "loss that normalizes over the batch",
        "one example moves the mean that all others are measured from",
        "Ponomareva et al. 2023",
        _normalized,
        _right,
        (0, 0, 0, 0, 640),
        (0, 0, 0, 0),
    ),
    _step(
        "clipping entry by entry",
        "each of four entries is within the bound, and their norm twice that",
        "Abadi et al. 2016",
        _by_entry,
        _by_norm,
        ((64, 64, 64, 64), (0, 0, 0, 0)),
        ((0, 0, 0, 0),),
    ),
    _gray(
        "shuffled batches declared as Poisson",
        "every example is in one batch of each epoch for certain",
        "Chua et al. 2024",
        _loop(_shuffled, 1),
    ),
    _gray(
        "noise divided twice in a loop",
        "the noise is divided by the batch size, and again with the sum",
        "Abadi et al. 2016",
        _loop(_poisson, 10),
    ),
)
