"""Private tensors that outlive the loop they were made in: they stay private.

Inside of a loop over the loader a function mode knows which tensors are private. After an iteration the mode
is gone, and the loop's variables are still there: the last batch, its loss, a list of losses. `guard` makes
each of them a `PrivateTensor`. Such a tensor prints, and can be read out as a private number; a branch or a
comparison of its values is refused, and whatever is computed from it is private as well. So an epoch's loss
can be logged after the epoch, and cannot set the next learning rate.

The values are moved out of the tensor, which is empty afterwards. So functions that take tensors without
asking them first (`torch.tensor`, DLPack) find nothing private there: no values, and no number of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from weakref import ref

import torch
from torch import Tensor

from dalenius.errors import DaleniusError, NotSound
from dalenius.learn.dataflow import reads
from dalenius.learn.dataflow.plain_results import check_result
from dalenius.learn.dataflow.private_numbers import PrivateInteger, PrivateNumber, plain, whole_sizes
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.dataflow.result_forms import check_rank, check_structure
from dalenius.learn.dataflow.states import MIXED, PLAIN_CLASSES, VIRTUAL, State, Tag, mixed, put_tag, tag_of
from dalenius.learn.dataflow.warning_records import quiet_warnings

_VALUES, _RUNS = "_dalenius_values", "_dalenius_runs"
_NUMBERS = itertools.count(-1, -1)
"""Numbers in place of that of a pass: results that were computed after it are of none."""
_JOINED = frozenset(("cat", "concat", "concatenate"))
_ATTRIBUTES = frozenset(("dtype", "device", "layout", "requires_grad", "is_leaf", "ndim", "names"))
_CUT_NAMES = "unbind split chunk tensor_split hsplit vsplit dsplit unsafe_split unsafe_chunk __iter__"
_CUTS = frozenset(_CUT_NAMES.split())
_OPERATORS = "setitem iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift"
_IN_PLACE = frozenset(f"__{name}__" for name in _OPERATORS.split())


class Run(Protocol):
    """A run that private tensors come from."""

    def note_failure(self, name: str) -> None:
        """Note that something failed on its private examples: it makes no step after that."""


class Runs(frozenset["ref[Run]"]):
    """The runs that a tensor follows from, held weakly; copies of a tensor in bytes have none."""

    __slots__ = ()

    def alive(self) -> list[Run]:
        """Return the runs that still exist."""
        return [run for known in self if (run := known()) is not None]

    def __deepcopy__(self, _: Any) -> Runs:
        return self

    def __reduce__(self) -> tuple[type[Runs], tuple[()]]:
        return Runs, ()


class PrivateTensor(Tensor):
    """A tensor of private examples after the loop that it was made in."""

    watched: Callable[[], bool] = staticmethod(lambda: False)
    """Whether a loop is watched at present: then its function mode knows what is private."""

    def for_logging(self) -> Tensor:
        """Return the plain values, to be written down. The receipt assumes that they decide nothing."""
        return _values(self).detach().clone()

    def __format__(self, how: str) -> str:
        """Format a single number as such, and anything else as torch does."""
        return format(_values(self), how)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run a function of torch; what it returns is private."""
        given = dict(kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            if PrivateTensor.watched() or _name(func) in _ATTRIBUTES:
                return func(*_inner(args), **_inner(given))
            if func in (Tensor.backward, torch.autograd.backward):
                raise _ended()
            first = args[0] if args else None
            tag = tag_of(first) if isinstance(first, Tensor) else None
            if func == reads.SHAPE or func in reads.SIZES or func == reads.BYTES:
                sizes = func(*_inner(args), **_inner(given))
                return sizes if tag is None else reads.measured(func, _inner(args), given, tag.state)
            runs = Runs({run for tensor in _tensors((args, given)) for run in getattr(tensor, _RUNS, ())})
            try:
                with quiet_warnings():
                    return _computed(func, args, given, runs)
            except DaleniusError:
                raise
            except Exception as error:
                failure = _withheld(func, error, runs)
            # Outside of the handler, so that the error does not carry the original one.
            raise failure


def _computed(func: Any, args: tuple[Any, ...], given: dict[str, Any], runs: Runs) -> Any:
    """Return what a function of torch gives of private tensors, as private tensors and values."""
    name = _name(func)
    if func in reads.READS:
        return _read(func, args, given)
    if name in _CUTS:
        raise _counted(name)
    known = {id(tensor): tag.state for tensor in _tensors((args, given)) if (tag := tag_of(tensor))}
    numbers = any(isinstance(value, PrivateNumber | PrivateInteger) for value in _leaves((args, given)))
    if numbers:
        check_structure(name, args, given, known)
    check_rank(name, args, given, {key: _lost(state) for key, state in known.items()}, reads_values=False)
    targets = list(_tensors((args[:1] if _in_place(func) else (), given.get("out"))))
    if any(not isinstance(target, PrivateTensor) for target in targets):
        raise _written(name)
    result = func(*_inner(args), **_inner(given))
    check_result(name, result)
    shape = _shape(name, args, given, known)
    for tensor in _tensors(result):
        state = mixed(name, "uses private values of an earlier loop")._replace(shape=shape)
        put_tag(tensor, Tag(state, next(_NUMBERS), 0))
        guard(tensor, runs)
    return result


def _lost(state: State) -> State:
    """Return a state as that of a tensor that is not known by example, as all are after their loop."""
    return state if state.kind == MIXED else state._replace(kind=MIXED, power=0)


def _shape(name: str, args: Any, given: Any, known: Mapping[int, State]) -> tuple[int, ...] | None:
    """Return which sizes of a result are public, if that is known: of joined batches, those of each."""
    if name not in _JOINED or given or len(args) != 1:
        return None
    states = [known.get(id(tensor)) for tensor in _tensors(args)]
    shapes = {() if state is None or state.shape is None else state.shape for state in states}
    rests = {shape[1:] for shape in shapes}
    if len(rests) != 1 or any(not shape or not shape[0] or shape[0] % VIRTUAL for shape in shapes):
        return None
    # As many rows as there are in all batches: a size of its own, and two at least.
    return (VIRTUAL, *rests.pop())


def _withheld(func: Any, error: Exception, runs: Runs) -> Exception:
    """Return an error that tells nothing of private values, and note it: no step of their runs follows."""
    for run in runs.alive():
        run.note_failure(f"{_name(func)}{user_line()}")
    kinds = IndexError, ValueError, TypeError
    kind = next((kind for kind in kinds if isinstance(error, kind)), RuntimeError)
    return kind(
        f"{_name(func)} failed on private values of an earlier loop{user_line()}. Why is private, and is not "
        "shown."
    )


def guard(tensor: Tensor, runs: Runs) -> None:
    """Turn a private tensor into a `PrivateTensor`, whoever refers to it.

    Args:
        tensor: A plain tensor.
        runs: The runs whose examples it follows from.
    """
    if type(tensor) not in PLAIN_CLASSES:
        return
    with torch._C.DisableTorchFunction(), torch.no_grad():
        values = tensor.detach()
        if values.layout is torch.strided and not values.is_quantized and not values.is_nested:
            # In memory of its own, so that what is left of the loop's memory has other tensors on it.
            values = values.clone()
        # Its sizes are had from the values, and are those of the same pass.
        put_tag(values, tag_of(tensor))
        tensor.__class__ = PrivateTensor
        setattr(tensor, _VALUES, values)
        setattr(tensor, _RUNS, runs)
        if values.layout is torch.strided and not values.is_quantized and not values.is_nested:
            tensor.data = torch.empty(0, dtype=values.dtype, device=values.device)


def _values(tensor: Tensor) -> Tensor:
    values: Tensor = getattr(tensor, _VALUES, tensor)
    return values


def _read(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Read values out, as private ones."""
    first = args[0]
    values = _values(first) if isinstance(first, Tensor) else first
    if isinstance(values, Tensor):
        put_tag(values, tag_of(first))
    return reads.READS[func](values, *_inner(args[1:]), **_inner(kwargs))


def _inner(value: Any) -> Any:
    """Return arguments with plain tensors and numbers in place of private ones."""
    if isinstance(value, PrivateTensor):
        return _values(value)
    if isinstance(value, PrivateNumber | PrivateInteger):
        return plain(value)
    if isinstance(value, slice):
        return whole_sizes(value)
    if type(value) in (tuple, list):
        return type(value)(map(_inner, value))
    return {key: _inner(entry) for key, entry in value.items()} if type(value) is dict else value


def _in_place(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name in _IN_PLACE or (name.endswith("_") and not name.endswith("__")) or name == "__set__"


def _name(func: Any) -> str:
    name = str(getattr(func, "__name__", "a function"))
    return str(getattr(getattr(func, "__self__", func), "__name__", name)) if name == "__get__" else name


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for entry in value:
            yield from _tensors(entry)
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from _tensors(entry)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for entry in value:
            yield from _leaves(entry)
    elif isinstance(value, Mapping):
        yield from _leaves(list(value.values()))
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def _ended() -> NotSound:
    return NotSound(
        f"backward() of private examples was called after their loop{user_line()}: no step would take its "
        "gradients in.",
        remedy="Call loss.backward() and private.step() inside of the loop over private.loader.",
    )


def _counted(name: str) -> NotSound:
    return NotSound(
        f"{name} cuts a private tensor into pieces after its loop{user_line()}: how many they are may be "
        "private.",
        remedy="Use the tensor as a whole, or tensor.for_logging() for what is only written down.",
    )


def _written(name: str) -> NotSound:
    return NotSound(
        f"{name} writes private values of an earlier loop into a public tensor{user_line()}.",
        remedy="Keep private values in a list, and join them by torch.stack: the result is private too.",
    )
