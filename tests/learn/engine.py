"""The engine beside the loop over examples: norms, sums and clipped means by both."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor, nn

from dalenius.learn.adding import Plan, Sum
from dalenius.learn.clipping import Clipping, Flat, read_clipping
from dalenius.learn.gradients import Shares, Watched
from dalenius.learn.numerics import Numerics

from .architectures import Architecture
from .architectures.architecture import Loss
from .reference import Gradients, losses

EXACT = Numerics(9, Fraction(0))
"""No slack, so that what is clipped to is what is asked for."""


def watched_pass(
    model: nn.Module, inputs: tuple[Tensor, ...], loss: Loss, *, batch_dim: int = 0
) -> tuple[Watched, Shares]:
    """One pass over a batch, and its shares."""
    watched = Watched(model, batch_dim=batch_dim)
    losses(watched, inputs, loss).sum().backward()
    return watched, watched.shares()


def shares_of(
    architecture: Architecture, model: nn.Module, inputs: tuple[Tensor, ...]
) -> tuple[Watched, Shares]:
    """The same for an architecture."""
    return watched_pass(model, inputs, architecture.loss, batch_dim=architecture.batch_dim)


def norms_of(shares: Shares) -> Tensor:
    """Of each example's whole gradient, in double precision."""
    squared = [one.double() for one in shares.norms().values()]
    return torch.stack(squared).sum(0).sqrt() if squared else torch.zeros(shares.examples)


def clipped_sum(
    watched: Watched, shares: Shares, clip: float | Clipping, numerics: Numerics = EXACT
) -> Gradients:
    """What is summed before noise, by name."""
    clipping = clip if isinstance(clip, Clipping) else Flat(clip)
    total = Sum(watched.names, Plan(read_clipping(clipping), Fraction(1), Fraction(1), numerics))
    total.add(shares)
    return dict(zip(watched.names.values(), total.exact(), strict=True))


def length(gradients: Gradients) -> float:
    """Of all of it."""
    return float(torch.stack([one.double().norm() for one in gradients.values()]).norm())


def apart(one: Gradients, two: Gradients) -> float:
    """How far apart."""
    assert one.keys() == two.keys()
    return length({name: one[name].double() - two[name].double() for name in one})
