"""`Correlated`: noise that partly cancels from step to step, exact, of which nothing is kept.

    private = dp.learn.Private(model, optimizer, data, batch_size=256, epochs=10, clip=1, epsilon=3,
                               delta=1e-5, sampling="cyclic", bands=8)

Weights move by sums of gradients, and independent noise on these adds up. Let D be lower-triangular with the
numbers d_0 = 1, d_1, …, d_{b−1} in every column, C = D⁻¹, and N_0, N_1, … vectors of real Gaussians of
`scale` steps of the grid. The sum x_t of step t, in whole steps of the grid, is released as

    x_t + R_t,   R_t = round(Σ_{j<b} d_j N_{t−j}),   rounded half up.

Theorem. If each unit takes part in steps of a participation π, and moves x_t by at most Δ steps of the grid
where it does, all T outputs together are dominated by N(μ, 1) against N(0, 1), μ = sens_π(C)·Δ/scale.
Proof. Cx + N is that by the theorem of `losses.streams.factorization`, also where x_t depends on what was
released before. D(Cx + N) = x + DN is a function of it. x_t is whole, so rounding x_t + (DN)_t half up gives
x_t + R_t: a function of it again.  (docs/proofs/correlated.md)

The numbers N are real: not integers, not floats. With integers z in their place and d_1 = −½,
2(x_1 + z_1 − z_0/2) + (x_0 + z_0) = 2(x_1 + z_1) + x_0: whoever sees the outputs learns the parity of x_0,
however much noise there is. `noise.filtered` draws R_t as if N were known to the last digit. N follows from
the key of the run, so old ones are drawn again: every step costs b draws of noise, and no memory.

D has the first bands of the square root (`losses.streams.inverse`); `noise_multiplier` is scale/Δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import torch
from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.adaptive import Quantile
from dalenius.learn.clipping import Clipping
from dalenius.learn.noising import add_steps
from dalenius.learn.sampling.cyclic import Cyclic
from dalenius.learn.sampling.scheme import Sampling
from dalenius.losses.streams.inverse import BITS, BandedInverse
from dalenius.noise.filtered import Filter, Reals
from dalenius.noise.stream import StreamKey

CELLS, PLACES, FURTHER = 1, 5, 6
"""The first numbers of the paths of streams: of cells, as of all noise, and of places in them."""


@dataclass(frozen=True)
class Correlated:
    """Noise of `bands` draws a step: more of them cancel better, and take longer."""

    bands: int

    @property
    def entries(self) -> tuple[float, ...]:
        """d_0, d_1, …"""
        return BandedInverse.square_root(self.bands, self.bands).entries

    @property
    def deviation(self) -> float:
        """Of the noise of a step, in standard deviations of N: ‖d‖."""
        return math.hypot(*self.entries)

    def filter(self, scale: Fraction) -> Filter:
        """For a scale in steps of the grid."""
        weights = tuple(int(entry * 2**BITS) for entry in self.entries)
        return Filter(weights, scale, BITS)

    def add(
        self,
        totals: Sequence[Tensor],
        scale: Fraction,
        step: float,
        divisor: float,
        key: StreamKey,
        paths: Sequence[Sequence[int]],
    ) -> None:
        """In place: (round(total/step) + R)·step/divisor. `paths` name N_t, N_{t−1}, …, back to N_0."""
        drawn = np.empty(sum(one.numel() for one in totals), np.int32)
        self.filter(scale).fill(drawn, [reals(key, path) for path in paths[: self.bands]])
        add_steps(totals, torch.from_numpy(drawn), step, divisor)
        drawn.fill(0)


def reals(key: StreamKey, path: Sequence[int]) -> Reals:
    """The vector N of a path: its step, the attempt at it, its tensors."""
    return Reals(key.stream(CELLS, *path), key.stream(PLACES, *path), partial(key.stream, FURTHER, *path))


def correlated(sampling: Sampling, clipping: Clipping, evaluations: int = 1) -> Correlated | None:
    """The noise that goes with a sampling, if it is correlated: for one bound on the L2 norm in all steps."""
    if not isinstance(sampling, Cyclic) or sampling.bands == 1:
        return None
    if clipping.norm != "l2" or isinstance(clipping, Quantile):
        raise NotSound(
            "Correlated noise is Gaussian, for one bound on the L2 norm in all steps.",
            remedy="Pass clip as a number, PerLayer or Automatic; or bands=1.",
        )
    if evaluations > 1:
        raise NotSound(
            "Correlated noise is for one gradient a step.",
            remedy="Choose an optimizer without closures, or bands=1.",
        )
    return Correlated(sampling.bands)
