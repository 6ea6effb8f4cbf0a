"""`ExampleLoss`: forward and backward passes of a loss that sees one example.

    learn = private.loss(lambda model, example: F.cross_entropy(model(example[0]), example[1]))
    for batch in private.loader:
        private.zero_grad()
        value = learn(batch)
        private.step()

The function gets the model and one example: the structure of the batch, each tensor without its batch
dimension. It runs inside `torch.vmap`, which computes each example's loss from that example alone: examples
are independent by construction. Gradients are clipped, summed and noised as those of any backward pass.

A model that needs a batch dimension is called as `model(example[0].unsqueeze(0)).squeeze(0)`.

A function that `torch.vmap` cannot run is called once for each example: slower, with the same gradients.
"""

from __future__ import annotations

import builtins
import dis
import re
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from dalenius.errors import DaleniusError, InvalidArgument, NotSound
from dalenius.learn.checkpointing import direct_checkpoints
from dalenius.learn.dataflow.batch_length import tracked
from dalenius.learn.example_calls import (
    ExampleCalls,
    NoExchange,
    NoRule,
    check_custom,
    is_library_file,
    reading,
    where,
)
from dalenius.learn.gradients import Watched
from dalenius.learn.overrides import check_anomalies
from dalenius.learn.parts import Part, Whole, single
from dalenius.learn.plain_values import plain_attributes
from dalenius.learn.python_state import python_state
from dalenius.learn.quiet import PYTHON, SEEDS, kept_generators, seed_generators
from dalenius.learn.random_state import closed_generator
from dalenius.learn.replacing import check_modules
from dalenius.learn.script_calls import followed_scripts
from dalenius.learn.tape import Tape
from dalenius.learn.torch_settings import torch_settings

LossFunction = Callable[[nn.Module, Any], Tensor]
"""From a model and one example to a loss: a tensor with one number."""
_PYTHON = (NameError, AttributeError, TypeError, ImportError, NotImplementedError)
"""Errors in the user's code whose text is shown, if all names in it are written in the code."""
_QUOTED = re.compile(r"['\"]([^'\"]*)['\"]")
_KINDS = frozenset(
    (*dir(builtins), "Tensor", "Parameter", "NoneType", "function", "method", "module", "forward")
)
"""Names of types that errors of Python quote."""


@dataclass(frozen=True)
class Surroundings:
    """What a training run knows about the values of its loop.

    Args:
        paused: returns a context in which operations of torch are not watched.
        admitted: whether a tensor has one row for each example along its first dimension, and row i follows
            from example i and public values alone.
        drawing: returns a context that checks where the random numbers of a pass come from, and notes them.
        private: whether a value depends on private data, or on how many examples there are.
        logged: marks the mean loss, before it is returned, as a private value.
    """

    paused: Callable[[], AbstractContextManager[Any]] = nullcontext
    drawing: Callable[[], AbstractContextManager[Any]] = nullcontext
    admitted: Callable[[Tensor], bool] = lambda _: True
    private: Callable[[Any], bool] = lambda _: False
    logged: Callable[[Tensor], Any] = lambda value: value


