"""`Sum`: the clipped gradients of one logical batch, chunk by chunk, and the noise on them, once.

An example is clipped by itself, whatever it is computed with; noise is added to the sum of all chunks, and
what is released is divided by the expected size of a batch. Nothing else leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from dalenius.learn.adaptive import Quantile
from dalenius.learn.clipping import Clipping
from dalenius.learn.gradients import Shares
from dalenius.learn.noising import add_gaussian, add_laplace
from dalenius.learn.numerics import Numerics
from dalenius.noise.stream import StreamKey

NOISE, COUNT = 1, 2
"""The first numbers of the paths of streams: noise on a tensor, noise on the count of short gradients."""


@dataclass(frozen=True)
class Plan:
    """What is done in every step, all of it public."""

    clipping: Clipping
    noise_multiplier: Fraction
    expected: Fraction
    numerics: Numerics

    @property
    def scale(self) -> Fraction:
        """Of the noise, in steps of the grid."""
        return self.noise_multiplier * (1 << self.numerics.bits)


class Sum:
    """The sum of a logical batch, kept in the parameters' own buffers."""

    def __init__(self, names: Mapping[Tensor, str], plan: Plan) -> None:
        self.names, self.plan = names, plan
        self._totals = {one: torch.zeros_like(one) for one in names}
        self._clip = float(plan.clipping.clip)
        self._short = 0

    @property
    def clip(self) -> float:
        """The bound in force, which is public."""
        return self._clip

    def clear(self) -> None:
        """Before the first chunk of a batch."""
        for total in self._totals.values():
            total.zero_()
        self._short = 0

    def add(self, shares: Shares, *, scale: float = 1.0, real: Tensor | None = None) -> None:
        """One chunk: gradients of its backward pass times `scale`. What is not `real` counts nothing."""
        norms = shares.norms(self.plan.clipping.norm)
        if not norms or not shares.examples:
            return
        power = 2 if self.plan.clipping.norm == "l2" else 1
        scaled = {one: norm.double() * scale**power for one, norm in norms.items()}
        within = self.plan.numerics.within(self._clip)
        factors = self.plan.clipping.factors(scaled, within, self.names)
        if real is not None:
            factors = {one: factor * real for one, factor in factors.items()}
        total = torch.stack(list(scaled.values())).sum(0)
        bad = ~torch.isfinite(total)
        if bool(bad.any()):
            shares.forget(bad)
        shares.add({one: factor * scale for one, factor in factors.items()}, self._totals)
        self._count(total, bad, real)

    def _count(self, squared: Tensor, bad: Tensor, real: Tensor | None) -> None:
        """Examples whose gradient is within the bound, less those whose is not: for an adaptive bound."""
        signs = torch.where((squared.sqrt() <= self._clip) & ~bad, 1, -1)
        self._short += int(signs.sum() if real is None else (signs * real).sum())

    def release(self, key: StreamKey, *path: int) -> None:
        """Add noise of the streams of a path, and give every parameter its private gradient."""
        plan = self.plan
        noise = add_gaussian if plan.clipping.norm == "l2" else add_laplace
        step = self._clip / 2**plan.numerics.bits
        for number, (parameter, total) in enumerate(self._totals.items()):
            noise(total, step, plan.scale, float(plan.expected), key.stream(NOISE, *path, number))
            parameter.grad = total
        if isinstance(plan.clipping, Quantile):
            self._clip = plan.clipping.next(self._clip, self._short, plan.expected, key.stream(COUNT, *path))

    def exact(self) -> list[Tensor]:
        """The sums before noise: secret."""
        return list(self._totals.values())
