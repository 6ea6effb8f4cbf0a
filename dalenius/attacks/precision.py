"""The attack on floating-point noise (Mironov 2012 for Laplace; Jin et al. 2022 for Gaussian).

A sampler that adds a double to a double reaches only some doubles, and which ones depends on the value that
was to be hidden: near zero the sum 1 + noise has steps of 2⁻⁵³, while 0 + noise shows all the digits of the
noise. One output that the other input cannot have given ends the matter, whatever ε was.

`by_addition` decides it for every generator of noise at once. *Claim.* If any double n has fl(b + n) = y,
then one of the three doubles about fl(y − b) has. *Proof.* Rounding is monotone, so the reals r for which b +
r rounds to y are an interval, and y − b lies in it. If it holds a double n ≤ y − b, it holds the largest
double up to y − b, which lies between; and likewise from above. fl(y − b) is one of these two, the other is
next to it. ∎ So no sum is ever called impossible; what is called possible may still be impossible for a
reason of the generator. `by_logarithm` sees the one of the textbook's Laplace noise, ±scale·log u with u a
multiple of 2⁻⁵³.

Where outputs are called impossible on the very input that gave them, the sampler does not add such noise, and
nothing is concluded: the report then says that guessing is all there is, and its detail
`impossible_on_itself` why.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import Floats, judge, noted
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers

Draw = Callable[[float, int], NDArray[np.generic]]
"""A sampler: a value and how many outputs, to outputs."""
Reaches = Callable[[Floats, float], NDArray[np.bool_]]
"""Which outputs an input can give."""

NEARBY = 4
"""So many multiples of 2⁻⁵³ on either side of the likely one are tried, as its logarithm is rounded."""


def by_addition(outputs: Floats, value: float) -> NDArray[np.bool_]:
    """Which outputs are `value` plus some double, rounded to the nearest double."""
    noise = outputs - value
    tried = (noise, np.nextafter(noise, -np.inf), np.nextafter(noise, np.inf))
    return np.asarray(np.any([value + n == outputs for n in tried], axis=0))


def by_logarithm(scale: float) -> Reaches:
    """Which outputs are `value` ± scale·log u for a multiple u of 2⁻⁵³ in (0, 1)."""

    def reached(output: float, value: float) -> bool:
        noise = abs(output - value)
        likely = round(math.exp(-noise / scale) * 2**53)
        tried = range(max(1, likely - NEARBY), min(2**53, likely + NEARBY + 1))
        sign = 1.0 if output < value else -1.0
        return any(value + sign * (scale * math.log(u / 2**53)) == output for u in tried)

    return lambda outputs, value: np.array([reached(y, value) for y in outputs.tolist()], dtype=bool)


def precision_attack(
    draw: Draw,
    *,
    value: float = 0,
    neighbor: float = 1,
    outputs: int = 20,
    trials: int = 2_000,
    reaches: Reaches = by_addition,
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """Tell `value` from its neighbor by impossible outputs, `outputs` of them at a time.

    `loss` is that of one output: the report has what it allows for as many.
    """
    width, count = numbers.count(outputs, "outputs"), numbers.count(trials, "trials", least=8)
    drawn = [_drawn(draw, given, (count // 2) * width) for given in (value, neighbor)]
    wrong = np.array([[~reaches(y, float(given)) for given in (value, neighbor)] for y in drawn])
    itself = wrong[[0, 1], [0, 1]].mean()
    evidence = (wrong[:, 1].astype(int) - wrong[:, 0]) * (itself == 0)
    scores = evidence.reshape(2, -1, width).sum(axis=2)
    total = None if loss is None else loss * width
    found = judge("precision", scores[0], scores[1], loss=total, confidence=confidence, seed=seed)
    shares = {"neighbor": wrong[0, 1].mean(), "value": wrong[1, 0].mean(), "itself": itself}
    return noted(found, **{f"impossible_on_{name}": share for name, share in shares.items()})


def impossible(outputs: NDArray[np.generic], value: float, *, reaches: Reaches = by_addition) -> Floats:
    """Those of the outputs that `value` cannot have given."""
    given = np.asarray(outputs, dtype=np.float64)
    return given[~reaches(given, float(value))]


def _drawn(draw: Draw, value: float, size: int) -> Floats:
    found = np.asarray(draw(value, size), dtype=np.float64)
    if found.shape != (size,):
        raise InvalidArgument(
            "The sampler must give as many numbers as it is asked for.",
            remedy="Pass a function of a value and a size, such as mechanism.sample.",
        )
    return found
