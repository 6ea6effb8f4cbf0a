"""`Watched`: a model whose backward passes leave, for each example, its norm and its share of a sum.

One forward and one backward pass, as ever. `shares` then says how long every example's gradient is, and
`Shares.add` sums them with a weight for each. An ordinary gradient is given to no parameter: one that has got
one was used outside of the model's forward pass, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn import gpu
from dalenius.learn.bundles import Group, grouped, left_over
from dalenius.learn.layers import Layers, Summing
from dalenius.learn.marks import MIXED, mark, note_rows, replaced, tensors_in
from dalenius.learn.parts import HALF, Part, full
from dalenius.learn.sharded import resharded
from dalenius.learn.sharding import Shards
from dalenius.learn.tape import Tape


class Shares:
    """The gradients of the examples of one pass, by parameter."""

    def __init__(self, parts: Mapping[Tensor, Part], examples: int, *, padding: int = 0) -> None:
        self._parts, self.examples, self.parameters = parts, examples, parts.keys()
        self.padding = padding
        """So many of the examples, the last ones, were made up."""
        self._groups: list[Group] = []

    def norms(self, norm: str = "l2", *, apart: bool = True) -> dict[Tensor, Tensor]:
        """For each parameter and example, the squared L2 norm of its gradient, or the L1 norm.

        If not `apart`, one parameter may stand for several, of which only the sum is asked.
        """
        if norm != "l2":
            return {one: part.absolute() for one, part in self._parts.items()}
        if not self._groups:
            self._groups = grouped(self._parts, apart=apart)
            self._parts = left_over(self._parts, self._groups)
        found = {one: part.squared() for one, part in self._parts.items()}
        for group in self._groups:
            found |= group.norms()
        return found

    def forget(self, bad: Tensor) -> None:
        """Leave the marked examples out: what they have is not a number."""
        for part in self._parts.values():
            part.forget(bad)
        for group in self._groups:
            group.forget(bad)

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

        def own(parameter: Tensor) -> Tensor:
            return weights if isinstance(weights, Tensor) else weights[parameter]

        for parameter, part in self._parts.items():
            part.add(own(parameter), totals[parameter], keep=parameter not in fresh)
        for group in self._groups:
            group.add(own, totals, fresh)


class Lifted(torch.autograd.Function):
    """What a model returns. Gradients come back times a gain, if half precision would round 1/n of theirs."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, gain: float, weights: Tensor | None) -> Tensor:
        """The same, in single precision at least."""
        ctx.gain, ctx.weights, ctx.dtype = gain, weights, result.dtype
        return full(result) if result.dtype in HALF else result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Multiplied before it is cut to the precision of the model."""
        g = full(gradients[0])
        if ctx.weights is not None:
            g = g * ctx.weights
        # Outputs may be long, as those over a vocabulary are: not once more for nothing.
        if ctx.gain == 1.0:
            return g.to(ctx.dtype), None, None
        return torch.mul(g, ctx.gain, out=gpu.room(g.shape, g, ctx.dtype)), None, None


def _eager(call: Any) -> Any:
    """Not compiled, from outside or inside: a compiled graph has no place for the parts of examples."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch.compiler.set_stance("force_eager"):
            return call(*args, **kwargs)

    return torch.compiler.disable(run)


