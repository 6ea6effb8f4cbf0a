"""`PrivateOptimizer`: private gradients for a loop and a sampler of one's own.

    >>> import torch
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> private = PrivateOptimizer(model, optimizer, clip=1, noise_multiplier=1, batch_size=4)
    >>> private.zero_grad()
    >>> private.model(torch.ones(4, 3)).square().mean().backward()
    >>> private.step()
    >>> private.loss
    Gaussian(noise_multiplier=1)

It vouches for what happens inside a step. How batches are drawn, how many steps there are and what they cost
in all is not seen from here: `private.caveats` says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.adam import tell
from dalenius.learn.adaptive import Quantile
from dalenius.learn.adding import Plan
from dalenius.learn.clipping import Clipping, PerLayer, read_clipping
from dalenius.learn.correlated import Correlated
from dalenius.learn.gradients import Watched
from dalenius.learn.model_tensors import check_model_tensors
from dalenius.learn.numerics import Numerics
from dalenius.learn.parts import Part
from dalenius.learn.recording import Recorded
from dalenius.learn.replacing import check_modules
from dalenius.learn.several import Processes, plain
from dalenius.learn.shared import join, sum_of
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

REDUCTIONS = ("mean", "sum")


class PrivateOptimizer:
    """An optimizer whose gradients are clipped example by example and carry noise.

    `batch_size` is the expected number of examples, by which sums are divided. `reduction` says what the
    criterion does with the losses of the rows of a batch. With `views` every example has so many rows that
    follow each other, averaged before they are clipped. `chunk` is the most examples of one backward pass.
    Processes of a `group` share a batch: all make the same steps, each with examples of its own.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        clip: Number | Clipping,
        noise_multiplier: Number,
        batch_size: Number,
        reduction: str = "mean",
        views: int = 1,
        chunk: int | None = None,
        group: Any = None,
    ) -> None:
        self.processes, model = Processes.of(group), plain(model)
        clipping = read_clipping(clip)
        self.noise_multiplier = numbers.positive(noise_multiplier, "noise_multiplier")
        expected = numbers.positive(batch_size, "batch_size")
        self._views = numbers.count(views, "views")
        check_modules(model)
        check_model_tensors(model)
        self.reduction, self.optimizer = read_reduction(reduction), optimizer
        self.model = Watched(model, rows_per_example=self._views)
        check_parameters(self.model, optimizer)
        many = self.processes.count
        plan = planned(self.model, clipping, self.noise_multiplier, expected, chunk, processes=many)
        self._sum = sum_of(self.model.names, plan, self.processes)
        self.model.lifts = reduction == "mean"
        if isinstance(clipping, PerLayer):
            self.model.by_layers(self._alone)
        self._key = self.processes.first("the key", StreamKey.fresh)
        self._process = os.getpid()
        self.steps, self._fresh = 0, True
        if many > 1:
            join(self.processes, self._facts(), model)

    @property
    def loss(self) -> Loss:
        """What a step costs an example that takes part in it."""
        plan = self._sum.plan
        return step_loss(plan.clipping.norm, self.noise_multiplier, plan.numerics.bits)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is left to the loop."""
        return (
            "how batches are drawn: amplification holds only for the sampler that it is computed for",
            "that every step is counted, also one on an empty batch",
            *(("that an example is given to one process only",) if self.processes.count > 1 else ()),
            "that no example changes another's gradient, through the model, the criterion or the loop",
            f"that the criterion takes the {self.reduction} over the rows of a backward pass",
            "that losses, gradients, batch sizes and the seed of torch's generators, which dropout draws "
            "from, are not published",
            *(("TAINTED: noise of a seed protects nobody",) if self._key.tainted else ()),
        )

    def _facts(self) -> dict[str, Any]:
        """What all processes have in common."""
        plan = self._sum.plan
        return {
            "plan": (plan.clipping, plan.noise_multiplier, plan.expected, plan.numerics),
            "views": self._views,
            "reduction": self.reduction,
            "optimizer": type(self.optimizer).__name__,
            "model": [(name, one.dtype, *one.shape) for one, name in self.model.names.items()],
        }

    def zero_grad(self) -> None:
        """As the optimizer's."""
        self.optimizer.zero_grad(set_to_none=True)

    def recorded(self, function: Callable[..., torch.Tensor], *, compile: bool = False) -> Recorded:
        """Passes of a function from a batch to its loss, to call in place of `backward()` (`recording`)."""
        return Recorded(self.model, function, compile=compile)

    def accumulate(self) -> None:
        """Take in the backward pass just made, without a step: its examples belong to the same batch."""
        if self._fresh:
            self._sum.clear()
            self._fresh = False
        shares = self.model.shares()
        check_parameters(self.model, self.optimizer)
        self._sum.add(shares, scale=self._scale(shares.examples))

    def _scale(self, examples: int) -> float:
        """What makes the gradient of a pass over so many a sum of those of its examples."""
        rows = examples * self._views if self.reduction == "mean" else 1
        return rows / self._views / self.model.gain

    def _alone(self, parts: Mapping[Tensor, Part]) -> Mapping[Tensor, Tensor]:
        examples = self.model._examples
        return self._sum.alone(parts, examples, scale=self._scale(examples))

    def step(self, closure: Callable[[], Any] | None = None) -> None:
        """Add noise and move the parameters; without a backward pass before, a step on an empty batch."""
        if closure is not None:
            raise NotSound(
                "A closure is evaluated as often as the optimizer likes, and each time costs a step.",
                remedy="Use dp.learn.Private, which charges each, or an optimizer without closures.",
            )
        if os.getpid() != self._process:
            raise NotSound(
                "In a forked process noise would be used a second time.",
                remedy="Make the optimizer in the process that trains.",
            )
        self.accumulate()
        tell(self.optimizer, self._sum.plan, self._sum.clip)
        # Whatever fails from here on, this noise is not used again.
        self.steps, self._fresh = self.steps + 1, True
        self._sum.release(self._key, self.steps - 1)
        self.optimizer.step()

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotSound(
            "A copy would use the same noise a second time.",
            remedy="Make another PrivateOptimizer, or use dp.learn.Private, which can be saved.",
        )