class ExampleLoss:
    """Forward and backward passes of a loss that sees one example; called with a batch.

    Args:
        model: the model in training.
        function: returns the loss of one example, given the model and the example.
        gain: returns, for a number of rows, the ratio of the gradient of the sum over rows to the gradient
            that the run expects of a backward pass: the number of rows for means, 1 for sums.
        ready: raises where there is no batch to learn from.
        surroundings: what the run knows about the values of its loop.
    """

    how = "examples are independent by construction: each loss was computed from one example"
    """For receipts."""
    assumptions = (
        "the function of private.loss keeps no state in Python between calls, such as counters, iterators "
        "and generators of random numbers of its own, in settings of torch or in installed packages, reads "
        "no clock, and takes no values out of torch by text, files or shared memory",
        "torch.vmap computes what a loop over examples does",
    )
    """What `how` takes for granted, for receipts."""

    def __init__(
        self,
        model: Watched,
        function: LossFunction,
        *,
        gain: Callable[[int], float],
        ready: Callable[[], None] = lambda: None,
        surroundings: Surroundings | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidArgument(
                "private.loss takes a function of a model and one example.",
                remedy="Pass lambda model, example: … that returns the loss of the example.",
            )
        if model.sharded:
            raise NotSound(
                "Losses of one example are not supported for parameters that are sharded among processes.",
                remedy="Call private.model on the batch, and backward() on the mean of its losses.",
            )
        self._model, self._function, self._gain, self._ready = model, function, gain, ready
        self._around = surroundings or Surroundings()
        self.vectorized = True
        """Whether all examples of a batch run at once: False after an operation that vmap cannot run."""

    def __call__(self, batch: Any) -> Any:
        """Run forward and backward for each example of a batch, and return the mean loss.

        Args:
            batch: a tensor, or tuples, lists and dictionaries of tensors, each with one row for each example.

        Returns:
            The mean loss over the rows of the batch: a private value, for logging.

        Raises:
            NotSound: the function depends on more than its example, or not only on tensor operations of it.
        """
        self._ready()
        self._model.check_watching()
        check_anomalies()
        check_modules(self._model.inner)
        _check_hooks(self._model.inner)
        _check_scripts(self._model.inner)
        leaves = list(_leaves(batch))
        with (
            self._around.paused(),
            self._around.drawing(),
            torch.enable_grad(),
            self._eager(),
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            rows = self._checked_rows(leaves)
            held, watching = _buffers(self._model.inner), self._model.watching
            self._model.watching = False
            try:
                losses, parts = self._passed(batch, leaves, rows)
            except BaseException:
                self._model.note_failure(f"private.loss ({where()})")
                raise
            finally:
                self._model.watching = watching
                _restore(self._model.inner, held)
            units = rows // self._model.each
            self._model.adopt(parts, units, gain=self._gain(rows), padding=0)
            counted = self._weights(losses)
            value = (
                losses.mean() if counted is None else (losses * counted).sum() / counted.sum().clamp(min=1)
            )
        return self._around.logged(value)

    def _eager(self) -> AbstractContextManager[Any]:
        """Return a context in which compiled modules run as they are written."""
        compiled = any(type(item).__name__ == "OptimizedModule" for item in self._model.inner.modules())
        return torch.compiler.set_stance("force_eager") if compiled else nullcontext()

    def _passed(self, batch: Any, leaves: list[Tensor], rows: int) -> tuple[Tensor, Mapping[Tensor, Part]]:
        versions = [item._version for item in leaves]
        refusal: DaleniusError | None = None
        if self.vectorized:
            try:
                return self._together(batch, leaves, rows)
            except Exception as error:
                if _is_shown(error):
                    raise
                if "data-dependent" in str(error):
                    refusal = reading(where(error))
                elif versions != [item._version for item in leaves]:
                    refusal = _failed(error)
        if refusal is None:
            try:
                output = self._apart(batch, leaves, rows)
            except Exception as error:
                if _is_shown(error):
                    raise
                refusal = _failed(error)
        if refusal is not None:
            # Outside of the handlers, so that the refusal does not carry the error, whose text may hold data.
            raise refusal
        self.vectorized = False
        return output

    def _together(self, batch: Any, leaves: list[Tensor], rows: int) -> tuple[Tensor, Mapping[Tensor, Part]]:
        """Run all examples at once, inside torch.vmap."""
        tape = Tape(self._model.names)
        tape.open(rows // self._model.each, rows)
        calls = self._calls(leaves, tape, rows)

        def run(*example: Tensor) -> Tensor:
            return self._loss(calls, batch, example)

        losses = torch.vmap(run, randomness="different")(*leaves)
        self._total(losses).backward()
        for parameter, shares in calls.gradients():
            tape.put(parameter, Whole(self._by_unit(shares)))
        return losses.detach(), tape.parts()

    def _apart(self, batch: Any, leaves: list[Tensor], rows: int) -> tuple[Tensor, Mapping[Tensor, Part]]:
        """Run one example after the other, each with random numbers of its own."""
        with kept_generators(PYTHON):
            return self._one_by_one(batch, leaves, rows)

    def _left(self) -> tuple[Hashable, ...]:
        """Return the plain values that a loss may leave behind for the next example."""
        return plain_attributes(self._model.inner.modules()), torch_settings()

    def _check_kept(self, before: bytes) -> None:
        """Refuse a function or model that remembers something from one example to the next."""
        if python_state((self._function, self._model.inner)) != before:
            raise NotSound(
                "The function or the model counted, or kept another value of Python, while the losses of "
                "examples were computed one after the other: a later example would see how many came before "
                "it.",
                remedy="Count in the loop, where private.steps has grown, keep nothing in the function or in "
                "forward, and draw random numbers by functions of torch.",
            )

    def _one_by_one(
        self, batch: Any, leaves: list[Tensor], rows: int
    ) -> tuple[Tensor, Mapping[Tensor, Part]]:
        names, weights = self._model.names, self._weights(leaves[0])
        shares: dict[Tensor, Tensor] = {}
        losses = []
        earlier: dict[int, StorageWeakRef] = {}
        before, kept = self._left(), python_state((self._function, self._model.inner))
        for i in range(rows):
            calls = self._calls(leaves, None, 1, earlier)
            # Otherwise the numbers of an example would follow from how many examples came before it.
            seed_generators(int(torch.randint(SEEDS, ())), PYTHON)
            loss = self._loss(calls, batch, [item[i].clone() for item in leaves])
            if self._left() != before:
                raise NotSound(
                    "The model counted, kept another plain value, or changed a setting of torch, while "
                    "losses were computed one after the other: a later example would see how many came "
                    "before it.",
                    remedy="Count in the loop, where private.steps has grown, and keep nothing in forward.",
                )
            _check_trained(loss)
            check_custom(loss)
            (loss if weights is None else loss * weights[i]).backward()
            losses.append(loss.detach())
            for parameter, gradient in calls.gradients():
                if parameter not in shares:
                    shape = rows // self._model.each, *parameter.shape
                    shares[parameter] = gradient.new_zeros(shape, dtype=single(gradient))
                gradient = gradient.to_dense() if gradient.is_sparse else gradient
                shares[parameter][i // self._model.each] += gradient
            made = calls.made
            self._model.keep_private(calls.storages)
            del calls, loss
            if i in (0, 1, rows - 1):
                self._check_kept(kept)
            # What the loss has kept of this example, in whatever way, is none of the next one's.
            earlier = {key: weak for key, weak in {**earlier, **made}.items() if not weak.expired()}
        parts = {parameter: Whole(shares[parameter]) for parameter in names if parameter in shares}
        return torch.stack(losses), parts

    def _calls(
        self,
        leaves: Sequence[Tensor],
        tape: Tape | None,
        rows: int,
        earlier: Mapping[int, StorageWeakRef] | None = None,
    ) -> ExampleCalls:
        storages = [item.untyped_storage() for item in leaves]
        return ExampleCalls(
            self._model.names,
            batch={storage._cdata for storage in storages},
            spans=[range(at, at + storage.nbytes()) for storage in storages if (at := storage.data_ptr())],
            private=self._around.private,
            tape=tape,
            rows=rows,
            earlier=earlier,
        )

    def _loss(self, calls: ExampleCalls, batch: Any, example: Sequence[Tensor]) -> Tensor:
        calls.begin(list(example))
        rest = iter(example)
        given = _rebuilt(batch, lambda _: next(rest))
        with (
            calls,
            NoExchange() if _is_shared() else nullcontext(),
            direct_checkpoints(),
            closed_generator(),
            tracked(calls.length),
            followed_scripts(lambda _: True, lambda: True),
        ):
            loss = self._function(self._model.inner, given)
            if isinstance(loss, Tensor) and loss.numel() == 1:
                loss = loss.reshape(())
        if calls.error is not None:
            raise calls.error
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.is_floating_point():
            raise NotSound(
                "The function of private.loss did not return one floating-point number as a tensor.",
                remedy="Return the loss of the example, averaged over its own tokens or outputs.",
            )
        return loss

    def _total(self, losses: Tensor) -> Tensor:
        _check_trained(losses)
        weights = self._weights(losses)
        losses = losses.to(single(losses))
        return losses.sum() if weights is None else (losses * weights).sum()

    def _weights(self, like: Tensor) -> Tensor | None:
        """Return 1 for rows that count and 0 for those that fill up a unit; None where all rows count."""
        weights = self._model.weights
        return None if weights is None else weights.to(like.device, torch.float32)

    def _by_unit(self, shares: Tensor) -> Tensor:
        """Return gradients of rows summed over the rows of each unit."""
        size = self._model.each
        return shares if size == 1 else shares.unflatten(0, (-1, size)).sum(1, dtype=single(shares))

    def _checked_rows(self, leaves: list[Tensor]) -> int:
        if (
            not leaves
            or any(not item.dim() for item in leaves)
            or len({item.shape[0] for item in leaves}) != 1
        ):
            raise InvalidArgument(
                "Not all tensors of the batch have one row for each example.",
                remedy="Pass the batch as private.loader gives it; use constants inside the function.",
            )
        rows, expected = leaves[0].shape[0], self._model._rows
        if rows % self._model.each or (expected is not None and rows != expected):
            raise NotSound(
                "The batch has more or fewer rows than private.loader gave, and each would count as an "
                "example of its own.",
                remedy="Pass the batch as private.loader gives it; views=… makes several views of a row.",
            )
        if not all(map(self._around.admitted, leaves)):
            raise NotSound(
                "Examples of the batch were mixed before its losses were computed.",
                remedy="Pass the batch as private.loader gives it; transform examples inside the function.",
            )
        return int(rows)


def _is_shown(error: Exception) -> bool:
    """Return whether the text of an error cannot hold data: Python and this library have written it."""
    if isinstance(error, DaleniusError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if not isinstance(error, _PYTHON) or trace is None:
        return False
    code = trace.tb_frame.f_code
    raised = dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    if raised and not is_library_file(code.co_filename):
        # A raise statement in code of the user's may put anything into the text.
        return False
    if isinstance(error, NameError | AttributeError | ImportError):
        # Names may have been put together from values, as by getattr(model, f"head_{label}").
        return _is_constant(error.name, error.__traceback__)
    quoted = _QUOTED.findall(str(error))
    return all(name in _KINDS or _is_constant(name, error.__traceback__) for name in quoted)


def _is_constant(name: str | None, trace: TracebackType | None) -> bool:
    """Return whether a name is written in the code of any function that an error came through."""
    while name and trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == "<string>":
            # Code that was put together at run time, perhaps of values.
            return False
        constants = [entry for entry in code.co_consts if isinstance(entry, str | tuple)]
        if name in (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars, code.co_name):
            return True
        if any(name == entry or (isinstance(entry, tuple) and name in entry) for entry in constants):
            return True
        trace = trace.tb_next
    return False


def _is_shared() -> bool:
    """Return whether there are processes to exchange anything with."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _check_hooks(model: nn.Module) -> None:
    hooked = [
        name for name, item in model.named_modules() if item._backward_hooks or item._backward_pre_hooks
    ]
    if hooked:
        raise NotSound(
            f"{hooked[0] or 'The model'} has hooks on its backward pass, which would see all examples.",
            remedy="Remove the hooks, and compute what they do in the function.",
        )


def _check_scripts(model: nn.Module) -> None:
    if any(isinstance(item, torch.jit.ScriptModule) for item in model.modules()):
        raise NotSound(
            "The model, or a part of it, is a module of TorchScript, which is not followed.",
            remedy="Train the module as it was before torch.jit.script or torch.jit.trace.",
        )


def _check_trained(loss: Tensor) -> None:
    if not loss.requires_grad:
        raise NotSound(
            "The function of private.loss returned a loss that depends on no trained parameter.",
            remedy="Compute the loss from the model that is given, without detach() and no_grad().",
        )


def _failed(error: BaseException) -> DaleniusError:
    """Return an error without the text of the original, which may hold data and the size of the batch."""
    if isinstance(error, NoRule):
        error = RuntimeError()
    return NotSound(
        f"The function of private.loss failed with {type(error).__name__}, {where(error)}. The text of the "
        "error is withheld, as it may hold data.",
        remedy="Call the function with the model and one made-up example to see the text. Tensors of an "
        "example have no batch dimension: where a model needs one, call model(x.unsqueeze(0)).squeeze(0).",
    )


def _leaves(batch: Any) -> list[Tensor]:
    output: list[Tensor] = []
    _rebuilt(batch, output.append)
    return output


def _rebuilt(value: Any, new: Callable[[Tensor], Any]) -> Any:
    """Return the same structure with other tensors; mappings of other types become dictionaries."""
    if isinstance(value, Tensor):
        return new(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_rebuilt(item, new) for item in value))
    if isinstance(value, tuple | list):
        return type(value)(_rebuilt(item, new) for item in value)
    if isinstance(value, Mapping):
        return {key: _rebuilt(item, new) for key, item in value.items()}
    if value is None:
        return None
    raise InvalidArgument(
        f"A batch for private.loss holds tensors, and this one holds a {type(value).__name__}.",
        remedy="Leave it out of the rows of the data set, or make it a tensor in collate.",
    )


def _buffers(model: nn.Module) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    homes = [home for module in model.modules() for home in (module._parameters, module._buffers) if home]
    return [(home, dict(home)) for home in homes]


def _restore(model: nn.Module, held: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Refuse a model that replaced parameters or buffers by other tensors, and put the old ones back."""
    changed = [home for home, before in held if any(home.get(name) is not before[name] for name in before)]
    for home, before in held:
        home.update(before)
    if changed:
        raise NotSound(
            "The model replaced a parameter or buffer while the loss of an example was computed.",
            remedy="Keep no running statistics in the model, or freeze the module that does by eval().",
        )