class Watched(nn.Module):
    """The model, watched. Called as the model is; the batch is the first dimension of its inputs."""

    def __init__(self, model: nn.Module, *, rows_per_example: int = 1, batch_dim: int = 0) -> None:
        super().__init__()
        self.inner, self.each, self._dim = model, rows_per_example, batch_dim
        named = resharded(model).named_parameters()
        names: dict[Tensor, str] = {one: name for name, one in named if one.requires_grad}
        self._names, self._tape = names, Tape(names)
        self._shards = Shards.of(model, names, self._tape)
        self._half = any(one.dtype in HALF for one in model.parameters())
        self._compiled = any(type(one).__name__ == "OptimizedModule" for one in model.modules())
        self.watching, self.coarse = True, False
        self.weights: Tensor | None = None
        self.rows: int | None = None
        self.apart = False
        """Whether rows may be missing, so that all it returns has to be of one row each."""
        self.lifts, self.gain, self._padding = False, 1.0, 0
        self.busy = self.bare = False
        """Whether a forward pass is under way, and whether results are left as they are: then a backward pass
        begins with the gain."""

    @property
    def names(self) -> Mapping[Tensor, str]:
        """The trained parameters and what they are called."""
        return self._names

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the model's."""
        if self._compiled or torch.compiler.is_compiling():
            return _eager(self._forward)(*args, **kwargs)
        return self._forward(*args, **kwargs)

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [*tensors_in(args), *tensors_in(kwargs)]
        if not tensors:
            raise InvalidArgument("The model was given no tensor.", remedy="Pass it a batch of inputs.")
        rows = tensors[0].shape[self._dim]
        for one in tensors:
            note_rows(one, rows)
        result = self._run(args, kwargs, tensors, rows)
        for one in tensors_in(result):
            note_rows(one, rows)
        return result

    def _run(self, args: Any, kwargs: Any, tensors: list[Tensor], rows: int) -> Any:
        if not torch.is_grad_enabled() or not self.watching:
            return self.inner(*args, **kwargs)
        self._tape.open(rows // self.each, rows)
        self._padding = 0
        for one in tensors:
            mark(one, self._outer(one, rows))
        self.busy = True
        try:
            with self._tape:
                result = self.inner(*args, **kwargs)
        finally:
            self.busy = False
        half = any(one.dtype in HALF for one in tensors_in(result))
        self.coarse = self.coarse or half
        coarse = half or self._half or torch.is_autocast_enabled(tensors[0].device.type)
        self.gain = float(rows) if self.lifts and coarse else 1.0
        return replaced(result, lambda one: self._left(one, rows) if one.requires_grad else one)

    def _left(self, result: Tensor, rows: int) -> Tensor:
        """In single precision; what comes back is multiplied by the gain, and is nothing to missing rows."""
        if self.apart and (not result.dim() or len(result) != rows):
            raise NotSound(
                "The model returns something that is not one thing for each row.",
                remedy="Return outputs with the batch as first dimension, and compute losses in the loop.",
            )
        if self.weights is None:
            return result if self.bare else Lifted.apply(result, self.gain, None)
        weights = self.weights.to(result.device).view(-1, *(1,) * (result.dim() - 1))
        return Lifted.apply(result, self.gain, weights)

    def _outer(self, given: Tensor, rows: int) -> int:
        fits = given.dim() > self._dim and given.shape[self._dim] == rows
        return math.prod(given.shape[: self._dim]) if fits else MIXED

    def _check(self) -> None:
        """What is trained is what was to be trained when noise was planned, in full precision."""
        late = [
            name
            for name, one in self.inner.named_parameters()
            if one not in self.names
            and one not in self._tape.names
            and (one.requires_grad or one.grad is not None)
        ]
        if late:
            raise NotSound(
                f"{' and '.join(late[:3])} was not trained when the run began, and would get no noise.",
                remedy="Unfreeze parameters before, or begin a new run with them.",
            )
        if torch.get_float32_matmul_precision() != "highest":
            raise NotSound(
                "Products of matrices are made in less than single precision, which norms do not allow for.",
                remedy='Call torch.set_float32_matmul_precision("highest").',
            )

    def shares(self) -> Shares:
        """Of the backward pass that was just made."""
        self._check()
        if self.rows is not None and self._tape.seen - {self.rows // self.each + self._padding}:
            raise NotSound(
                "The loop gives the model more or fewer rows than it was given, and each would count as an "
                "example of its own.",
                remedy="Pass views=… for several views of an example, which are clipped as one, and call the "
                "model under torch.no_grad() for anything else.",
            )
        parts, examples = self.passed()
        return Shares(parts, examples, padding=self._padding)

    def passed(self) -> tuple[Mapping[Tensor, Part], int]:
        """The parts of the backward pass that was just made, and how many examples it had."""
        strays = [name for one, name in self.names.items() if one.grad is not None]
        strays += [] if self._shards is None else self._shards.strays()
        if strays:
            raise NotSound(
                f"{' and '.join(strays[:3])} got a gradient that is not known example by example.",
                remedy="Call zero_grad() before every pass, and use parameters in the forward pass of the "
                "private model only, without checkpointing; weight decay belongs to the optimizer.",
            )
        parts = self._tape.parts() if self._shards is None else self._shards.parts()
        return parts, self._tape.examples

    def by_layers(self, summing: Summing | None) -> None:
        """Make the clipped sums of layers on the way back; parts are kept while `summing` is None."""
        if self._shards is None:
            self._tape.layers = self._tape.layers or Layers(self.names)
            self._tape.layers.summing = summing

    # For passes that are recorded.

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """All parts, also those of layers that are clipped by themselves."""
        layers, self._tape.layers = self._tape.layers, None
        try:
            yield
        finally:
            self._tape.layers = layers

    @property
    def sharded(self) -> bool:
        """Whether parameters come and go during a pass."""
        return self._shards is not None

    @property
    def examples(self) -> int:
        """Of the last pass."""
        return self._tape.examples

    def state(self) -> list[Tensor]:
        """Parameters and buffers."""
        return [*self.inner.parameters(), *self.inner.buffers()]

    def adopt(self, parts: Mapping[Tensor, Part], examples: int, *, gain: float, padding: int) -> None:
        """As if a pass of these parts had just been made; the last examples of it were made up."""
        self._tape.open(examples, examples * self.each)
        self.gain, self._padding = gain, padding
        with self.keeping():
            for parameter, part in parts.items():
                self._tape.put(parameter, part)

    @contextmanager
    def standing_in(self, others: Mapping[Tensor, Tensor]) -> Iterator[None]:
        """Other tensors in the place of parameters and buffers."""
        homes: list[dict[str, Any]] = [
            home for one in self.inner.modules() for home in (one._parameters, one._buffers)
        ]
        before, tape, names = [dict(home) for home in homes], self._tape, self._names
        self._names = {others[one]: name for one, name in names.items()}
        self._tape = tape.of(self._names)
        try:
            for home in homes:
                home.update({name: others[one] for name, one in home.items() if one is not None})
            yield
        finally:
            self._tape, self._names = tape, names
            for home, held in zip(homes, before, strict=True):
                home.update(held)