def planned(
    model: Watched,
    clipping: Clipping,
    noise_multiplier: Fraction,
    expected: Fraction,
    chunk: int | None,
    *,
    correlated: Correlated | None = None,
    processes: int = 1,
    chunks: int = 1,
) -> Plan:
    """Return what is done in every step.

    Args:
        model: The model that is trained.
        clipping: The clipping rule.
        noise_multiplier: The scale of the noise over the clipping bound.
        expected: The expected number of examples of a batch.
        chunk: The most examples of one backward pass; None for a whole batch.
        correlated: How noise of several steps is correlated, if it is.
        processes: The number of processes that share a batch.
        chunks: The number of chunks that a batch is handed out in.
    """
    names = model.names
    if not names:
        raise InvalidArgument("No parameter of the model requires a gradient.", remedy="Unfreeze some.")
    carried = (
        clipping.noise_multiplier(noise_multiplier, expected)
        if isinstance(clipping, Quantile)
        else noise_multiplier
    )
    numerics = Numerics.of(
        sum(one.numel() for one in names),
        noise_multiplier=carried,
        batch=expected,
        chunk=chunk or int(2 * expected) + 1,
        dtype=max((one.dtype for one in names), key=lambda one: torch.finfo(one).eps),
        norm=clipping.norm,
        processes=processes,
        chunks=chunks,
    )
    return Plan(clipping, carried, expected, numerics, correlated)


def step_loss(norm: str, noise_multiplier: Fraction, bits: int) -> Loss:
    """What a step costs an example that takes part, on a grid of which 2^bits steps make the bound."""
    if norm == "l2":
        return Gaussian(noise_multiplier)
    return DiscreteLaplace(noise_multiplier * (1 << bits), sensitivity=1 << bits)


def read_reduction(reduction: str) -> str:
    """What a criterion does with the losses of rows."""
    if reduction not in REDUCTIONS:
        raise InvalidArgument(
            f"reduction is one of {' and '.join(REDUCTIONS)}.", remedy='Pass reduction="mean".'
        )
    return reduction


def check_parameters(model: Watched, optimizer: torch.optim.Optimizer) -> None:
    """The optimizer moves what is trained, all of it and nothing else."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidArgument(
            "optimizer must be an optimizer of torch.",
            remedy="Pass torch.optim.SGD(model.parameters(), lr=…).",
        )
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise InvalidArgument(
            "SparseAdam takes sparse gradients, and private gradients have noise in every entry.",
            remedy="Pass torch.optim.Adam(model.parameters(), lr=…).",
        )
    moved = {id(one) for group in optimizer.param_groups for one in group["params"] if one.requires_grad}
    left = [name for one, name in model.names.items() if id(one) not in moved]
    if left:
        raise InvalidArgument(
            f"The optimizer does not move {' and '.join(left[:3])}.",
            remedy="Pass all trained parameters to the optimizer, or freeze these by requires_grad_(False).",
        )
    if len(moved) > len(model.names):
        raise InvalidArgument(
            "The optimizer moves parameters that are not the model's.",
            remedy="Pass model.parameters() to the optimizer.",
        )
