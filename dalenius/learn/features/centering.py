"""The mean of private features, released with noise, to take off all of them before training.

Theorem. Each row is rounded toward zero onto a grid g and scaled down, in integers, to an L2 norm of at most
`norm`: a function of itself alone. So one row more or less moves the exact sum by at most `norm`, and rounded
Gaussian noise of scale `noise_multiplier` × `norm` on it has the loss of `losses.Gaussian(noise_multiplier)`
(see `mechanisms.gaussian`). Dividing by a public number of rows is post-processing.

Rows of length r that share a mean of length m spend the share (m/r)² of what clipping leaves of them on it.
A mean is cheap: with n rows an entry is off by about noise_multiplier × norm / n. It is charged beside the
training run, and the two losses add up by `+`, as tightly as they compose.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from torch import Tensor

from dalenius.errors import InvalidArgument
from dalenius.learn.whose import check_rows
from dalenius.ledger.account import Account
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps, clip_norm
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.release import Release

CHUNK = 1024
"""Rows that are worked on at once."""
FINENESS = 2**24
"""Steps of the grid that the norm has at least: sums of 2^37 rows fit 64 bits."""


@dataclass(frozen=True)
class Centering:
    """Noise on the sum of rows of so many entries, each of L2 norm at most `norm`."""

    entries: int
    norm: Fraction
    noise_multiplier: Fraction

    @property
    def mechanism(self) -> Gaussian:
        """Of the sum, in whole steps."""
        return Gaussian(
            scale=self.noise_multiplier * self.norm,
            sensitivity=Sensitivity(l0=self.entries, l2=self.norm),
            grid=Grid.within(self.norm / FINENESS),
            exact=True,
        )

    def total(self, features: Tensor) -> Steps:
        """The exact sum of clipped rows, in steps."""
        grid, found = self.mechanism.grid, np.zeros(self.entries, dtype=np.int64)
        assert grid is not None
        for start in range(0, len(features), CHUNK):
            rows = features[start : start + CHUNK].detach().cpu().reshape(-1, self.entries)
            steps = grid.quantize(rows.double().numpy(), lower=-self.norm, upper=self.norm)
            found += clip_norm(steps, self.norm / grid.step, norm="l2").sum(0)
        return found


def mean_of(
    features: Tensor,
    *,
    norm: Number,
    noise_multiplier: Number,
    public_size: int,
    account: Account | None = None,
    by: str = "",
    purpose: str = "mean of features",
) -> Release:
    """The mean of rows n × …, entry by entry in one column, `mean`, with error bars for its noise.

    Rows longer than `norm` are scaled down to it; `public_size` is a number of rows that may be published.
    """
    if not isinstance(features, Tensor) or features.dim() < 2 or not features.is_floating_point():
        raise InvalidArgument("features must be a tensor of floats, a row each.", remedy="Pass n × …")
    size, entries = numbers.count(public_size, "public_size"), int(np.prod(features.shape[1:]))
    asked = Centering(
        entries, numbers.positive(norm, "norm"), numbers.positive(noise_multiplier, "noise_multiplier")
    )
    check_rows(None if account is None else account.unit, by_unit=False)
    mechanism = asked.mechanism
    charge = nullcontext() if account is None else account.reserve(mechanism.loss, by=by, purpose=purpose)
    with charge as reservation:
        unit = None if account is None else account.unit_for(mechanism.loss)
        made = mechanism.release(asked.total(features), name="mean", unit=unit)
        done = made if reservation is None else reservation.commit(made)
    means = {name: (done[name] / size).tolist() for name in done.columns}
    return done.bounded(f"rows clipped to an L2 norm of {float(asked.norm):g}").postprocess(
        f"divided by {size}, a public number of rows", means
    )
