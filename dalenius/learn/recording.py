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

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from dalenius.errors import DaleniusError, InvalidArgument, NotSound
from dalenius.learn.gradients import Watched
from dalenius.learn.marks import tensors_in
from dalenius.learn.parts import HALF, Part
from dalenius.learn.placing import MOVES
from dalenius.learn.plain_values import plain_attributes, plain_surroundings

PLAIN = type(None), bool, int, float, str, torch.dtype, torch.device
"""Types of what a recorded function may be given beside tensors."""
MOST = 16
"""Forms of batches that are recorded."""
FINE = 64
"""Batches of more examples than this are recorded in sizes that lie closer together."""
Parts = dict[Tensor, Part]
Run = Callable[[Sequence[Tensor]], tuple[Tensor, Parts]]
"""From the tensors of a batch to its loss, and to the parts of its gradients."""


class Recorded:
    """Passes of a function from a batch to its loss.

    Args:
        model: The model in training.
        function: Computes the loss of a batch, whose tensors it is given.
        compile: Whether torch's compiler makes a recording into kernels of its own.
        ready: Raises where there is no batch to learn from.
    """

    assumption = (
        "what is recorded follows from its arguments, from plain attributes of the model's modules, from "
        "plain variables around the function, and from values of Python that do not change from step to step"
    )
    """For receipts: another recording is made for each size of a batch, at another step."""

    def __init__(
        self,
        model: Watched,
        function: Callable[..., Tensor],
        *,
        compile: bool,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        self._model, self._function, self._compile, self._ready = model, function, compile, ready
        self._passes: dict[Hashable, Pass] = {}
        self._held, self._modules = model.state(), list(model.modules())
        self._pool: Any = None
        self._powers: frozenset[int] = frozenset((-1,))

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Run forward and backward, in place of `backward()`; return the loss, which is private."""
        self._ready()
        with self._model.unwatched(), self._model.drawing():
            return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        flat, form = tree_flatten((args, kwargs))
        tensors = [one for one in flat if isinstance(one, Tensor)]
        rows, model = _rows(tensors), self._model
        others = _others(flat)

        def loss(given: Sequence[Tensor]) -> Tensor:
            rest = iter(given)
            again = [next(rest) if isinstance(one, Tensor) else one for one in flat]
            found_args, found_kwargs = tree_unflatten(again, form)
            return _single(self._function(*found_args, **found_kwargs))

        if not rows or model.sharded or not (self._compile or tensors[0].is_cuda):
            return self._eager(loss, tensors)
        if not all(map(model.admits, tensors)):
            raise NotSound(
                "Examples of the batch were mixed before they were given to a recorded function.",
                remedy="Pass the batch as private.loader gives it, and change it inside of the function.",
            )
        inputs = tensors if model.weights is None else [*tensors, model.weights.to(tensors[0].device)]
        padded = sizes_up(rows // model.each) * model.each
        filled = [_filled(one, padded) for one in inputs]
        key = form, *others, *map(_form, filled), model.weights is None, *self._state(filled)
        if key not in self._passes and len(self._passes) >= MOST:
            return self._eager(loss, tensors)
        try:
            if key not in self._passes:
                self._passes[key] = self._record(loss, [one.clone() for one in filled])
            return self._passes[key].make(model, filled, rows)
        except DaleniusError:
            raise
        except Exception as error:
            # Whether a recording fails depends on the batch, and so does the text of the error.
            model.note_failure("A recorded function")
            raise NotSound(
                f"A recorded function failed with {type(error).__name__}. The text of the error is withheld, "
                "as it may hold data.",
                remedy="Check labels and indices before they are data; call the function on made-up rows to "
                "see the text.",
            ) from None

    def _eager(self, loss: Callable[[Sequence[Tensor]], Tensor], tensors: Sequence[Tensor]) -> Tensor:
        """Make a pass without a recording."""
        with self._model.watched():
            value = loss(tensors)
            with _precise(value):
                value.backward()
            return value.detach()

    def _state(self, inputs: Sequence[Tensor]) -> tuple[Hashable, ...]:
        """What a recording depends on beside the forms of its inputs."""
        kind = inputs[0].device.type
        places = tuple(one.data_ptr() for one in self._held) if inputs[0].is_cuda else ()
        modes = tuple(one.training for one in self._modules)
        half = torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind)
        values = plain_attributes(self._modules), plain_surroundings(self._function)
        return places, modes, half, self._model.lifts, *values

    def _record(self, loss: Callable[[Sequence[Tensor]], Tensor], inputs: Sequence[Tensor]) -> Pass:
        devices = {one.device for one in (*inputs, *self._held) if one.is_cuda}
        weighed = self._model.weights is not None
        # What was drawn for a recording is nobody's: a run that is taken up again records at another step.
        with torch.random.fork_rng(list(devices)), self._model.keeping(), _uncached():
            bare = self._exact(loss, inputs[:-1] if weighed else inputs) and not weighed
            return self._recorded(partial(self._both, loss, weighed, bare), inputs)

    def _exact(self, loss: Callable[[Sequence[Tensor]], Tensor], inputs: Sequence[Tensor]) -> bool:
        """Whether all that follows the model is in single precision, though its results may be in half.

        Then they need no copy in single precision: a factor at the end is in the gradient before it is cut.
        """
        model, before = self._model, self._model.weights
        model.bare, model.weights, seen = True, None, Precise(model)
        own = Own([*inputs, *self._held, *_kept_by(self._modules)])
        try:
            with self._model.passing(inputs), seen, own:
                return loss(inputs).dtype not in HALF and seen.exact
        finally:
            model.bare, model.weights = False, before

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
            inputs = given[:-1] if weighed else given
            with model.passing(inputs):
                found = loss(inputs)
            with _precise(found):
                self._powers = model.accept(found)
                found.backward(torch.full_like(found, model.gain))
                return found.detach(), dict(model.passed()[0])
        finally:
            model.weights, model.bare = before, False

    def _recorded(self, run: Run, inputs: Sequence[Tensor]) -> Pass:
        _, parts = run(inputs)
        examples, gain, found = self._model._examples, self._model.gain, run
        if examples * self._model.each != len(inputs[0]):
            raise NotSound(
                "The loop gives the model more or fewer rows than it was given, and each would count as an "
                "example of its own.",
                remedy="Pass views=… for several views of an example, which are clipped as one, and call the "
                "model once.",
            )
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

            self._pool = self._pool or torch.cuda.graph_pool_handle()
            found = Replayed(found, inputs, self._pool)
        return Pass(found, gain, _kept_by(self._modules), self._powers)


class Precise(TorchFunctionMode):
    """Sees whether anything outside of a model is computed in half precision, but for what only moves."""

    def __init__(self, model: Watched) -> None:
        super().__init__()
        self._model, self.exact = model, True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run it as it is."""
        result = func(*args, **(kwargs or {}))
        if not self._model.busy and func not in MOVES:
            self.exact &= not any(one.requires_grad and one.dtype in HALF for one in tensors_in(result))
        return result


class Own(TorchDispatchMode):
    """Refuses tensors that a pass was not given, that are not the model's and that it has not made."""

    def __init__(self, known: Sequence[Tensor]) -> None:
        super().__init__()
        self._known = {one.untyped_storage()._cdata for one in known}
        self._alive: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A recording would go on with what another one holds now, be it a batch of other people."""
        kwargs = kwargs or {}
        fresh = func is torch.ops.aten.lift_fresh.default
        for one in () if fresh else tensors_in((args, kwargs)):
            if one.untyped_storage()._cdata not in self._known:
                raise NotSound(
                    "What is to be recorded uses a tensor that it is not given and that is not the model's: "
                    "later passes would use the same, whatever their batch is.",
                    remedy="Pass all of a batch to the recorded function; make a constant a buffer of the "
                    "model.",
                )
        result = func(*args, **kwargs)
        for one in tensors_in(result):
            self._alive.append(one)
            self._known.add(one.untyped_storage()._cdata)
        return result


@dataclass(frozen=True)
class Pass:
    """A recording for batches of one form, and what else it reads."""

    run: Run
    gain: float
    read: Sequence[Tensor]
    powers: frozenset[int] = frozenset((-1,))

    def make(self, model: Watched, inputs: Sequence[Tensor], rows: int) -> Tensor:
        """The pass of such a batch, of which so many rows count; its parts are the model's."""
        loss, parts = self.run(inputs)
        examples = len(inputs[0]) // model.each
        padding = examples - rows // model.each
        model.adopt(parts, examples, gain=self.gain, padding=padding, powers=self.powers)
        return model.total(loss)


def sizes_up(examples: int) -> int:
    """Return the next of 1, 2, 3, 4, 6, 8, 12, …, 64, and from there on of 80, 96, 112, 128, 160, ….

    There are few sizes for all batches. Small ones grow by at most half, and those from 64 on, as which
    chunks of one batch vary, by at most a quarter.
    """
    power = 1 << max(0, examples - 1).bit_length()
    parts = 8 if power > FINE else 4
    size = -(-parts * examples // power) * power // parts
    return size if power >= parts and (parts == 8 or size * 4 == power * 3) else power


def _rows(tensors: Sequence[Tensor]) -> int:
    """How many rows a batch has, whose tensors all have the batch first."""
    if not tensors or not tensors[0].dim():
        raise InvalidArgument("There is no batch.", remedy="Pass tensors with the batch first.")
    rows = len(tensors[0])
    if any(one.dim() and len(one) != rows for one in tensors):
        raise InvalidArgument(
            "Not all tensors given have a row for each example.",
            remedy="Pass those of the batch; make constants buffers of the model.",
        )
    return rows


def _others(given: Sequence[Any]) -> list[Hashable]:
    """Where tensors are, and what is given beside them: a recording knows that by type and value."""
    if not all(isinstance(one, Tensor) or type(one) in PLAIN for one in given):
        raise InvalidArgument(
            "A recorded function is given something that is neither a tensor nor a plain value.",
            remedy="Pass what depends on the batch as tensors.",
        )
    return [Tensor if isinstance(one, Tensor) else (type(one), one) for one in given]


def _kept_by(modules: Sequence[nn.Module]) -> list[Tensor]:
    """Tensors that are plain attributes, such as caches."""
    return [one for module in modules for one in tensors_in(list(vars(module).values()))]


def _single(loss: Tensor) -> Tensor:
    if loss.dim():
        raise InvalidArgument(
            "A recorded function gives more than one number.", remedy="Return the mean over the batch."
        )
    return loss


@contextmanager
def _uncached() -> Iterator[None]:
    """Autocast makes all casts anew: one that it had kept would be read after it is gone."""
    before = torch.is_autocast_cache_enabled()
    torch.clear_autocast_cache()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


def _filled(tensor: Tensor, padded: int) -> Tensor:
    """Up to so many rows, in one piece."""
    rows = len(tensor) if tensor.dim() else padded
    if rows < padded:
        tensor = torch.cat([tensor, tensor[:1].expand(padded - rows, *tensor.shape[1:])])
    return tensor.contiguous()


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
