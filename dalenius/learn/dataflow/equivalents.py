"""Functions that cannot run on shapes alone, and functions with the same data flow that can.

These functions read values to check their arguments, or take lengths from tensors. What stands in for one has
results of the same shapes, and in each of them exactly the examples of the arguments meet that do in the
original.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.learn.dataflow import unequal_rows
from dalenius.learn.dataflow.private_numbers import BatchSize

Function = Callable[..., Any]


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _ctc(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Every row's loss follows from its scores (time, n, classes), its labels (n, …) and its lengths.

    Not by sums: a batch that is not in its place would come out as a total.
    """
    losses = log_probs.amax((0, 2)) + targets.flatten(1).amax(1)
    for lengths in (input_lengths, target_lengths):
        losses = losses + lengths if isinstance(lengths, Tensor) else losses
    return _reduced(losses, reduction)


def _dirichlet(concentration: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Every row of the last dimension is a draw from the simplex."""
    draws = torch._standard_gamma(concentration)
    return draws / draws.sum(-1, keepdim=True)


def _distances(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """Every entry is a distance of a row of the first tensor and a row of the second one."""
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs().sum(-1).sqrt()


def _binomial(count: Tensor, prob: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Every entry is a draw by itself."""
    return torch.poisson(count * prob)


def gaussian_likelihood(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return `functional.gaussian_nll_loss` without the check that variances are positive.

    The check would raise an error that depends on data. Arguments are those of torch.
    """
    if isinstance(var, Tensor) and var.dim() == input.dim() - 1 and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    var = var.clamp(min=eps) if isinstance(var, Tensor) else input.new_full((), max(float(var), eps))
    losses = 0.5 * (var.log() + (input - target).square() / var)
    return _reduced(losses + 0.9189385332046727 if full else losses, reduction)


def on_device(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A copy on another device, in another type if one is given."""
    given = (*args, *kwargs.values())
    dtype = next((value for value in given if isinstance(value, torch.dtype)), None)
    like = next((value for value in given if isinstance(value, Tensor)), None)
    dtype = like.dtype if dtype is None and like is not None else dtype
    return tensor.clone() if dtype is None else tensor.to(dtype)


EQUIVALENTS: dict[Function, Function] = {
    functional.ctc_loss: _ctc,
    torch._sample_dirichlet: _dirichlet,
    torch.binomial: _binomial,
    **{home.cdist: _distances for home in (torch, torch._VF)},
    Tensor.cpu: on_device,
    Tensor.cuda: on_device,
    Tensor.to: on_device,
    Tensor.pin_memory: on_device,
    **unequal_rows.FLOWS,
}
"""What the analysis runs in place of a function."""


def _inverse(*given: Any, **named: Any) -> Tensor:
    """The inverse of a matrix that has none is numbers without a meaning, in place of an error."""
    return torch.linalg.inv_ex(*given, **named)[0]


def _factor(*given: Any, **named: Any) -> Tensor:
    """As for inverses."""
    return torch.linalg.cholesky_ex(*given, **named)[0]


def _solution(*given: Any, **named: Any) -> Tensor:
    """As for inverses."""
    # A batch of vectors has a size of the batch where one matrix for all examples has none.
    if len(given) < 2 or not (given[1].dim() == 1 or isinstance(given[1].shape[-2], BatchSize)):
        return torch.linalg.solve_ex(*given, **named)[0]
    matrix, vector, *rest = given
    return torch.linalg.solve_ex(matrix, vector.unsqueeze(-1), *rest, **named)[0].squeeze(-1)


REPLACEMENTS: dict[Function, Function] = {
    functional.gaussian_nll_loss: gaussian_likelihood,
    torch.linalg.inv: _inverse,
    torch.inverse: _inverse,
    Tensor.inverse: _inverse,
    torch.linalg.solve: _solution,
    torch.linalg.cholesky: _factor,
}
"""What a private pass runs in place of a function that raises errors by values."""
