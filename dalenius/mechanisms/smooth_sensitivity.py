"""The median with noise as small as its smooth sensitivity (Nissim, Raskhodnikova and Smith 2007).

Values are clipped onto whole steps of a grid; neighbours replace one of the n, so n is public. With x₍ᵢ₎ the
i-th smallest (the lower bound for i < 1, the upper one for i > n) and m = ⌈n/2⌉, the local sensitivity of the
median x₍ₘ₎ at k changes from x is A_k = max over 0 ≤ t ≤ k+1 of x₍ₘ₊ₜ₎ − x₍ₘ₊ₜ₋ₖ₋₁₎.

Levels. Let s₀ be one step and s_{j+1} ≤ s_j/q, up to the whole range, with q = `ratio` < 1. With j(A) the
first level not below A, the smooth sensitivity is S = s_J, J = max(0, max_k j(A_k) − k). Neighbours are at
most one level apart, as A_k(x) ≤ A_{k+1}(x′), and their medians at most the lesser S, as A₀ ≤ S.

Noise. Laplace of scale b = `scale`·S is added, and the sum rounded to the grid and held within the bounds,
which is post-processing. In steps, P(0) = 1 − e^{−1/2b} and P(±k) = e^{−k/b} sinh(1/2b), drawn exactly (see
`rounded_laplace`). Not protected: how long it takes to sort, and to multiply by b.

Theorem. With c = `scale`, if 1/c ≤ ε and log(1/q) + q/c ≤ ε, the mechanism is (ε, δ)-private with
    δ = (1 − q) e^{−q(ε + log(1/q))/(1−q)} cosh(q/(c(1−q))).
On a fine and unbounded grid it is attained, by medians S and scales a factor q apart: the proof is in
docs/mechanisms/smooth_sensitivity.md. At every other ε the loss is that of `scaled_laplace`: about as much as
Laplace noise of 1/c and a rare event cost, so several medians cost half of what (ε, δ) alone would imply.
`calibrate` takes c = 2/ε and the least q.

The error depends on S, which is private, so none is stated.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.gridded import read_grid
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.mechanisms.rounded_laplace import rounded_laplace
from dalenius.mechanisms.scaled_laplace import dominating
from dalenius.mechanisms.step_noise import LEFT_OUT
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid
from dalenius.privacy.unit import Unit
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.release import Release

FINE = 2**40
"""Levels are whole multiples of this part of a step."""
MOST_LEVELS = 2**16
MOST_SCALE = 2**50
"""In steps."""
WIDE = 64
"""Steps between the medians of the worst case, where the bounds allow."""
LISTED = 2**20
"""Outcomes of a law that is listed."""


@dataclass(frozen=True)
class SmoothMedian(Mechanism, kind="smooth_median"):
    """The median from `lower` to `upper`, with noise of `scale` times its smooth sensitivity."""

    _: KW_ONLY
    epsilon: Parameter[Fraction] = Parameter(numbers.positive)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    ratio: Parameter[Fraction] = Parameter(numbers.rate)
    lower: Parameter[Fraction] = Parameter(numbers.exact)
    upper: Parameter[Fraction] = Parameter(numbers.exact)
    grid: Grid

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", read_grid(self.grid, _fine(self.lower, self.upper)))
        _ = self.loss
        least, most = self._ends
        if most - least > MOST or self.scale * Fraction(self._levels[-1], FINE) > MOST_SCALE:
            raise InvalidArgument(
                "The noise may need a scale of more than 2^50 grid steps.",
                remedy="Choose a coarser grid, or bounds that are nearer to each other.",
            )

    @property
    def loss(self) -> Loss:
        """The theorem's δ at `epsilon`, and what holds elsewhere."""
        failure = _failure(self.epsilon, self.scale, self.ratio)
        if failure is None:
            raise NotSound(
                "epsilon must be at least 1/scale, and at least log(1/ratio) + ratio/scale.",
                remedy="Use SmoothMedian.calibrate, or a larger scale.",
            )
        return dominating(self.scale, self.ratio, self.epsilon, failure, "replace")

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """The median of a private array of numbers."""
        return self._released({"value": self.sample(value, 1).tolist()}, ("value",), unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Medians of a public array."""
        place, scale = self._median(value)
        noisy = place + np.clip(rounded_laplace(scale, size), -MOST, MOST - 1)
        return np.asarray(np.clip(noisy, *self._ends) * float(self.grid.step))

    def worst_case(self) -> tuple[Any, Any]:
        """Two arrays whose medians are as far apart as the smooth sensitivity, one level from each other."""
        (least, most), levels = self._ends, self._levels
        level = int(np.searchsorted(levels // FINE, min(WIDE, (most - least) // 4), side="right")) - 1
        far = int(levels[max(level, 0)]) // FINE
        ties = max(1, self._level(2 * far) - max(level, 0))
        half = ties + len(levels)
        shape = np.repeat([-far, 0, far], [half - ties, ties, half])
        moved = np.repeat([-far, 0, far], [half - ties, ties - 1, half + 1])
        first, second = ((least + most) // 2 + values for values in (moved, shape))
        return first * float(self.grid.step), second * float(self.grid.step)

    def probabilities(self, value: Any) -> Law | None:
        """The law of the rounded noise, what is beyond the bounds counted at them."""
        place, scale = self._median(value)
        reach = math.ceil(-math.log(LEFT_OUT) * scale)
        if reach > LISTED:
            return None
        steps, rate = np.arange(-reach, reach + 1), float(1 / scale)
        masses = np.exp(-rate * np.abs(steps)) * math.sinh(rate / 2)
        masses[reach] = -math.expm1(-rate / 2)
        places, which = np.unique(np.clip(place + steps, *self._ends), return_inverse=True)
        outcomes = tuple(k * self.grid.step for k in places.tolist())
        return Law(outcomes, np.asarray(np.bincount(which, weights=masses), dtype=np.float64), LEFT_OUT)

    @staticmethod
    def calibrate(
        *, epsilon: Number, delta: Number, lower: Number, upper: Number, grid: Grid | None = None
    ) -> SmoothMedian:
        """Half of epsilon for the distance of medians, and scales as far apart as delta allows."""
        limit, failure = numbers.positive(epsilon, "epsilon"), numbers.positive(numbers.delta(delta), "delta")
        ends = numbers.exact(lower, "lower"), numbers.exact(upper, "upper")

        def kept(parts: int) -> bool:
            found = _failure(limit, 2 / limit, 1 - Fraction(parts, FINE))
            return found is not None and found <= failure

        low, high = 0, FINE
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if kept(middle) else (low, middle)

        def at(parts: int) -> SmoothMedian:
            return SmoothMedian(
                epsilon=limit,
                scale=2 / limit,
                ratio=1 - Fraction(parts, FINE),
                lower=ends[0],
                upper=ends[1],
                grid=read_grid(grid, _fine(*ends)),
            )

        less = 1
        while at(low).loss.delta(limit).upper > failure:
            low, less = max(0, low - less), 2 * less
        return at(low)

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """The outermost grid points within the bounds."""
        ends = self.grid.quantize(np.array([-np.inf, np.inf]), lower=self.lower, upper=self.upper)
        return int(ends[0]), int(ends[1])

    @cached_property
    def _levels(self) -> NDArray[np.object_]:
        """s₀, s₁, … in parts of a step, up to the whole range."""
        levels, top = [FINE], (self._ends[1] - self._ends[0]) * FINE
        while levels[-1] < top:
            levels.append(math.floor(levels[-1] / self.ratio))
            if levels[-1] == levels[-2] or len(levels) > MOST_LEVELS:
                raise InvalidArgument(
                    "ratio is so near 1 that the smooth sensitivity has too many levels.",
                    remedy="Choose a larger epsilon or delta, or a coarser grid.",
                )
        return np.array(levels, dtype=object)

    def _level(self, distance: int) -> int:
        """The first level not below a distance."""
        return int(np.searchsorted(self._levels, distance * FINE))

    def _median(self, value: Any) -> tuple[int, Fraction]:
        """The median in steps, and the scale of its noise."""
        values = np.sort(np.ravel(self.grid.quantize(value, lower=self.lower, upper=self.upper)))
        middle, far = (values.size + 1) // 2, len(self._levels) + 1
        index = np.arange(middle - far, middle + far + 1)
        inside = (index >= 1) & (index <= values.size)
        window = np.where(index < 1, self._ends[0], np.full(index.size, self._ends[1]))
        window[inside] = values[index[inside] - 1]
        most = [
            int(np.max(window[far : far + k + 2] - window[far - k - 1 : far + 1])) for k in range(far - 1)
        ]
        level = max(0, *(self._level(distance) - k for k, distance in enumerate(most)))
        return int(window[far]), self.scale * Fraction(self._levels[level], FINE)


def _fine(lower: Fraction, upper: Fraction) -> Grid:
    return Grid.within(numbers.positive(upper - lower, "upper − lower") / 2**20)


def _failure(epsilon: Fraction, scale: Fraction, ratio: Fraction) -> Fraction | None:
    """The theorem's δ, rounded up; None where its conditions do not hold for sure."""
    if ratio == 1:
        return Fraction(0) if 1 / scale <= epsilon else None
    with workprec(2 * BITS):
        q, limit, shift = ball(ratio), ball(epsilon), 1 / ball(scale)
        smooth = -q.log()
        if 1 / scale > epsilon or not smooth + q * shift <= limit:
            return None
        rest = q / (1 - q)
        exponents = (-rest * (limit + smooth + side * shift) for side in (1, -1))
        return Fraction(upper((1 - q) * sum((x.exp() for x in exponents), ball(0.0)) / 2))
