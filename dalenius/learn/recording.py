"""`Recorded`: forward and backward passes, recorded once for each form of a batch and then made again.

    learn = private.recorded(lambda x, y: criterion(private.model(x), y), compile=True)
    for x, y in private.loader:
        private.zero_grad()
        learn(x, y)
        private.step()

What Python does in a pass is done when it is recorded. On a GPU all that it asked for is asked for at once
from then on; `compile` has it made into kernels of its own first, by torch's compiler, on any device. Norms,
sums and noise are those of any pass. Parameters that are sharded among processes come and go during a pass,
which is made as ever.

Poisson batches have all sizes, and a recording has one: a batch is filled up to the next of a few sizes with
copies of its first example, which count nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.gradients import Watched
from dalenius.learn.marks import tensors_in
from dalenius.learn.parts import HALF, Part
from dalenius.learn.placing import MOVES, RESHAPES

Parts = dict[Tensor, Part]
Run = Callable[[Sequence[Tensor]], tuple[Tensor, Parts]]
"""From the tensors of a batch to its loss, and to the parts of its gradients."""


class Recorded:
    """Passes of a function from a batch to its loss; `now` says whether to make one without a recording."""

    def __init__(
        self, model: Watched, function: Callable[..., Tensor], *, compile: bool, now: Callable[[], bool]
    ) -> None:
        self._model, self._function, self._compile, self._now = model, function, compile, now
        self._passes: dict[Hashable, Pass] = {}
        self._held, self._modules = model.state(), list(model.modules())

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Forward and backward; the loss, which is secret. Called in place of `backward()`."""
        flat, form = tree_flatten((args, kwargs))
        tensors = [one for one in flat if isinstance(one, Tensor)]
        if not tensors or not tensors[0].dim():
            raise InvalidArgument("There is no batch.", remedy="Pass tensors with the batch first.")
        others = [None if isinstance(one, Tensor) else one for one in flat]

        def loss(given: Sequence[Tensor]) -> Tensor:
            rest = iter(given)
            again = [next(rest) if isinstance(one, Tensor) else one for one in flat]
            found_args, found_kwargs = tree_unflatten(again, form)
            return self._function(*found_args, **found_kwargs)

        if self._now() or self._model.sharded or not (self._compile or tensors[0].is_cuda):
            found = loss(tensors)
            with _precise(found):
                found.backward()
            return found.detach()
        rows, model = len(tensors[0]), self._model
        inputs = tensors if model.weights is None else [*tensors, model.weights.to(tensors[0].device)]
        padded = sizes_up(rows // model.each) * model.each
        filled = [_filled(one, rows, padded) for one in inputs]
        key = form, tuple(map(repr, others)), *map(_form, filled), model.weights is None, *self._state(filled)
        if key not in self._passes:
            self._passes[key] = self._record(loss, filled)
        return self._passes[key].make(model, filled, rows)

    def _state(self, inputs: Sequence[Tensor]) -> tuple[Hashable, ...]:
        """What a recording depends on beside the forms of its inputs."""
        kind = inputs[0].device.type
        places = tuple(one.data_ptr() for one in self._held) if inputs[0].is_cuda else ()
        modes = tuple(one.training for one in self._modules)
        half = torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind)
        return places, modes, half, self._model.lifts

    def _record(self, loss: Callable[[Sequence[Tensor]], Tensor], inputs: Sequence[Tensor]) -> Pass:
        devices = [inputs[0].device] if inputs[0].is_cuda else []
        # What was drawn for a recording is nobody's: a run that is taken up again records at another step.
        with torch.random.fork_rng(devices), self._model.keeping():
            weighed = self._model.weights is not None
            bare = not weighed and self._exact(loss, inputs)
            return self._recorded(partial(self._both, loss, weighed, bare), inputs)

    def _exact(self, loss: Callable[[Sequence[Tensor]], Tensor], inputs: Sequence[Tensor]) -> bool:
        """Whether all that follows the model is in single precision, though its results may be in half.

        Then they need no copy in single precision: a factor at the end is in the gradient before it is cut.
        """
        self._model.bare, seen = True, Precise(self._model)
        try:
            with seen:
                return loss(inputs).dtype not in HALF and seen.exact
        finally:
            self._model.bare = False

    def _both(
        self,
        loss: Callable[[Sequence[Tensor]], Tensor],
        weighed: bool,
        bare: bool,
        given: Sequence[Tensor],
    ) -> tuple[Tensor, Parts]:
        """A forward and a backward pass."""
        model, before = self._model, self._model.weights
        model.weights, model.bare = given[-1] if weighed else None, bare
        try:
            found = loss(given[:-1] if weighed else given)
            with _precise(found):
                found.backward(torch.full_like(found, model.gain if bare else 1.0))
                return found.detach(), dict(model.passed()[0])
        finally:
            model.weights, model.bare = before, False

    def _recorded(self, run: Run, inputs: Sequence[Tensor]) -> Pass:
        _, parts = run(inputs)
        examples, gain, found = self._model.examples, self._model.gain, run
        if self._compile:
            from dalenius.learn.tracing import traced

            found, names = traced(self._model, run, inputs)
            if names != parts.keys():
                raise NotSound(
                    "What was compiled does not train what the model trains.",
                    remedy="Pass compile=False; layers that keep their parameters in lists cannot be traced.",
                )
        del parts
        if inputs[0].is_cuda:
            from dalenius.learn.gpu.replay import Replayed

            found = Replayed(found, inputs)
        return Pass(found, examples, gain)


