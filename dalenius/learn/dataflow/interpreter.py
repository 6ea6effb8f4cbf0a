"""Derive the states of a torch function's results by running it on shapes alone.

The function is called on tensors of the meta device, which have shapes and no content, with a number of
examples (`states.VIRTUAL`) that no other size equals. Every operator that it is made of passes through
`Interpreter`, which applies that operator's rule. So composite functions need no rule of their own, nothing
depends on values, and the outcome is the same for every batch size: it is kept in a cache.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from dalenius.learn.dataflow.equivalents import EQUIVALENTS, on_device
from dalenius.learn.dataflow.operations import Operation, tensors_of
from dalenius.learn.dataflow.pointwise import pointwise
from dalenius.learn.dataflow.private_numbers import BatchSize, PrivateInteger, plain
from dalenius.learn.dataflow.rules import RULES
from dalenius.learn.dataflow.size_arguments import REASON, admits_sizes
from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    MIXED,
    PRIVATE,
    TOTAL,
    UNIFORM,
    VARIED,
    VIRTUAL,
    State,
    is_long,
    mixed,
    multiplicity,
    outer_at,
    times_batch,
)

Function = Callable[..., Any]
_HALF = torch.float16, torch.bfloat16
LARGEST = 20_000
"""Outcomes that are kept."""


class Outcome(NamedTuple):
    """The states of results and of tensors that were written to, in order; or why all are mixed."""

    results: tuple[State | None, ...]
    written: tuple[State | None, ...]
    failed: str = ""
    counts: bool = False
    """Whether the number of results depends on the number of examples."""
    drawn: bool = False
    """Whether random numbers are drawn."""
    reads: bool = False
    """Whether the values of a tensor are read, for a size, a dimension or an index."""
    plain: bool = False
    """Whether there is one result, which is not mixed, and nothing else to be seen to."""
    reason: str = ""
    """Why all are mixed, where that is known."""
    shares: bool = False
    """Whether a result lies in the memory of an argument, or is one."""


class _Unruled(Exception):
    """An operator cannot run on shapes alone."""


class _Pieces(_Unruled):
    """An operator cuts a batch into a number of pieces that depends on the number of examples."""


class Interpreter(TorchDispatchMode):
    """Applies the rule of every operator that runs while it is active.

    Args:
        states: The states of the arguments, by identity.
        given: The arguments.
    """

    def __init__(self, states: dict[int, State], given: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self.states = states
        self.drawn = False
        """Whether an operator has drawn random numbers."""
        self._given = given
        self._alive: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator on shapes and settle the states of its results."""
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        if name in _PIECES and _pieces(name, *args, **kwargs) > MOST_PIECES:
            raise _Pieces(name)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            raise _Unruled(name) from error
        self._alive.extend(tensors_of(result))
        op = Operation(func, args, kwargs, result, self.states)
        absorbed = next(
            (state for tensor in op.tensors if (state := op.state(tensor)) and state.kind == MIXED), None
        )
        powers = op.powers()
        if absorbed is not None:
            op.put_all(absorbed)
        elif powers - {0}:
            _scaled(op, powers)
        elif op.takes_size() and not _measures(op, func):
            op.put_all(mixed(op.name, "computes with the size of the batch, which is private"))
        elif not op.kinds and op.name not in _MAKERS:
            op.put_all(None)
        elif not func._schema.name.startswith("aten::"):
            op.mix("has no rule")
        elif op.name in RULES and not _binary(op):
            RULES[op.name](op)
        elif torch.Tag.pointwise in func.tags:
            pointwise(op)
        else:
            op.mix("has no rule")
        if op.kinds and op.shrinks():
            _shrunk(op)
        drawn = torch.Tag.nondeterministic_seeded in func.tags
        self.drawn = self.drawn or drawn
        if drawn or any(state.drawn for state in op.known):
            _note_drawn(op)
        if op.private:
            _note_statistics(op)
            _note_lists(op, func, args)
        if func._schema.is_mutable:
            self._note_aliases(op, func)
        return result

    def _note_aliases(self, op: Operation, func: Any) -> None:
        """Settle other tensors on memory that an operator has written to.

        What was written at the place of an example follows from that example. So a tensor on the same memory
        holds examples along its only dimension that is as long as the batch, if it was public there, and is
        mixed if it has no such dimension. A public tensor that is as long as the batch may differ from
        example to example after a public value was written into a part of it.
        """
        for argument in func._schema.arguments:
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            for written in tensors_of(op.given.get(argument.name)):
                after = op.state(written)
                private = after is not None and after.kind in PRIVATE
                storage = written.untyped_storage()._cdata
                for other in (*self._alive, *self._given):
                    if other is written or other.untyped_storage()._cdata != storage:
                        continue
                    before = op.state(other)
                    if after is not None and private:
                        self.states[id(other)] = _beside(op, after, written, other)
                    elif before is not None and before.kind not in PRIVATE and is_long(before):
                        self.states[id(other)] = _publicly_beside(before, after, written, other)
                    elif before is not None and before.kind == UNIFORM and other.numel() > 1:
                        # A constant, one entry of which was set, has different entries.
                        del self.states[id(other)]


