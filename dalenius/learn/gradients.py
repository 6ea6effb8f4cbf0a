"""`Watched`: a model whose backward passes leave, for each example, its norm and its share of a sum.

One forward and one backward pass, as ever. `shares` then says how long every example's gradient is, and
`Shares.add` sums them with a weight for each. An ordinary gradient is given to no parameter: one that has got
one was used outside of the model's forward pass, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.marks import MIXED, mark, tensors_in
from dalenius.learn.parts import Part
from dalenius.learn.tape import Tape


class Shares:
    """The gradients of the examples of one pass, by parameter."""

    def __init__(self, parts: Mapping[Tensor, Part], examples: int) -> None:
        self._parts, self.examples = parts, examples

    def norms(self, norm: str = "l2") -> dict[Tensor, Tensor]:
        """For each parameter and example, the squared L2 norm of its gradient, or the L1 norm."""
        if norm == "l2":
            return {parameter: part.squared() for parameter, part in self._parts.items()}
        return {parameter: part.absolute() for parameter, part in self._parts.items()}

    def forget(self, bad: Tensor) -> None:
        """Leave the marked examples out: what they have is not a number."""
        for part in self._parts.values():
            part.forget(bad)

    def add(
        self,
        weights: Mapping[Tensor, Tensor] | Tensor,
        totals: Mapping[Tensor, Tensor],
        *,
        fresh: Set[Tensor] = frozenset(),
    ) -> None:
        """Add to each parameter's total the gradients of all examples, each times its weight.

        What is in a total that is `fresh` does not count.
        """
        for parameter, part in self._parts.items():
            own = weights if isinstance(weights, Tensor) else weights[parameter]
            part.add(own, totals[parameter], keep=parameter not in fresh)

    @property
    def parameters(self) -> Set[Tensor]:
        """Those that were used."""
        return self._parts.keys()


class Watched(nn.Module):
    """The model, watched. Called as the model is; the batch is the first dimension of its inputs."""

    def __init__(self, model: nn.Module, *, rows_per_example: int = 1, batch_dim: int = 0) -> None:
        super().__init__()
        self.inner, self._each, self._dim = model, rows_per_example, batch_dim
        names: dict[Tensor, str] = {one: name for name, one in model.named_parameters() if one.requires_grad}
        self._tape = Tape(names)
        self.watching, self.coarse = True, False
        self.weights: Tensor | None = None
        self.rows: int | None = None

    @property
    def names(self) -> Mapping[Tensor, str]:
        """The trained parameters and what they are called."""
        return self._tape.names

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the model's."""
        if not torch.is_grad_enabled() or not self.watching:
            return self.inner(*args, **kwargs)
        tensors = [*tensors_in(args), *tensors_in(kwargs)]
        rows = tensors[0].shape[self._dim]
        self._tape.open(rows // self._each, rows)
        for one in tensors:
            mark(one, self._outer(one, rows))
        with self._tape:
            result = self.inner(*args, **kwargs)
        for one in tensors_in(result):
            self._leave(one, rows)
        return result

    def _leave(self, result: Tensor, rows: int) -> None:
        """What comes back to rows that do not count is nothing."""
        self.coarse = self.coarse or result.dtype in (torch.float16, torch.bfloat16)
        if self.weights is None or not result.requires_grad:
            return
        if not result.dim() or len(result) != rows:
            raise NotSound(
                "The model returns something that is not one thing for each row.",
                remedy="Return outputs with the batch as first dimension, and compute losses in the loop.",
            )
        weights = self.weights.to(result.device, result.dtype).view(-1, *(1,) * (result.dim() - 1))
        result.register_hook(lambda gradient: gradient * weights)

    def _outer(self, given: Tensor, rows: int) -> int:
        fits = given.dim() > self._dim and given.shape[self._dim] == rows
        return math.prod(given.shape[: self._dim]) if fits else MIXED

    def shares(self) -> Shares:
        """Of the backward pass that was just made."""
        strays = [name for one, name in self.names.items() if one.grad is not None]
        if strays:
            raise NotSound(
                f"{' and '.join(strays[:3])} got a gradient that is not known example by example.",
                remedy="Call zero_grad() before every pass, and use parameters in the forward pass of the "
                "private model only, without checkpointing; weight decay belongs to the optimizer.",
            )
        if self.rows is not None and self._tape.seen - {self.rows // self._each}:
            raise NotSound(
                "The loop gives the model more or fewer rows than it was given, and each would count as an "
                "example of its own.",
                remedy="Pass views=… for several views of an example, which are clipped as one, and call the "
                "model under torch.no_grad() for anything else.",
            )
        return Shares(self._tape.parts(), self._tape.examples)