class Precise(TorchFunctionMode):
    """Sees whether anything outside of a model is computed in half precision, but for what only moves."""

    def __init__(self, model: Watched) -> None:
        super().__init__()
        self._model, self.exact = model, True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run it as it is."""
        result = func(*args, **(kwargs or {}))
        if not self._model.busy and func not in RESHAPES and func not in MOVES:
            self.exact &= not any(one.requires_grad and one.dtype in HALF for one in tensors_in(result))
        return result


@dataclass(frozen=True)
class Pass:
    """A recording for batches of one form."""

    run: Run
    examples: int
    gain: float

    def make(self, model: Watched, inputs: Sequence[Tensor], rows: int) -> Tensor:
        """The pass of such a batch, of which so many rows count; its parts are the model's."""
        loss, parts = self.run(inputs)
        padding = self.examples - rows // model.each
        model.adopt(parts, self.examples, gain=self.gain, padding=padding)
        return loss


def sizes_up(examples: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, …: at most half as many again, and few for all batches."""
    power = 1 << max(0, examples - 1).bit_length()
    return power * 3 // 4 if power >= 4 and examples <= power * 3 // 4 else power


def _filled(tensor: Tensor, rows: int, padded: int) -> Tensor:
    if not tensor.dim() or len(tensor) != rows or padded == rows:
        return tensor
    return torch.cat([tensor, tensor[:1].expand(padded - rows, *tensor.shape[1:])])


def _form(tensor: Tensor) -> Hashable:
    return tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad


def _precise(loss: Tensor) -> AbstractContextManager[object]:
    """Backward passes, and norms, are not made under autocast."""
    return torch.autocast(loss.device.type, enabled=False)


def apart(part: Part, tensors: list[Tensor]) -> Callable[[Sequence[Tensor]], Part]:
    """Put the tensors of a part onto a list; what is returned makes such a part out of another list."""
    places: dict[str, int] = {}
    inner: dict[str, Callable[[Sequence[Tensor]], Part]] = {}
    others: dict[str, Any] = {}
    for one in fields(cast(Any, part)):
        value = getattr(part, one.name)
        if isinstance(value, Tensor):
            places[one.name] = len(tensors)
            tensors.append(value)
        elif isinstance(value, Part):
            inner[one.name] = apart(value, tensors)
        else:
            others[one.name] = value

    def again(given: Sequence[Tensor]) -> Part:
        own = {name: given[place] for name, place in places.items()}
        return type(part)(**own, **{name: make(given) for name, make in inner.items()}, **others)

    return again