def _publicly_beside(before: State, after: State | None, written: Tensor, other: Tensor) -> State:
    """Return the state of a long public tensor on whose memory a public value was written."""
    shape = tuple(other.shape)
    own = [i for i, size in enumerate(written.shape) if size and size % VIRTUAL == 0]
    long = [i for i, size in enumerate(shape) if size and size % VIRTUAL == 0]
    alike = after is not None and {before.kind, after.kind} <= {UNIFORM, COPIES}
    if after is not None and alike and len(own) == len(long) == 1:
        sizes = {written.shape[own[0]], shape[long[0]]}
        outer = math.prod(shape[: long[0]])
        aligned = sizes == {VIRTUAL} and written.stride(own[0]) == other.stride(long[0])
        aligned = aligned and (after.kind == UNIFORM or after.outer == math.prod(written.shape[: own[0]]))
        if aligned and (before.kind == UNIFORM or before.outer == outer):
            return State(COPIES, outer, shape, drawn=before.drawn or after.drawn)
    return State(VARIED, shape=shape)


def _beside(op: Operation, after: State, written: Tensor, other: Tensor) -> State:
    """Return the state of a tensor on whose memory another one was written to."""
    before, shape = op.state(other), tuple(other.shape)
    own = [size for size in written.shape if size and size % VIRTUAL == 0]
    long = [i for i, size in enumerate(shape) if size and size % VIRTUAL == 0]
    public = before is None or before.kind in (COPIES, UNIFORM)
    same = before is not None and before.kind == AXIS and before.power == after.power
    if after.kind == AXIS and len(long) == 1 and [shape[long[0]]] == own and shape[long[0]] == VIRTUAL:
        outer = math.prod(shape[: long[0]])
        if (public and before is not None and not after.power) or (same and before and before.outer == outer):
            return State(AXIS, outer, shape, after.power)
    return mixed(op.name, "writes private values into a part of a tensor")._replace(shape=shape)


def _note_lists(op: Operation, func: Any, args: Any) -> None:
    """Mix tensors of lists that an operator writes to and does not return (torch._foreach_add_)."""
    if op.results:
        return
    for argument, value in zip(func._schema.arguments, args, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write:
            for tensor in tensors_of(value):
                op.put(tensor, mixed(op.name, "writes to several tensors at once"))


def _note_statistics(op: Operation) -> None:
    """Mix running statistics, which normalization in training writes to without returning them."""
    if op["training"] or op["train"] or ("training" not in op.given and "train" not in op.given):
        for name in ("running_mean", "running_var"):
            if isinstance(op[name], Tensor):
                op.put(op[name], mixed(op.name, "writes statistics of all examples"))


def _measures(op: Operation, func: Any) -> bool:
    """Return whether sizes of the batch among the arguments size the results, or have a rule of their own."""
    if op.name in _CUTS:
        # x[:, :n] has as many columns as there are examples.
        return multiplicity(op.tensors[0].shape[_cut(op)]) > 0
    if op.name in _SIZED:
        return op.name not in _RANGES or any(times_batch(tuple(tensor.shape)) for tensor in op.results)
    if not op.kinds:
        # Constants times n would be taken for constants.
        return False
    return RULES.get(op.name) is pointwise or (op.name not in RULES and torch.Tag.pointwise in func.tags)


def _shrunk(op: Operation) -> None:
    """Settle results that have lost the batch: public ones may depend on how many examples there are.

    Private ones may do so where an argument was as long as the batch in several dimensions.
    """
    if op.private and op.length() < 2:
        return
    public = [tensor for tensor in op.tensors if op.kind(tensor) != UNIFORM and op.kind(tensor)]
    same = not op.private and op.name in _PICKS and all(map(op.alike, public))
    # The random numbers of one example would serve others.
    same = same and not any(state.drawn for state in op.known)
    # How many entries x[1:], x[8:10] or x[::2] have depends on how many x has.
    same = same and (op.name not in _CUTS or _is_at_an_end(op))
    for tensor in op.results:
        state = op.state(tensor)
        total = state is not None and state.kind == TOTAL and op.length() < 2
        if not same and not total and (state is None or state.kind != MIXED):
            # Without a shape: sizes of the result may depend on the batch too.
            op.states[id(tensor)] = mixed(op.name, "depends on the size of the batch, which is private")


def _note_drawn(op: Operation) -> None:
    """Note of public results of random numbers that they are random."""
    for tensor in op.results:
        state = op.state(tensor)
        if state is None or state.kind not in (COPIES, UNIFORM):
            continue
        long = [i for i, size in enumerate(tensor.shape) if multiplicity(size)]
        if state.kind == UNIFORM and len(long) == 1 and tensor.shape[long[0]] != VIRTUAL:
            # Several numbers for each example are its own wherever they are used: one after the other.
            state = State(COPIES, outer_at(tuple(tensor.shape), long[0], 1), tuple(tensor.shape))
        op.states[id(tensor)] = state._replace(drawn=True)


def _cut(op: Operation) -> int:
    """Return the dimension that an operator cuts."""
    return op.dimension("dim", op.tensors[0])


def _is_at_an_end(op: Operation) -> bool:
    """Return whether a range is among the first, or the last, rows that every batch has."""
    if op.name != "slice":
        return all(tensor.shape[_cut(op)] <= FEWEST for tensor in op.results)
    start, end = op["start"] or 0, op["end"]
    last = end is None or end >= op.tensors[0].shape[_cut(op)]
    return (start >= 0 and not last and 0 <= end <= FEWEST) or (-FEWEST <= start < 0 and (last or end < 0))


def _scaled(op: Operation, powers: set[int]) -> None:
    """Apply the rule of an operator that is linear in values times a power of the size of the batch.

    For a linear f, f(nᵖ·t) = nᵖ·f(t). So the rule is asked about t, whose power is 0, and the power is put
    back onto whatever it settles. A rule that knows nothing of powers, or hands them on, cannot count them
    twice.
    """
    private = [tensor for tensor in op.tensors if op.kind(tensor) == AXIS]
    alone = len(private) == 1 and (op.name == "mul" or op.kind(op["self"]) == AXIS)
    # c·t, t/c, and sums of values with one power; everything else has another power, or none.
    linear = alone if op.name in ("mul", "div") else len(private) == len(op.tensors)
    if op.name in ("add", "sub"):
        linear = linear and len(private) == 2
    if len(powers) > 1 or op.name not in LINEAR or op.batch_factor() or not linear:
        op.put_all(mixed(op.name, "computes with the size of the batch, which is private"))
        return
    (power,) = powers
    before = {id(tensor): op.states[id(tensor)] for tensor in private}
    op.states.update((key, known._replace(power=0)) for key, known in before.items())
    (RULES.get(op.name) or pointwise)(op)
    results = {id(tensor) for tensor in op.results}
    op.states.update((key, known) for key, known in before.items() if key not in results)
    for tensor in op.results:
        state = op.state(tensor)
        if state is not None and state.kind in (AXIS, TOTAL):
            op.put(tensor, state._replace(power=state.power + power))


_LINEAR = (
    "add sub neg mul div sum mean view _unsafe_view reshape unsqueeze squeeze permute transpose t select "
    "slice expand clone detach alias _to_copy"
)
LINEAR = frozenset(_LINEAR.split())
"""Operators that may work on values times a power of the size of the batch."""
_MAKERS = frozenset((*RULES,)) & frozenset(
    name for name in RULES if RULES[name].__module__.endswith("factories") or name in ("expand", "repeat")
)


_PICKS = frozenset(["select", "slice", "index", "index_select", "unbind", "split", "split_with_sizes"])
"""Operators that pick entries, of which all have one law where all examples have copies."""
_CUTS = frozenset(["slice", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes"])
FEWEST = 2
"""Examples that every batch has at least."""
_RANGES = frozenset(["arange", "linspace", "logspace", "randperm", "eye"])
_SIZED_NAMES = (
    "zeros ones full empty empty_strided empty_permuted rand randn randint new_zeros new_ones new_full "
    "new_empty new_empty_strided view _unsafe_view reshape _reshape_alias expand broadcast_to repeat "
    "tile slice split split_with_sizes unsafe_split unsafe_split_with_sizes "
    "native_group_norm affine_grid_generator normal multinomial"
)
_SIZED = _RANGES | frozenset(_SIZED_NAMES.split())
"""Operators whose arguments may be sizes of a batch; rules of factories look at the values they fill in."""
_PIECES = frozenset(("unbind", "split", "unsafe_split"))
MOST_PIECES = 5_000
"""Results of one operator; a batch cut into single examples has more."""


def _pieces(name: str, tensor: Tensor, *args: Any, dim: int = 0, **_: Any) -> int:
    """Return into how many pieces a tensor is cut."""
    if name == "unbind":
        return tensor.shape[args[0] if args else dim]
    size, length = tensor.shape[args[1] if len(args) > 1 else dim], max(int(args[0]), 1)
    # A batch in pieces of a share of it, as chunk() cuts it: of few examples there are fewer pieces.
    shares = size and size % VIRTUAL == 0 and length % VIRTUAL
    return size if shares else size // length


def _binary(op: Operation) -> bool:
    """Return whether `max` and `min` compare two tensors, entry by entry."""
    return op.name in ("max", "min") and isinstance(op["other"], Tensor)


ATOMS = frozenset((int, bool, float, str, type(None), torch.dtype))
"""Types of arguments that are compared as they are."""


def _described(value: Any, states: Mapping[int, State]) -> Hashable:
    """Return all that an outcome may depend on; raise TypeError for what cannot be compared."""
    kind = type(value)
    if kind in ATOMS:
        return kind, value
    if isinstance(value, Tensor):
        known = states.get(id(value))
        if known is not None and known.shape is not None:
            return known, value.dtype
        strides = value.stride()
        return known, value.shape, value.dtype, strides if 0 in strides else None
    if isinstance(value, BatchSize):
        return BatchSize, value.ratio
    if isinstance(value, tuple | list):
        return type(value), tuple([_described(entry, states) for entry in value])
    if isinstance(value, dict):
        return dict, tuple([(key, _described(entry, states)) for key, entry in value.items()])
    if isinstance(value, slice):
        return slice, _described((value.start, value.stop, value.step), states)
    if isinstance(value, PrivateInteger):
        return PrivateInteger, plain(value)
    hash(value)
    return type(value), value


class Analysis:
    """Outcomes of functions, kept by what they depend on."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Outcome] = {}
        self._quick: dict[Hashable, tuple[State, ...] | None] = {}

    def quick_outcome(
        self,
        key: Hashable,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: Mapping[int, State],
    ) -> tuple[State, ...] | None:
        """Return the states of the results of a call that does nothing else; None of any other call.

        Args:
            key: All that the outcome depends on.
            func: A function of torch, or a method of tensors.
            args: Its positional arguments.
            kwargs: Its named arguments.
            states: The states of tensors among them that are not public, by identity.
        """
        try:
            return self._quick[key]
        except KeyError:
            pass
        outcome = self.outcome(func, args, kwargs, states)
        states_after = [
            state for state in outcome.results if state is not None and state.kind in (AXIS, TOTAL)
        ]
        more = outcome.failed or outcome.counts or outcome.drawn or outcome.written
        quick = None if more or len(states_after) < len(outcome.results) else tuple(states_after)
        if len(self._quick) < LARGEST:
            self._quick[key] = quick
        return quick

    def outcome(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: Mapping[int, State],
    ) -> Outcome:
        """Return the states of the results of a call, and of arguments that it writes to.

        Args:
            func: A function of torch, or a method of tensors.
            args: Its positional arguments, as they were before the call.
            kwargs: Its named arguments.
            states: The states of tensors among them that are not public, by identity.
        """
        try:
            named = _described(kwargs, states) if kwargs else None
            key = func, named, *[_described(value, states) for value in args]
            known = self._known.get(key)
        except TypeError:
            return self._derived(func, args, kwargs, states)
        if known is None:
            known = self._derived(func, args, kwargs, states)
            if len(self._known) < LARGEST and not known.failed:
                self._known[key] = known
        return known

    def _derived(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: Mapping[int, State],
    ) -> Outcome:
        if not admits_sizes(func, args, kwargs, states):
            return Outcome((), (), getattr(func, "__name__", "operation"), reason=REASON)
        try:
            return _run(EQUIVALENTS.get(func, func), args, kwargs, states)
        except _Pieces as error:
            return Outcome((), (), str(error), counts=True)
        except _Unruled as error:
            return Outcome((), (), str(error))
        except Exception as error:
            name = getattr(func, "__name__", "operation")
            return Outcome((), (), name, reads="on meta tensors" in str(error))


def _run(
    func: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    known_states: Mapping[int, State],
) -> Outcome:
    states: dict[int, State] = {}
    images: dict[int, Tensor] = {}

    def image(tensor: Tensor) -> Tensor:
        if id(tensor) not in images:
            images[id(tensor)] = _image(tensor, known := known_states.get(id(tensor)))
            if known is not None:
                shape = tuple(images[id(tensor)].shape)
                states[id(images[id(tensor)])] = known._replace(shape=shape)
        return images[id(tensor)]

    with (
        _disable_current_modes(),
        torch._C.DisableTorchFunction(),
        torch.no_grad(),
        warnings.catch_warnings(),
    ):
        # They would be about sizes of images.
        warnings.simplefilter("ignore")
        new_args, new_kwargs = _replaced((args, kwargs), image)
        before = {key: states.get(id(entry)) for key, entry in images.items()}
        mode = Interpreter(states, list(images.values()))
        with mode:
            result = func(*new_args, **new_kwargs)
    results = tuple(states.get(id(tensor)) for tensor in _all(result))
    if any(known is not None and known.kind in PRIVATE for known in before.values()) and _computes(func):
        # A second net: what is computed from private tensors is private.
        lost = mixed(getattr(func, "__name__", "operation"), "has no rule for all of its results")
        results = tuple(known if known is not None and known.kind in PRIVATE else lost for known in results)
    given = list(_all((args, kwargs)))
    written = tuple(states.get(id(images[id(tensor)])) for tensor in given)
    unchanged = all(states.get(id(images[key])) == before[key] for key in images)
    single = len(results) == 1 and (results[0] is None or results[0].kind != MIXED)
    simple = single and unchanged and not mode.drawn
    # A copy to another device stands in for one that may give its argument back.
    shares = func is on_device or not _memory(images.values()).isdisjoint(_memory(_all(result)))
    return Outcome(results, () if unchanged else written, drawn=mode.drawn, plain=simple, shares=shares)


def _memory(tensors: Iterable[Tensor]) -> set[int]:
    """Return the addresses of the memory of tensors."""
    return {one.untyped_storage()._cdata for one in tensors if one.layout is torch.strided}


_FORMS = "type_as to expand_as view_as reshape_as broadcast_tensors meshgrid broadcast_to __get__ set_"
_MADE_LIKE = frozenset(_FORMS.split())


def _computes(func: Function) -> bool:
    """Return whether a function uses values of its arguments, and not only their forms."""
    name = getattr(func, "__name__", "")
    return not (name in _MADE_LIKE or name.endswith("_like") or name.startswith("new_"))


def _all(value: Any) -> Sequence[Tensor]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, tuple | list):
        return [tensor for entry in value for tensor in _all(entry)]
    return [value] if isinstance(value, Tensor) else []


def _image(tensor: Tensor, state: State | None) -> Tensor:
    """Return a tensor without content of the same shape, with `VIRTUAL` examples in place of its own."""
    # Meta tensors know no autocast, which would give the arguments of a function one type.
    dtype = torch.float32 if tensor.dtype in _HALF and _autocasts() else tensor.dtype
    if state is None and times_batch(tuple(tensor.shape)):
        raise _Unruled(f"a public size of {VIRTUAL}, which stands for that of the batch")
    if state is not None and state.shape is not None:
        return torch.empty(state.shape, dtype=dtype, device="meta")
    if state is not None and state.kind not in (UNIFORM, MIXED) and state.outer:
        raise _Unruled("a tensor of unknown form")
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device="meta")


def _autocasts() -> bool:
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


def _replaced(value: Any, image: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return image(value)
    if isinstance(value, BatchSize):
        return value.ratio * VIRTUAL
    if isinstance(value, PrivateInteger):
        return plain(value)
    if isinstance(value, torch.device):
        return torch.device("meta")
    if isinstance(value, slice):
        return slice(*(_replaced(entry, image) for entry in (value.start, value.stop, value.step)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(entry, image) for entry in value))
    if isinstance(value, torch.Size):
        return tuple(_replaced(entry, image) for entry in value)
    if isinstance(value, tuple | list):
        return type(value)(_replaced(entry, image) for entry in value)
    if isinstance(value, dict):
        changed = copy(value)
        for key, entry in value.items():
            changed[key] = torch.device("meta") if key == "device" else _replaced(entry, image)
        return changed
    if type(value) in (int, float) and value and math.isfinite(value) and value % VIRTUAL == 0:
        raise _Unruled(f"a public number {value}, which stands for the size of the batch")
    return value
