"""`Tape`: watches every torch function of a pass, and keeps what each example adds to each gradient.

The tape is a torch function mode, active from the batch that a loader hands out to the step. Every function
of torch passes through it. Where no parameter is among its arguments the function runs as it is, and its
results get the states that the analysis derives (`dataflow`). Where only parameters and constants are, the
result is *derived*: a parameter itself, as far as examples are concerned. Where a parameter meets examples, a
rule takes over: it computes the same, and on the way back it hands the gradient on to the examples' side,
gives none to the parameter, and puts a part (`parts`) on the tape. What has no rule is differentiated example
by example (`anything`). So a use of a parameter is either on the tape or has given the parameter an ordinary
gradient, which is refused: no third case exists.

A backward pass is accepted only of a total: a sum or mean over examples of per-example losses, times and plus
public numbers. Then the gradient of that loss is a sum of gradients that each depend on one example, and
clipping them bounds what one example can change.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch.autograd.function import BackwardCFunction
from torch.nn import Parameter, functional
from torch.overrides import TorchFunctionMode

from dalenius.errors import DaleniusError, NotSound
from dalenius.learn import criteria
from dalenius.learn.arguments import admitted, foreign, is_foreign
from dalenius.learn.checkpointing import direct_checkpoints, kept_activations, saved_elsewhere
from dalenius.learn.custom_functions import REGISTERED, guarded_functions
from dalenius.learn.dataflow import batch_length, reads
from dalenius.learn.dataflow.equivalents import REPLACEMENTS
from dalenius.learn.dataflow.interpreter import ATOMS, Analysis, Outcome
from dalenius.learn.dataflow.item_writes import after_write
from dalenius.learn.dataflow.kept_tensors import PrivateTensor, Runs, guard
from dalenius.learn.dataflow.operations import MOST_POWER
from dalenius.learn.dataflow.plain_results import check_result
from dalenius.learn.dataflow.private_mathematics import private_mathematics
from dalenius.learn.dataflow.private_numbers import (
    BatchSize,
    PrivateInteger,
    PrivateNumber,
    plain,
    present_sizes,
    virtual_sizes,
    whole_sizes,
)
from dalenius.learn.dataflow.provenance import Origin, called, origin, user_line
from dalenius.learn.dataflow.result_forms import CUTS, check_count, check_rank, check_structure
from dalenius.learn.dataflow.size_arguments import REASON
from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    MIXED,
    PRIVATE,
    STATE,
    TOTAL,
    UNIFORM,
    VARIED,
    VIRTUAL,
    State,
    Tag,
    Writes,
    is_long,
    mixed,
    put_tag,
    tag_of,
)
from dalenius.learn.dataflow.warning_records import are_recorded, quiet_warnings
from dalenius.learn.failures import failure as failure_of
from dalenius.learn.index_range import GUARDED, PICK, with_valid_indices
from dalenius.learn.layers import Layers
from dalenius.learn.lookups import united
from dalenius.learn.marks import (
    Pass,
    derive,
    derived,
    found_in,
    note_ragged,
    ragged,
    replaced,
    tensors_in,
)
from dalenius.learn.overrides import (
    check_anomalies,
    check_class,
    check_function_modes,
    check_modes,
    is_own,
    nested,
)
from dalenius.learn.parts import HALF, Part, Whole
from dalenius.learn.random_state import is_own as is_own_seed
from dalenius.learn.random_state import run_seed, watched_generator
from dalenius.learn.script_calls import followed_scripts
from dalenius.learn.thread_calls import guarded_threads
from dalenius.learn.written_memory import (
    check_memory,
    check_out,
    check_replaced,
    check_spread,
    guard_replacement,
)

Function = Callable[..., Any]
Rule = Callable[["Tape", Function, tuple[Any, ...], dict[str, Any]], Any]
"""Computes what the function would, and puts parts on the tape on the way back."""

_transformed = functorch.maybe_current_level
_dispatched = torch._C._len_torch_dispatch_stack
_TRANSFORMS = frozenset(
    ("torch._functorch.vmap", "torch._functorch.eager_transforms", "torch._functorch.apis")
)
"""Modules that read the sizes of what they transform."""
_UNSEEN = {"has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"}
_FACTORIES = frozenset(
    getattr(torch, name)
    for name in ["zeros", "ones", "full", "empty", "rand", "randn", "randint", "normal", "arange"]
)
_DIVISIONS = frozenset(
    (torch.div, torch.true_divide, Tensor.div, Tensor.true_divide, Tensor.__truediv__, Tensor.__div__)
)
_PRODUCTS = frozenset((torch.mul, torch.multiply, Tensor.mul, Tensor.__mul__, Tensor.__rmul__))
_MEASURES = frozenset((reads.SHAPE, reads.BYTES, *reads.SIZES))
_NEW = Tensor.new_empty, Tensor.new_empty_strided
_EMPTY = frozenset((torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, *_NEW))
"""Functions whose results hold whatever was in memory before."""
_GROWING = frozenset(("resize_", "resize_as_", "new", "resize", "resize_as"))
"""Methods that may show what was in memory before, beside values of their own."""
_STORAGES = frozenset((Tensor.storage, Tensor.untyped_storage))
_DRAWS = "_dalenius_draws"
_HOOKS = frozenset((Tensor.register_hook, Tensor.register_post_accumulate_grad_hook))
_SET_DATA = vars(torch._C.TensorBase)["data"].__set__
_GET_DATA = vars(torch._C.TensorBase)["data"].__get__
_EXCHANGES = "torch.distributed.distributed_c10d"
_ONE_SIDED = frozenset(("send", "isend", "broadcast", "scatter"))
_NUMBERS = itertools.count(1)
_OPEN: list[Tape] = []
"""Tapes of loops that have begun and not ended; only the last one watches."""
PrivateTensor.watched = staticmethod(lambda: bool(_OPEN))
# A process that is forked, as to read public data, has no loop of its own.
os.register_at_fork(after_in_child=_OPEN.clear)
KNOWN = frozenset(
    (
        "transformers.models.bloom.modeling_bloom.GeLUFunction",
        "torch.distributed.fsdp._fully_shard._fsdp_param_group.RegisterPostBackwardFunction",
    )
)
"""Custom functions of other libraries that were read: they compute every entry by itself, or hand it on."""
_UNASKED = frozenset(("_backward", "_read", "_exchanged", "_counted"))
"""Methods of functions that are not called again, on tensors without values, to know why they failed."""
_UNKNOWN = {
    "": "is not known to keep examples apart",
    "one_hot": "makes as many classes as the largest label of the batch says: pass num_classes=…",
}
"""Why a result is mixed of which nothing is known, by function."""
_STALE = Origin("a tensor", "was kept from an earlier batch, whose examples are others", "")
_ALIAS = Origin("a tensor", "shares memory that private values, or values of some rows, were written to", "")
_SIZED_ALIAS = Origin("a tensor", "is as long as a batch, which is private", "")


class Tape(TorchFunctionMode):
    """The forward passes over one chunk of a batch, by the names of the parameters that are trained.

    Args:
        names: The trained parameters and what they are called.
    """

    def __init__(self, names: Mapping[Tensor, str]) -> None:
        from dalenius.learn.rules import BAGS, FOLLOWED, RULES, SELECTING

        super().__init__()
        self._rules, self._bags, self._followed, self._selecting = RULES, BAGS, FOLLOWED, SELECTING
        self.know(names)
        self.examples = self.rows = 0
        self.gain = 1.0
        """What the gradients of the pass at hand are multiplied by."""
        self.paused = False
        self.looping = False
        """Whether a loop is watched, and not only a forward pass."""
        self.inside = 0
        """How many forward passes of the private model are under way."""
        self.powers: set[int] = set()
        """Of the losses of the backward passes since the last parts were taken: 0 for sums, −1 for means."""
        self.adopted = False
        """Whether the parts are of a pass that was made elsewhere, as by `private.loss`."""
        self.failed = ""
        """The operation on private examples that raised an error, if any did."""
        self.vouched: set[type] = set()
        """Registered custom functions that private tensors came from."""
        self._number, self._seed = 0, run_seed()
        self._sizes: set[int] = set()
        self._parts: dict[Tensor, list[Part]] = {}
        self._stands: dict[Tensor, Tensor] = {}
        self._analysis, self._writes = Analysis(), Writes()
        self._live: list[ref[Tensor]] = []
        self._generators: list[Any] = []
        self._opening: list[Function] = []
        """Functions of torch whose parts are followed at present."""
        self._draws = 0
        """How often random numbers were drawn whose number may be private."""
        self._noted: set[int] = set()
        self._unsure = False
        """Whether the last call was not analysed, so that what it wrote to is not known."""
        self.layers: Layers | None = None
        """Where layers are clipped by themselves."""

    def of(self, names: Mapping[Tensor, str]) -> Tape:
        """Return another tape for the same model, with other tensors for its parameters."""
        other = Tape(names)
        other._analysis, other._writes, other._number = self._analysis, self._writes, self._number
        other.examples, other.rows, other.looping = self.examples, self.rows, self.looping
        other.gain = self.gain
        other._seed, other.vouched = self._seed, self.vouched
        return other

    def know(self, names: Mapping[Tensor, str]) -> None:
        """Set what parameters are in a forward pass."""
        self.names = names
        # To look a tensor up by its hash is slow; those in `names` stay alive.
        self._ids = frozenset(map(id, names))

    # Passes.

    @property
    def number(self) -> int:
        """The number of the pass that tensors and sizes are tagged with at present."""
        return self._number

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what is called inside, unless this tape is watching already."""
        if _OPEN and _OPEN[-1] is self:
            yield
            return
        if self in _OPEN:
            # Beneath the loop of another run: the mode is there already.
            _OPEN.append(self)
            try:
                yield
            finally:
                del _OPEN[len(_OPEN) - 1 - _OPEN[::-1].index(self)]
            return
        guard_replacement(_is_watched)
        _OPEN.append(self)
        self.__enter__()
        try:
            with (
                batch_length.tracked(_length),
                private_mathematics(),
                direct_checkpoints(),
                followed_scripts(_is_private, _is_looping),
                guarded_threads(_is_watched),
                guarded_functions(_is_known_function),
            ):
                yield
        finally:
            _OPEN.remove(self)
            _withdraw(self)

    def _is_active(self) -> bool:
        """Return whether the code of a loop that this tape watches is running."""
        return bool(_OPEN) and self.looping and not self.paused

    def guarded_generators(self) -> AbstractContextManager[None]:
        """Return a context in which states and seeds of torch's generators are private values of the loop."""
        return watched_generator(self._mark_drawn, self._check_restored, self._is_active)

    def note_drawn(self) -> None:
        """Note that random numbers were drawn for the batch."""
        self._draws += 1

    def _mark_drawn(self, state: Tensor) -> None:
        """Note that the state of a random generator tells how many examples there are."""
        self._tag(state, mixed("get_state", "tells how many random numbers the examples have used"))
        setattr(state, _DRAWS, self._draws)

    def _check_restored(self, state: Tensor) -> None:
        """Refuse to put a state of the generator back after the examples have used random numbers."""
        if getattr(state, _DRAWS, None) != self._draws:
            raise NotSound(
                f"The state of torch's generator is set{user_line()}, after the examples have used random "
                "numbers: how many they used is private, and later numbers would tell.",
                remedy="Leave the generator to the run, whose key seeds every step.",
            )

    def check_watching(self) -> None:
        """Refuse to go on where this tape was taken off torch's stack of modes, or has others beneath it."""
        if self in _OPEN:
            check_function_modes(self)
            check_modes()

    @contextmanager
    def unwatched(self, paused: bool = True) -> Iterator[None]:
        """Leave what is called inside alone; or, if not `paused`, watch it again."""
        # The code of one run is not watched by the loops of others either.
        tapes = list({id(tape): tape for tape in (self, *(_OPEN if paused else ()))}.values())
        before = [tape.paused for tape in tapes]
        for tape in tapes:
            tape.paused = paused
        try:
            yield
        finally:
            for tape, earlier in zip(tapes, before, strict=True):
                tape.paused = earlier

    def begin(self, examples: int, rows: int) -> None:
        """Begin a pass over a chunk of so many examples, in so many rows."""
        self.drop()
        self.examples, self.rows, self.gain = examples, rows, 1.0
        self._number = Pass.number = next(_NUMBERS)
        self._seed = run_seed()
        self._writes.forget_freed()
        self._live = [known for known in self._live if known() is not None]

    def guard(self) -> None:
        """Let private tensors that outlive a loop stay private where nothing is watched."""
        runs = Runs((ref(self),))
        with torch._C.DisableTorchFunction():
            for known in self._live:
                tensor = known()
                if (
                    tensor is not None
                    and id(tensor) not in self._ids
                    and _is_watched_state(self.state(tensor))
                ):
                    guard(tensor, runs)
            for tensor in self._writes.tensors_left():
                if id(tensor) not in self._ids and _is_watched_state(self.state(tensor)):
                    guard(tensor, runs)
        self._live = []

    def drop(self) -> None:
        """Forget the parts of a pass that was not finished."""
        self._sizes, self._stands = set(), {}
        self.forget()
        if self.layers is not None:
            self.layers.drop()

    def forget(self) -> None:
        """Forget backward passes; those of forward passes that were made can still follow."""
        self._parts, self.powers, self.adopted = {}, set(), False
        if self.layers is not None:
            self.layers.forget()

    def give(self, tensor: Tensor, dimension: int = 0) -> None:
        """Say which dimension of a tensor of the batch holds its rows."""
        shape = list(tensor.shape)
        shape[dimension] = VIRTUAL * (shape[dimension] // max(self.examples, 1) or 1)
        self._tag(tensor, State(AXIS, math.prod(shape[:dimension]), tuple(shape)))

    def give_state(self, tensor: Tensor, state: State | None) -> None:
        """Say what is known of a tensor in the present pass."""
        self._tag(tensor, state)

    def give_mixed(self, tensor: Tensor, operation: str, reason: str) -> None:
        """Say that a tensor of the batch is not known by example."""
        self._tag(tensor, mixed(operation, reason))

    def open(self, examples: int, rows: int) -> None:
        """Begin the forward pass of a model outside of a watched loop."""
        self.check_taken_in()
        sizes = self._sizes
        self.begin(examples, rows)
        self._sizes = sizes | {examples}

    def check_taken_in(self) -> None:
        """Refuse another pass while parts of an earlier one wait to be taken in."""
        if self._parts or (self.layers is not None and self.layers.holding):
            self.drop()
            raise NotSound(
                "A backward pass was made and not taken in before the next forward pass: examples of both "
                "would be clipped together.",
                remedy="Step, or accumulate, after every backward pass; call the model under torch.no_grad() "
                "for anything else.",
            )

    # States.

    def hold_storage(self, storage: Any) -> None:
        """Note that private values lie in some memory."""
        self._writes.hold_storage(storage)

    def state(self, tensor: Tensor) -> State | None:
        """Return what is known of a tensor in the present pass; None if it is public."""
        if type(tensor) is PrivateTensor:
            return State(MIXED, origin=_STALE)
        tag = tag_of(tensor)
        if tag is None:
            if (self._writes and self._writes.date(tensor)) or self._writes.holds(tensor):
                return State(MIXED, origin=_ALIAS)
            if self._writes.has_length(tensor) or self._is_odd_parameter(tensor):
                return State(MIXED, origin=_SIZED_ALIAS)
            if len(_OPEN) > 1 and self._is_known_elsewhere(tensor):
                return State(MIXED, origin=_ALIAS)
            return self._hidden(tensor, False) if tensor.requires_grad else None
        state = tag.state
        stale = tag.number != self._number
        if stale and (state.kind in PRIVATE or is_long(state)):
            return State(MIXED, origin=_STALE)
        if self._writes and self._writes.date(tensor) > tag.clock:
            return State(MIXED, origin=_ALIAS)
        if state.kind not in PRIVATE:
            # Its memory may have been written through another tensor, by this run or by another whose loop is
            # open, or replaced, as by set_(), which is no function that passes through here.
            if self._writes.holds(tensor):
                return State(MIXED, origin=_ALIAS)
            if not is_long(state) and self._writes.has_length(tensor):
                return State(MIXED, origin=_SIZED_ALIAS)
            if len(_OPEN) > 1 and self._is_known_elsewhere(tensor):
                return State(MIXED, origin=_ALIAS)
        if stale:
            return state if state.kind == UNIFORM else None
        if state.kind == UNIFORM and not is_long(state) and state.shape not in (None, tensor.shape):
            # Replaced by public memory of another size.
            return None
        if tensor.requires_grad and state.kind in PRIVATE:
            return self._hidden(tensor, True) or state
        return state

    def _is_known_elsewhere(self, tensor: Tensor) -> bool:
        """Return whether another run whose loop is open knows private values in the memory of a tensor."""
        return any(tape._writes.knows(tensor) for tape in _OPEN if tape is not self)

    def _is_odd_parameter(self, tensor: Tensor) -> bool:
        """Return whether a parameter that is not trained may lie on memory that is not known by its address.

        `nn.Parameter(x)` is seen by no mode. Sparse tensors have several memories, and expanded ones lie on
        memory of another size.
        """
        if type(tensor) is not Parameter or id(tensor) in self._ids or not self.looping:
            return False
        return tensor.layout is not torch.strided or 0 in tensor.stride()

    def _hidden(self, tensor: Tensor, tagged: bool) -> State | None:
        """Return MIXED for the result of a custom function, whose way back is not known."""
        try:
            node: Any = tensor.grad_fn
        except RuntimeError:
            # A view that was made without gradients, of a tensor that was written to: it has no way back.
            return None
        if not isinstance(node, BackwardCFunction) or derived(tensor):
            return None
        function = getattr(node, "_forward_cls", None)
        own = getattr(function, "__module__", "").startswith("dalenius.")
        known = f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}" in KNOWN
        if tagged and function in REGISTERED:
            self.vouched.add(function)
            return None
        if tagged and (own or known):
            return None
        name = getattr(function, "__name__", type(node).__name__)
        name = "register_full_backward_hook" if name == "BackwardHookFunction" else name
        return mixed(name, "is a custom function, whose backward pass is not known to keep examples apart")

    def _tag(self, tensor: Tensor, state: State | None) -> None:
        if state is not None and state.power and tensor.dtype in HALF:
            # Its gradient would be 1/n in half precision, which is off by an amount that depends on n.
            state = mixed("A mean over examples", "is taken in half precision: call .float() before it")
        if state is not None and state.kind == UNIFORM and tensor.numel() > 1 and not is_long(state):
            # A constant, whose entries may be set one by one, also by views and arrays on its memory.
            state = None
        if state is None:
            put_tag(tensor, None)
        else:
            put_tag(tensor, Tag(state, self._number, self._writes.clock))
            if state.kind in PRIVATE:
                self._writes.hold(tensor)
            elif is_long(state) and not tensor._is_view():
                # A view, such as an expanded constant, lies in memory of a public size.
                self._writes.hold(tensor, private=False)
            if self.looping and _is_watched_state(state):
                self._live.append(ref(tensor))

    def _tag_quickly(self, tensor: Tensor, state: State | None) -> bool:
        """Tag a plain tensor inside of a call, where no mode is active and nothing is transformed.

        Returns:
            Whether the tensor was tagged; `_tag` tags any other.
        """
        if state is None or tensor.layout is not torch.strided or state.power:
            return False
        writes = self._writes
        setattr(tensor, STATE, Tag(state, self._number, writes.clock))
        if state.kind in PRIVATE:
            writes.hold_storage(tensor.untyped_storage())
            if self.looping:
                self._live.append(ref(tensor))
            return True
        if is_long(state):
            if not tensor._is_view():
                writes.hold_storage(tensor.untyped_storage(), private=False)
            if self.looping:
                self._live.append(ref(tensor))
        return True

    # What is called.

    def __torch_function__(
        self, func: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run a function of torch, by a rule where a parameter meets examples."""
        kwargs = kwargs or {}
        if self.paused or not _OPEN:
            return _call(func, args, kwargs)
        several = len(_OPEN) > 1 or _OPEN[0] is not self
        if not several and traits_of(func).quick:
            result = self._run_quickly(func, args, kwargs)
            if result is not NotImplemented:
                return result
        if self.looping:
            if traits_of(func).foreign:
                raise foreign(_name(func))
            if func not in _HOOKS:
                args, kwargs = admitted(_name(func), args, kwargs)
        if several and not self._owns(args, kwargs):
            return _call(func, args, kwargs)
        if _of_types(args, kwargs, _SIZES):
            args, kwargs = present_sizes(args, self._number), present_sizes(kwargs, self._number)
        tensors = found_in(args, kwargs)
        if self.looping:
            self._check_arguments(types, tensors)
            if func == _GET_DATA:
                # The same values; a write into them is counted, so that a backward pass finds it.
                return self.__torch_function__(Tensor.detach, types, args)
            if func is Tensor.new and _gives_sizes(args[1:]) and not kwargs:
                sizes = args[1] if isinstance(args[1], torch.Size) else args[1:]
                return self.__torch_function__(Tensor.new_empty, types, (args[0], sizes))
        if _transformed() is not None:
            self._check_transformed(tensors)
        states, private, ids = {}, False, self._ids
        weights: list[Tensor] = []
        for tensor in tensors:
            if id(tensor) in ids:
                weights.append(tensor)
                if not several and not self._writes and not self._writes.holds(tensor):
                    continue
            elif derived(tensor):
                weights.append(tensor)
            state = self.state(tensor)
            if state is not None:
                states[id(tensor)] = state
                private = private or state.kind in PRIVATE
        if func in _MEASURES:
            known = states.get(id(args[0])) if args else None
            if known is not None and private and sys._getframe(1).f_globals["__name__"] in _TRANSFORMS:
                raise _untransformed()
            return func(*args, **kwargs) if known is None else reads.measured(func, args, kwargs, known)
        if not torch.is_grad_enabled():
            weights = []
        if self.looping and not private:
            _check_public(func, trained=bool(weights))
        try:
            if saved_elsewhere() is None and not are_recorded():
                return self._by_rule(func, args, kwargs, states, weights, private)
            with kept_activations(), quiet_warnings():
                return self._by_rule(func, args, kwargs, states, weights, private)
        except DaleniusError:
            raise
        except Exception as error:
            sized = _sized(args, kwargs) or _numbered(args, kwargs)
            watched = private or sized or any(map(is_long, states.values()))
            lost = any(state.kind == MIXED for state in states.values())
            failure = self._note_failure(func, args, kwargs, error, lost) if watched else None
            if failure is None:
                failure = _kept_inside(tensors)
            if failure is None:
                raise
        # Outside of the handler, so that the error does not carry the original one.
        raise failure

    @staticmethod
    def _check_arguments(types: Any, tensors: list[Tensor]) -> None:
        """Refuse tensors that are not followed, and modes that run beneath the functions of torch."""
        for kind in {*types, *map(type, tensors)}:
            check_class(kind)
        if any(tensor.is_nested for tensor in tensors):
            raise nested()
        check_modes()

    def _note_failure(
        self, func: Function, args: Any, kwargs: Any, error: Exception, lost: bool = False
    ) -> Exception | None:
        """Remember that a function failed on private examples.

        Args:
            func: The function.
            args: Its positional arguments.
            kwargs: Its named arguments.
            error: The error that it raised.
            lost: Whether any size may depend on private values, and not only that of the batch.

        Returns:
            An error to raise in its place, without private values and sizes; None where it has none.
        """
        self.note_failure(f"{_name(func)}{user_line()}")
        if not self.looping:
            return None
        asked = not _numbered(args, kwargs) and traits_of(func).special not in _UNASKED
        args, kwargs = virtual_sizes(args), virtual_sizes(kwargs)
        shown = _hidden if lost else _shown
        return failure_of(
            func, args, kwargs, error, _name(func), shown=shown, bare=self._without_values, asked=asked
        )

    def _without_values(self, tensor: Tensor) -> Tensor:
        """Return a tensor without values, with `VIRTUAL` examples in the place of those of the batch."""
        state = self.state(tensor)
        if state is None or state.shape is None or not is_long(state):
            return Tensor.detach(tensor).to("meta")
        return torch.empty(state.shape, dtype=tensor.dtype, device="meta")

    def _run_quickly(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function of tensors with a batch axis, parameters and plain numbers, in few steps.

        Most calls of a pass are such, and this is the general way without the steps that do nothing for them.
        Anything else, such as the size of a batch or a tensor of an earlier pass, is left to the general way.

        Args:
            func: A function whose traits are `quick`.
            args: Its positional arguments.
            kwargs: Its named arguments.

        Returns:
            The result of the call, or NotImplemented if the call has to take the general way.
        """
        if self._writes.dates or _transformed() is not None or saved_elsewhere() is not None:
            return NotImplemented
        if _dispatched() or (func is PICK and type(args[1]) is Tensor) or "rounding_mode" in kwargs:
            return NotImplemented
        states: dict[int, State] = {}
        key: list[Any] = [func, *kwargs]
        weights: list[Tensor] = []
        held, lengths = self._writes.held, self._writes.lengths
        for value in (*args, *kwargs.values()) if kwargs else args:
            kind = type(value)
            if kind is Tensor:
                tag: Tag | None = getattr(value, STATE, None)
                if tag is None or tag.number != self._number or tag.state.kind != AXIS:
                    return NotImplemented
                if value.requires_grad and not _is_followed_back(value):
                    return NotImplemented
                states[id(value)] = tag.state
                key += tag.state, value.dtype
            elif kind in ATOMS:
                key += kind, value
            elif kind is Parameter:
                if id(value) in self._ids:
                    weights.append(value)
                elif value.requires_grad or getattr(value, STATE, None) is not None:
                    return NotImplemented
                if value.layout is not torch.strided:
                    return NotImplemented
                address = value.untyped_storage()._cdata
                if address in held or address in lengths:
                    return NotImplemented
                if 0 in value.stride():
                    return NotImplemented
                key += value.shape, value.dtype
            elif kind in _LISTS or kind is slice or value is Ellipsis:
                described = _described_plainly(value)
                if described is None:
                    return NotImplemented
                key += kind, described
            else:
                return NotImplemented
        if not states:
            return NotImplemented
        after = self._analysis.quick_outcome(tuple(key), func, args, kwargs, states)
        if after is None:
            return NotImplemented
        rule = None
        if weights and torch.is_grad_enabled():
            rule = self._rules.get(func)
            if rule is None or not self.inside:
                return NotImplemented
            self._note(weights)
        try:
            if are_recorded():
                with quiet_warnings():
                    result = func(*args, **kwargs) if rule is None else rule(self, func, args, kwargs)
            else:
                result = func(*args, **kwargs) if rule is None else rule(self, func, args, kwargs)
        except DaleniusError:
            raise
        except Exception as error:
            failure = self._note_failure(func, args, kwargs, error)
            if failure is None:
                raise
        else:
            failure = None
        if failure is not None:
            # Outside of the handler, so that the error does not carry the original one.
            raise failure
        if type(result) is Tensor:
            result = _laid_out(result, args, kwargs) if func is Tensor.contiguous else result
            if len(after) == 1 and self._tag_quickly(result, after[0]):
                return result
            results = [result]
        else:
            check_result(_name(func), result)
            results = list(tensors_in(result))
        if len(results) == len(after):
            for tensor, state in zip(results, after, strict=True):
                self._tag(tensor, state)
        else:
            self._follow_fully(func, args, kwargs, result, states)
        return result

    def _by_rule(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: dict[int, State],
        weights: list[Tensor],
        private: bool,
    ) -> Any:
        """Run a function by the rule that it has as a whole, if it has one, or by those of its operators."""
        replaces = traits_of(func).replaces
        if self.looping and (replaces or kwargs.get("out") is not None):
            sized = _sized(args, kwargs) or _numbered(args, kwargs)
            watched = sized or any(map(_is_watched_state, states.values()))
            if replaces:
                check_replaced(watched)
            elif watched:
                after = () if sized else self._outcome(func, args, kwargs, states).results
                check_out(_name(func), kwargs["out"], states, after)
        if func in self._followed:
            result = self._followed[func](self, func, args, kwargs)
            if result is not None:
                return result
        if private:
            result = self._selecting(self, func, args, kwargs)
            if result is not None:
                return result
        if not states and not weights:
            return self._public(func, args, kwargs)
        return self._called(func, args, kwargs, states, weights, private)

    def _called(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: dict[int, State],
        weights: list[Tensor],
        private: bool,
    ) -> Any:
        """Run a function whose tensors have these states, and note what it writes to."""
        if weights and func in _HOOKS:
            raise _hooked(self._named(weights))
        tensors = found_in(args, kwargs) if private else []
        # Not by way of the loops of other runs, whose modes are still active here.
        with torch._C.DisableTorchFunction():
            versions = list(map(version_of, tensors))
        self._noted.clear()
        self._unsure = False
        result = self._called_with(func, args, kwargs, states, weights, private)
        if not self._unsure:
            return result
        with torch._C.DisableTorchFunction():
            versions_after = list(map(version_of, tensors))
        for tensor, before, after in zip(tensors, versions, versions_after, strict=True):
            if before != after and id(tensor) not in self._noted:
                unseen = mixed(_name(func), "writes private values in a way that is not followed")
                self._note_write(tensor, states.get(id(tensor)), unseen)
        return result

    def _called_with(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: dict[int, State],
        weights: list[Tensor],
        private: bool,
    ) -> Any:
        traits = traits_of(func)
        if private and self.looping and torch.is_grad_enabled():
            self._check_learned(func, args, kwargs, states)
        if private and (traits.writes or "out" in kwargs):
            for target in _targets(func, args, kwargs):
                check_memory(target, states.get(id(target)), _name(func))
                check_spread(target, _name(func))
        if private and traits.mutates:
            raise NotSound(
                f"{_name(func)} writes to tensors that it is given{user_line()}, and what it writes is not "
                "followed.",
                remedy="Use the function or method of torch that does the same.",
            )
        if traits.special == "_written" and _sized(args[1:], kwargs):
            _call(func, args, kwargs)
            reason = "writes by the size of the batch, which is private"
            self._note_write(args[0], states.get(id(args[0])), mixed(_name(func), reason))
            return None
        if func == _SET_DATA and states:
            if private and self.looping:
                raise NotSound(
                    f"x.data = y{user_line()} replaces the values of a tensor by private ones, which a "
                    "backward pass would use unseen.",
                    remedy="Use the private tensor itself.",
                )
            return self._replaced(func, args, kwargs, states)
        if func in reads.VALUES and any(map(is_long, states.values())):
            return reads.READS[func](*args, **kwargs)
        if private and traits.takes_indices:
            args, kwargs = self._with_valid_indices(func, args, kwargs, states)
        if private and traits.special:
            return self._special(traits.special)(func, args, kwargs, states)
        return self._run(func, args, kwargs, states, weights)

    def _with_valid_indices(
        self, func: Function, args: Any, kwargs: Any, states: dict[int, State]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a lookup or a criterion with every index in range, and tag them."""
        before = found_in(args, kwargs)
        if any(ragged(tensor) is not None for tensor in before):
            # The rule for bags takes the tokens from the padded batch that they were picked from.
            return args, kwargs
        with torch._C.DisableTorchFunction():
            args, kwargs = with_valid_indices(func, args, kwargs, partial(_is_in, states))
        for tensor, valid in zip(before, found_in(args, kwargs), strict=True):
            if valid is not tensor and id(tensor) in states:
                states[id(valid)] = states[id(tensor)]
                self._tag(valid, states[id(tensor)])
        return args, kwargs

    def _check_learned(self, func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> None:
        """Refuse tensors that would get gradients of private examples, and that the run does not train."""
        for tensor in found_in(args, kwargs):
            if not tensor.requires_grad or id(tensor) in self._ids or derived(tensor):
                continue
            state = states.get(id(tensor))
            public = state is None or (state.kind not in PRIVATE and not is_long(state))
            if public and (state is not None or tensor.is_leaf or not self._is_own(tensor)):
                raise NotSound(
                    f"{_name(func)} takes private examples and a tensor that requires gradients, and that "
                    f"the run does not train{user_line()}: its gradient would be private, without noise.",
                    remedy="Make it a parameter of the model, or call requires_grad_(False) or detach().",
                )

    @staticmethod
    def _is_own(tensor: Tensor) -> bool:
        """Return whether a tensor comes from a rule of this library."""
        node: Any = tensor.grad_fn
        function = getattr(node, "_forward_cls", None)
        return getattr(function, "__module__", "").startswith("dalenius.")

    def _owns(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether a call is of this run, where the loops of several are open."""
        tags = [tag for tensor in found_in(args, kwargs) if (tag := tag_of(tensor)) is not None]
        numbers = {tag.number for tag in tags}
        numbers |= {value.number for value in _flat(args, kwargs) if type(value) is BatchSize}
        if self._number in numbers:
            return True
        others = {tape._number for tape in _OPEN if tape is not self}
        # The last open loop may have been collected as garbage since the call began.
        return bool(_OPEN) and _OPEN[-1] is self and not numbers & others

    def _is_advanced(self, generator: Any) -> bool:
        """Return whether a generator of the user's has drawn a number for each example before."""
        return any(known is generator for known in self._generators)

    def _is_reseeded(self) -> bool:
        """Return whether torch's generator has a seed that no run whose loop is open has given it."""
        seed = run_seed()
        known = seed == self._seed or any(seed == tape._seed for tape in _OPEN)
        return not (is_own_seed() and known)

    def _check_transformed(self, tensors: list[Tensor]) -> None:
        """Refuse transforms of torch.func over private tensors, whose results are not followed."""
        for tensor in tensors:
            inner = tensor
            while functorch.is_functorch_wrapped_tensor(inner):
                inner = functorch.get_unwrapped(inner)
            if not self.is_public(inner):
                raise _untransformed()

    def _public(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function of public tensors and numbers."""
        if _numbered(args, kwargs):
            return self._of_numbers(func, args, kwargs)
        sized = _sized(args, kwargs)
        if sized:
            check_structure(_name(func), args, kwargs, {})
        result = _call(func, args, kwargs)
        if _name(func) in _GROWING and self.looping:
            reason = "may show memory that private tensors have used before"
            for tensor in tensors_in(result):
                self._note_write(tensor, None, mixed(_name(func), reason))
            return result
        if sized:
            check_result(_name(func), result)
        if "generator" in kwargs and self._is_advanced(kwargs["generator"]):
            drawn = mixed(_name(func), "draws from a generator that has drawn a number for each example")
            for tensor in tensors_in(result):
                self._tag(tensor, drawn)
            return result
        if sized and in_place(func):
            reason = "writes by the size of the batch, which is private"
            self._note_write(args[0], None, mixed(_name(func), reason))
        elif sized or (isinstance(result, Tensor) and func in _FACTORIES):
            self._follow(func, args, kwargs, result, {})
        return result

    def _of_numbers(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function of private numbers: its results are mixed."""
        if any(isinstance(one, PrivateNumber) and type(plain(one)) is bool for one in _flat(args, kwargs)):
            raise NotSound(
                f"{_name(func)} takes a truth value of private examples{user_line()}, which may decide what "
                "it returns.",
                remedy="Use public flags, and torch.where(condition, a, b) for values.",
            )
        check_structure(_name(func), args, kwargs, {})
        result = func(*whole_sizes(_plain(args)), **whole_sizes(_plain(kwargs)))
        check_result(_name(func), result)
        self._draws += 1
        if "generator" in kwargs:
            self._generators.append(kwargs["generator"])
        given = found_in(args, kwargs)
        absorbed = next((one for tensor in given if (one := self.state(tensor)) and one.kind == MIXED), None)
        numbers = (one for one in _flat(args, kwargs) if isinstance(one, PrivateNumber | PrivateInteger))
        source = next((number.source for number in numbers), "shape")
        state = mixed(_name(func), f"takes a value that {source} read out of private examples")
        for tensor in tensors_in(result):
            self._tag(tensor, absorbed or state)
        for target in _targets(func, args, kwargs):
            self._note_write(target, None, absorbed or state)
        return result

    def _run(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: dict[int, State],
        weights: list[Tensor],
    ) -> Any:
        if _numbered(args, kwargs):
            return self._of_numbers(func, args, kwargs)
        if _sized(args, kwargs):
            check_structure(_name(func), args, kwargs, states)
        if saved_elsewhere() is None:
            return self._made(func, args, kwargs, states, weights)
        with kept_activations():
            return self._made(func, args, kwargs, states, weights)

    def call(self, func: Function, args: tuple[Any, ...]) -> Any:
        """Run a function that is not one of torch's, by its rule where a parameter meets examples."""
        args = present_sizes(args, self._number)
        pairs = ((tensor, self.state(tensor)) for tensor in found_in(args, {}))
        states = {id(tensor): state for tensor, state in pairs if state is not None}
        return self._run(func, args, {}, states, self._weights(args, {}))

    def _made(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        states: dict[int, State],
        weights: list[Tensor],
    ) -> Any:
        if weights:
            self._place_copies(args, kwargs, states)
        if weights and self._meets(func, args, kwargs, states, weights):
            result = self._meet(func, args, kwargs, weights, states)
            self._follow(func, args, kwargs, result, states)
            return result
        result = _call(func, args, kwargs)
        if func is Tensor.contiguous and states:
            result = _laid_out(result, args, kwargs)
        if type(result) is not Tensor and any(map(_is_watched_state, states.values())):
            check_result(_name(func), result)
        if states:
            self._follow(func, args, kwargs, result, states)
        elif _sized(args, kwargs):
            # Derived from parameters, and from the size of the batch.
            for tensor in tensors_in(result):
                self._tag(tensor, mixed(_name(func), REASON))
        if _name(func) in _GROWING and self.looping:
            reason = "may show memory that private tensors have used before"
            for tensor in tensors_in(result):
                self._note_write(tensor, self.state(tensor), mixed(_name(func), reason))
        return self._derive(result) if weights else result

    def _meets(
        self, func: Function, args: Any, kwargs: Any, states: dict[int, State], weights: list[Tensor]
    ) -> bool:
        """Return whether parameters meet examples, or copies for each of them that a rule knows."""
        own = [id(weight) for weight in weights]
        kinds = {state.kind for key, state in states.items() if key not in own}
        if not kinds.isdisjoint(PRIVATE):
            return True
        return func in self._rules and (_sized(args, kwargs) or bool(kinds - {UNIFORM, VARIED}))

    def _place_copies(self, args: Any, kwargs: Any, states: dict[int, State]) -> None:
        """Give tensors that are uniform, and as long as the batch, a batch axis: parameters meet them."""
        if not any(state.kind == UNIFORM for state in states.values()):
            return
        for tensor in found_in(args, kwargs):
            state = states.get(id(tensor))
            if state is None or state.kind != UNIFORM or state.shape is None:
                continue
            long = [i for i, size in enumerate(state.shape) if size and size % VIRTUAL == 0]
            if len(long) == 1:
                states[id(tensor)] = State(COPIES, math.prod(state.shape[: long[0]]), state.shape)
                self._tag(tensor, states[id(tensor)])

    def _meet(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        weights: list[Tensor],
        states: dict[int, State],
    ) -> Any:
        """Run a function in which a parameter meets examples."""
        from dalenius.learn.anything import anything

        unknown = func not in self._rules and func not in self._opening
        if unknown and isinstance(func, FunctionType) and _UNSEEN & set(func.__globals__):
            # One that hands itself to this mode once more, as meshgrid does, is run as a whole then.
            self._opening.append(func)
            try:
                return self._open(func)(*args, **kwargs)
            finally:
                self._opening.remove(func)
        self._check_meeting(weights, func, states)
        rule = self._rules.get(func, anything)
        self._note(weights)
        if not any(map(derived, weights)):
            return rule(self, func, args, kwargs)
        return self._by(rule, func, args, kwargs)

    def _check_meeting(self, weights: list[Tensor], func: Function, states: dict[int, State]) -> None:
        lost = next((one for one in states.values() if one.kind in (MIXED, TOTAL)), None)
        if lost is not None and func not in self._bags:
            raise self.refused(weights, func, lost.origin)
        if not self.inside:
            raise NotSound(
                f"{self._named(weights)} met private examples outside of the private model{user_line()}.",
                remedy="Call private.model(x) instead of model(x): it keeps examples' gradients apart.",
            )

    def _note(self, weights: list[Tensor]) -> None:
        if self.layers is not None:
            self.layers.meet(weights)

    def _by(self, rule: Rule, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return rule(self, func, replaced(args, self._stand_in), replaced(kwargs, self._stand_in))

    def _stand_in(self, tensor: Tensor) -> Tensor:
        """Return a parameter of the same values for a derived tensor, whose graph stays whole in backward."""
        if not derived(tensor) or tensor in self._stands:
            return tensor
        known = next((new for new, old in self._stands.items() if old is tensor), None)
        if known is None:
            known = tensor.detach().requires_grad_()
            derive(known)
            self._stands[known] = tensor
        return known

    def _open(self, func: FunctionType) -> Function:
        """Return a function of torch that is written in torch, so that what it calls passes through here."""
        unseen = dict.fromkeys(_UNSEEN, lambda *_: False)
        copy = FunctionType(
            func.__code__, func.__globals__ | unseen, func.__name__, func.__defaults__, func.__closure__
        )
        copy.__kwdefaults__ = func.__kwdefaults__

        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return copy(*args, **kwargs)

        return run

    # What private tensors give.

    def _special(self, name: str) -> Function:
        """Return what takes the place of a function of private tensors, by its name in `Traits`."""
        special: Function = getattr(self, name)
        return special

    @staticmethod
    def _read(func: Function, args: Any, kwargs: Any, _: dict[int, State]) -> Any:
        """Read values of private tensors."""
        return reads.READS[func](*args, **kwargs)

    def _exchanged(self, func: Function, args: Any, kwargs: Any, _: dict[int, State]) -> Any:
        """Exchange private values with other processes: what comes back is theirs as well.

        A process that only receives could not know that the values are private, so that sending is refused.
        """
        if _name(func) in _ONE_SIDED:
            raise NotSound(
                f"{_name(func)} sends private values to other processes{user_line()}, where they would be "
                "taken for public ones.",
                remedy="Leave the exchange out: private.step() adds up the sums of all processes. Use "
                "all_reduce for a value that is printed.",
            )
        result = func(*args, **kwargs)
        for tensor in found_in(args, kwargs):
            after = mixed(_name(func), "exchanges private values with other processes")
            self._note_write(tensor, self.state(tensor), after)
        return result

    def _opened(self, func: Function, args: Any, kwargs: Any, _: dict[int, State]) -> Any:
        """Run what takes the place of a function that reads values, watched."""
        with self:
            return REPLACEMENTS[func](*args, **kwargs)

    def _criterion(self, func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> Any:
        """Average a cross entropy over each row's own targets first."""
        given = dict(zip(criteria.NAMES[func], args, strict=False)) | kwargs
        if not criteria.averages(func, given):
            return self._run(func, args, kwargs, states, [])
        single = self._outcome(func, (), given | {"reduction": "none"})
        known = single.results[0] if single.results else None
        if known is None or known.kind != AXIS:
            return self._run(func, args, kwargs, states, [])
        with kept_activations():
            result = criteria.mean_by_example(func, given, self.rows, known.outer)
        self._tag(result, State(TOTAL, shape=(), power=-1))
        return result

    def _scaled(self, func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> Any:
        """Divide a total by the size of the batch, which makes it a mean."""
        total, *rest = args
        state, by = states.get(id(total)), rest[0] if rest else None
        scales = state is not None and state.kind == TOTAL and abs(state.power) < MOST_POWER
        if state is None or not scales or not isinstance(by, BatchSize) or kwargs:
            return self._run(func, args, kwargs, states, self._weights(args, kwargs))
        result = _call(func, args, kwargs)
        self._tag(result, state._replace(power=state.power + (-1 if func in _DIVISIONS else 1)))
        return result

    @staticmethod
    def _counted(func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> Any:
        """Return the length of a tensor whose first dimension is not the batch."""
        shape = states[id(args[0])].shape
        if shape and shape[0] % VIRTUAL:
            return func(*args)
        return reads.READS[func](*args)

    def _picked(self, func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> Any:
        """Pick by index; of entries that a mask picks of each example it is noted where they come from."""
        source, mask = args
        result = self._run(func, args, kwargs, states, self._weights(args, kwargs))
        if isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == source.shape[: mask.dim()]:
            one, two = states.get(id(source)), states.get(id(mask))
            if one and two and one.kind == two.kind == AXIS and one.outer == two.outer == 1:
                note_ragged(result, source, mask)
        return result

    def _replaced(self, func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> Any:
        """Replace the values of a tensor by those of another: `x.data = y`."""
        func(*args, **kwargs)
        before, after = states.get(id(args[0])), states.get(id(args[1]))
        self._note_write(args[0], before, after)

    def _weights(self, args: Any, kwargs: Any) -> list[Tensor]:
        tensors = found_in(args, kwargs) if torch.is_grad_enabled() else []
        return [one for one in tensors if id(one) in self._ids or derived(one)]

    def _backward(self, func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> Any:
        """Make a backward pass of a total; refuse any other."""
        check_anomalies()
        losses = args[0] if isinstance(args[0], tuple | list) else [args[0]]
        for loss in losses:
            self.accept(loss)
        gradients = args[1] if len(args) > 1 else kwargs.get("gradient", kwargs.get("grad_tensors"))
        given = [] if gradients is None else [self.state(tensor) for tensor in tensors_in((gradients,))]
        private = any(state is not None and state.kind in PRIVATE for state in given)
        if private or kwargs.get("create_graph"):
            raise NotSound(
                f"backward() with gradients of private examples, or of gradients{user_line()}, is not "
                "followed.",
                remedy="Call loss.backward() without arguments, or use private.loss(function).",
            )
        self.lift()
        if gradients is None and func is Tensor.backward:
            begun = torch.full_like(args[0], self.gain)
            return func(args[0], begun, *args[2:], **{k: v for k, v in kwargs.items() if k != "gradient"})
        lifted = [loss * self.gain if id(loss) in states else loss for loss in losses]
        return func(lifted if isinstance(args[0], tuple | list) else lifted[0], *args[1:], **kwargs)

    def lift(self) -> None:
        """Settle by what gradients are multiplied: those of a mean by the number of rows.

        A mean divides by the number of rows. In half precision that is rounded, by an amount that depends on
        how many examples there are, and would change the gradients of all of them.
        """
        if -1 in self.powers:
            self.gain = float(max(self.rows, 1))

    def accept(self, loss: Tensor) -> None:
        """Note the loss of a backward pass, or refuse one whose gradient is not a sum over examples."""
        state = self.state(loss)
        if state is None or state.kind == UNIFORM:
            return
        if state.kind != TOTAL:
            raise _no_total(state)
        if state.power not in (0, -1):
            raise NotSound(
                f"The loss is multiplied or divided by the size of the batch more than once{user_line()}.",
                remedy="Return the mean over examples, or their sum divided by a public number.",
            )
        if self.adopted:
            raise NotSound(
                "private.loss, or a recorded pass, has computed the gradients of this batch already, and "
                f"backward(){user_line()} would add to them.",
                remedy="Return the whole loss from that function, or call loss.backward() alone.",
            )
        self.powers.add(state.power)
        if len(self.powers) > 1:
            raise NotSound(
                "One backward pass of this batch was of a sum over examples, another one of a mean.",
                remedy="Use means in all of them, or sums.",
            )

    def _written(self, func: Function, args: Any, kwargs: Any, states: dict[int, State]) -> Any:
        """Write items of a tensor."""
        target, index, value = args
        before = states.get(id(target))
        weights = self._weights((target, value), {})

        def picked(whole: State, at: Any) -> State | None:
            pairs = ((tensor, self.state(tensor)) for tensor in tensors_in((at,)))
            known = {id(tensor): state for tensor, state in pairs if state is not None}
            outcome = self._analysis.outcome(
                Tensor.__getitem__, (target, at), {}, known | {id(target): whole}
            )
            return outcome.results[0] if outcome.results else None

        if isinstance(value, PrivateNumber):
            reason = f"writes a value that {value.source} read out of private examples"
            after: State | None = mixed("__setitem__", reason)
            func(target, index, plain(value))
        elif any(not self.is_public(tensor) for tensor in _bounds(index)):
            after = mixed("__setitem__", "writes between bounds that depend on private examples")
            _call(func, args, kwargs)
        else:
            after = after_write(target, index, value, self.state, picked)
            if weights and states:
                self._meet(func, args, kwargs, weights, states)
            else:
                _call(func, args, kwargs)
        self._note_write(target, before, after)

    def _note_write(self, target: Tensor, before: State | None, after: State | None) -> None:
        """Tag what was written to; other tensors on the same memory are mixed from now on."""
        private = after is not None and after.kind in PRIVATE
        self._noted.add(id(target))
        if private:
            operation = "An operation" if after is None or after.origin is None else after.origin.operation
            check_memory(target, before, operation)
        # A place of a public tensor that is as long as the batch: the tensor now differs along the batch.
        part = not is_long(before) and self._writes.has_length(target)
        changed = before != after and (private or is_long(before))
        if changed or part or (after is not None and after.kind == MIXED):
            # Also where a view was mixed before: the tensor that it is a view of may not have been.
            self._writes.note(target)
            if after is None and before is not None:
                after = State(VARIED, shape=before.shape)
        self._tag(target, after)

    # Outcomes.

    def outers(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], count: int) -> list[int]:
        """Return where each result of a call holds examples, 0 where that is not known."""
        states = self._outcome(func, args, kwargs).results
        if len(states) != count:
            return [0] * count
        return [0 if state is None or state.kind not in (AXIS, COPIES) else state.outer for state in states]

    def is_public(self, tensor: Tensor) -> bool:
        """Return whether the values of a tensor depend on public facts alone."""
        state = self.state(tensor)
        return state is None or state.kind not in PRIVATE

    def is_watched(self, tensor: Tensor) -> bool:
        """Return whether a tensor depends on private examples, or on how many they are."""
        with torch._C.DisableTorchFunction():
            return _is_watched_state(self.state(tensor))

    def leads(self, tensor: Tensor) -> bool:
        """Return whether the first dimension of a tensor is the batch, and each row follows from its own."""
        state = self.state(tensor)
        if state is not None and state.kind == UNIFORM and state.shape:
            return state.shape[0] == VIRTUAL and tensor.shape[0] == self.rows
        placed = state is not None and state.kind in (AXIS, COPIES) and state.outer == 1 and not state.power
        return placed and tensor.shape[0] == self.rows

    def admits(self, tensor: Tensor) -> bool:
        """Return whether a recorded pass may take a tensor as one of its batch, or as a constant."""
        state = self.state(tensor)
        if not self.looping or (state is not None and state.kind == UNIFORM):
            return True
        return self.leads(tensor) if tensor.dim() else self.is_public(tensor)

    def note_total(self, tensor: Tensor) -> None:
        """Say that a tensor is a mean over the batch."""
        self._tag(tensor, State(TOTAL, shape=tuple(tensor.shape), power=-1))

    def follow_copy(self, tensor: Tensor, copy: Tensor) -> Tensor:
        """Give a copy of a tensor, with the same entries, its state."""
        state = self.state(tensor)
        self._tag(copy, state)
        return copy

    def _outcome(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        known: Mapping[int, State] | None = None,
    ) -> Outcome:
        if func in self._bags:
            from dalenius.learn.embedding import bag_form

            func, args, kwargs = bag_form(args, kwargs)
        if known is None:
            pairs = ((tensor, self.state(tensor)) for tensor in found_in(args, kwargs))
            known = {id(tensor): state for tensor, state in pairs if state is not None}
        return self._analysis.outcome(func, args, kwargs, known)

    def _follow(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        known: dict[int, State],
    ) -> None:
        """Give the results of a call their states, and what it wrote to.

        Args:
            func: The function that was called.
            args: Its positional arguments.
            kwargs: Its named arguments.
            result: What it returned.
            known: The states of its arguments before the call, by identity.
        """
        if type(result) is Tensor and self._follow_plain(func, args, kwargs, result, known):
            return
        self._follow_fully(func, args, kwargs, result, known)

    def _follow_fully(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        known: dict[int, State],
    ) -> None:
        """Give all results of a call their states, and note what it wrote to, drew or failed at."""
        results = [result] if isinstance(result, Tensor) else list(tensors_in(result))
        absorbed = next((state for state in known.values() if state.kind == MIXED), None)
        absorbed = None if func in self._bags else absorbed
        if absorbed is not None and absorbed.origin in (_STALE, _ALIAS):
            reason = f"takes a tensor that {absorbed.origin.reason}"
            absorbed = absorbed._replace(origin=origin(_name(func), reason))
        if absorbed is not None:
            check_count(_name(func), args, kwargs, known.get(id(args[0]), absorbed) if args else absorbed)
            outcome = Outcome((), (), "", reads=self._outcome(func, args, kwargs, known).reads)
            # The result has sizes of its own, which may depend on private values as well.
            absorbed = absorbed._replace(shape=None)
        elif func in self._bags:
            outcome = self._outcome(func, args, kwargs)
        else:
            outcome = self._outcome(func, args, kwargs, known)
        states = outcome.results
        self._unsure = self._unsure or absorbed is not None or bool(outcome.failed)
        check_rank(_name(func), args, kwargs, known, outcome.reads)
        if outcome.counts:
            raise NotSound(
                f"{_name(func)} cuts the batch into a number of pieces that depends on its size"
                f"{user_line()}, which is private.",
                remedy="Work on the batch as a whole: every operation of torch does so example by example.",
            )
        if len(states) != len(results):
            reason = outcome.reason or _UNKNOWN.get(_name(func), _UNKNOWN[""])
            failed = origin(outcome.failed or _name(func), reason)
            lost = absorbed or State(MIXED, origin=failed)
            if _name(func) in CUTS and any(state.kind in PRIVATE for state in known.values()):
                check_count(_name(func), args, kwargs, lost)
            private = absorbed or any(state.kind in PRIVATE or is_long(state) for state in known.values())
            states = tuple(lost if private or _sized(args, kwargs) else None for _ in results)
        elif _sized(args, kwargs) and not all(map(_is_watched_state, states)):
            sized = mixed(_name(func), "takes the size of the batch, which is private")
            states = tuple(state if _is_watched_state(state) else sized for state in states)
        generator = kwargs.get("generator")
        seeded = generator is not None or (outcome.drawn and self._is_reseeded())
        if generator is not None and any(map(is_long, states)):
            # How far it has gone depends on how many examples there are.
            self._generators.append(generator)
        watched = any(map(_is_watched_state, (*states, *known.values()))) or _sized(args, kwargs)
        if watched and (outcome.drawn or generator is not None):
            self._draws += 1
            if seeded and self.looping:
                raise NotSound(
                    f"{_name(func)} draws numbers for the batch{user_line()} from a generator whose seed may "
                    "be known: how many it draws is private, and later numbers would tell.",
                    remedy="Leave out generator=, and seeds in the loop: the key of the run seeds all steps.",
                )
        if seeded and (any(map(is_long, states)) or self._is_advanced(generator)):
            reason = (
                "draws from a generator whose seed may be known: which number is whose depends on the batch"
            )
            states = tuple(mixed(_name(func), reason) for _ in results)
        written = bool(outcome.written) or in_place(func) or kwargs.get("out") is not None
        given = found_in(args, kwargs) if written else []
        befores = [known.get(id(tensor)) for tensor in given]
        if absorbed is None and any(state is not None and state.kind == MIXED for state in states):
            states = tuple(_blamed(state, func) for state in states)
        for tensor, state in zip(results, states, strict=True):
            target = next((i for i, one in enumerate(given) if one is tensor), None) if written else None
            if target is not None:
                self._note_write(tensor, befores[target], state)
            else:
                self._tag(tensor, state)
        if func in _LOOKUPS and any(state.kind in PRIVATE for state in known.values()):
            given_names = dict(zip(("input", "weight", "", "max_norm"), args, strict=False)) | kwargs
            if given_names.get("max_norm") is not None:
                reason = "scales the rows that examples look up"
                self._note_write(given_names["weight"], None, mixed(_name(func), reason))
        if func in _NORMALIZATIONS and any(state.kind in PRIVATE for state in known.values()):
            statistics = mixed(_name(func), "writes statistics of all examples")
            for tensor in _statistics(func, args, kwargs):
                self._note_write(tensor, None, statistics)
        if outcome.written:
            for tensor, before, after in zip(given, befores, outcome.written, strict=True):
                if all(tensor is not one for one in results) and before != after:
                    self._note_write(tensor, before, _blamed(after, func))
        for tensor in _targets(func, args, kwargs) if written else ():
            # A place of a long tensor, which is written to and keeps its state.
            if id(tensor) not in self._noted and self._writes.has_length(tensor):
                self._note_write(tensor, known.get(id(tensor)), self.state(tensor))

    def _follow_plain(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Tensor,
        known: dict[int, State],
    ) -> bool:
        """Give the only result of a call its state, where nothing else is to be seen to; return whether."""
        if traits_of(func).odd or "out" in kwargs or "generator" in kwargs:
            return False
        for state in known.values():
            if state.kind == MIXED:
                return False
        outcome = self._analysis.outcome(func, args, kwargs, known)
        if not outcome.plain:
            return False
        after = outcome.results[0]
        if not _is_watched_state(after) and _sized(args, kwargs):
            return False
        self._tag(result, after)
        return True

    def _derive(self, result: Any) -> Any:
        for tensor in tensors_in(result):
            if tensor.requires_grad and id(tensor) not in self._ids:
                derive(tensor)
        return result

    @property
    def seen(self) -> frozenset[int]:
        """How many examples the forward passes since the last parts were taken had."""
        return frozenset(self._sizes)

    @property
    def derives(self) -> bool:
        """Whether parts of what is derived from parameters wait to be carried on to these."""
        return any(one not in self.names for one in self._parts)

    @property
    def has_written(self) -> bool:
        """Whether private values were written into public memory."""
        return bool(self._writes)

    def check_hooks(self) -> None:
        """Refuse trained parameters with hooks on their gradients, which would run on single examples."""
        for parameter, name in self.names.items():
            if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
                raise _hooked(name)

    def note_failure(self, name: str) -> None:
        """Note what failed on private examples first, as the beginning of a sentence."""
        self.failed = self.failed or name

    def check_failures(self) -> None:
        """Refuse to go on after an operation failed: whether it fails depends on the examples it is given."""
        if self.failed:
            raise NotSound(
                f"{self.failed} failed on private examples, and the loop went on. Whether it fails depends "
                "on them, so that one person could change what the loop does for all others.",
                remedy="Let errors end the run, and begin a new one; check rows before they are data.",
            )

    # Parts.

    def put(self, weight: Tensor, part: Part) -> None:
        """Keep a part of a parameter, or of what is derived from parameters."""
        summed = None if self.layers is None else self.layers.put(weight, part)
        if summed is None:
            self._parts.setdefault(weight, []).append(part)
            return
        for one, new in summed.items():
            self._parts.setdefault(one, []).append(new)

    def parts(self) -> dict[Tensor, Part]:
        """Return all that is on the tape, by parameter; the tape is blank afterwards."""
        parts, self._parts = self._parts if self.examples else {}, {}
        sizes, self._sizes = self._sizes, set()
        self.powers, self.adopted = set(), False
        if len(sizes) > 1:
            raise NotSound(
                "The model was called on batches of different sizes before one step.",
                remedy="Call it once for every step, and under torch.no_grad() for anything else.",
            )
        for weight, more in () if self.layers is None else self.layers.rest().items():
            parts.setdefault(weight, []).extend(more)
        carried = set()
        while derived_ones := [one for one in parts if one not in self.names]:
            for weight in derived_ones:
                for source, part in self._carried(weight, united(parts.pop(weight))):
                    parts.setdefault(source, []).append(part)
                    carried.add(source)
        self._stands = {}
        if self.layers is not None:
            self.layers.learn(carried & self.names.keys())
        return {parameter: united(shares) for parameter, shares in parts.items()}

    def _carried(self, weight: Tensor, part: Part) -> list[tuple[Tensor, Part]]:
        """Return the shares of what is derived, as shares of what it is derived from."""
        sources = [one for one in (*self.names, *self._stands) if one is not weight]
        shares = part.whole().view(part.examples, *weight.shape).to(weight.dtype)
        root = self._stands.get(weight, weight)
        gradients = torch.autograd.grad(
            root, sources, shares, retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        pairs = zip(sources, gradients, strict=True)
        return [(source, Whole(share)) for source, share in pairs if share is not None]

    def _named(self, weights: list[Tensor]) -> str:
        return " and ".join(sorted({self.names.get(one, "a function of parameters") for one in weights}))

    def refused(self, weights: list[Tensor], func: Function, known: Origin | None = None) -> NotSound:
        """Return the refusal of a parameter that meets data which are not known by example."""
        why = f": {known}" if known is not None else ""
        return NotSound(
            f"{_name(func)} uses {self._named(weights)} on data that are not known by example{why}"
            f"{'' if known is not None else user_line()}, so that no example's gradient can be clipped by "
            "itself.",
            remedy="Keep examples apart up to there, or freeze these parameters.",
        )


def _shown(digits: str) -> str:
    """Return a number of an error's text, with "n" in the place of what `VIRTUAL` examples have made it."""
    number = int(digits)
    if number < VIRTUAL // 2:
        return digits
    return f"{number // VIRTUAL}n" if number > VIRTUAL and number % VIRTUAL == 0 else "n"


def _hidden(digits: str) -> str:
    """Return what stands for a number where any size may be private."""
    return "n"


def _hooked(name: str) -> NotSound:
    return NotSound(
        f"A hook on the gradient of {name}{user_line()} would see gradients of single examples, or none.",
        remedy="Remove the hook: to change what the optimizer gets, use its own step hooks.",
    )


def _kept_inside(tensors: list[Tensor]) -> NotSound | None:
    """Return the refusal of tensors that a loss of one example has put aside, where such are among some."""
    if _transformed() is not None or not any(map(functorch.is_functorch_wrapped_tensor, tensors)):
        return None
    return NotSound(
        f"A tensor that the function of private.loss has put aside is used outside of it{user_line()}, where "
        "it stands for all examples at once.",
        remedy="Call private.model on the batch under torch.no_grad() for a progress line; the mean loss is "
        "what the call of private.loss returns.",
    )


def _is_in(states: dict[int, State], tensor: Tensor) -> bool:
    """Return whether a tensor is private, by the states of the arguments of a call."""
    state = states.get(id(tensor))
    return state is not None and state.kind in PRIVATE


def _untransformed() -> NotSound:
    return NotSound(
        f"vmap, or another transform of torch.func, of private examples{user_line()} is not followed.",
        remedy="Use private.loss(function), which runs a function of one example for all of them.",
    )


def _blamed(state: State | None, func: Function) -> State | None:
    """Return a mixed state that names the function which was called, and its line."""
    if state is None or state.kind != MIXED or state.origin is None:
        return state
    return state._replace(origin=called(state.origin, _name(func)))


def _no_total(state: State) -> NotSound:
    if state.kind == AXIS:
        return NotSound(
            f"backward() was called on losses of single examples{user_line()}.",
            remedy="Take their mean, or their sum divided by a public number.",
        )
    return NotSound(
        f"The loss mixes examples: {state.origin or 'a tensor that is not known by example'}. So one person "
        "could change the gradients of others, which clipping does not bound.",
        remedy="Compute one loss for each example from that example alone, and take the mean over examples: "
        "average over an example's own tokens first, replace batch statistics by dp.learn.replaced(model), "
        "leave out mining, mixing and weights that are counted over the batch.",
    )


def _bounds(index: Any) -> list[Tensor]:
    """Return the tensors that bound slices of an index."""
    parts = index if isinstance(index, tuple) else (index,)
    return [tensor for part in parts if isinstance(part, slice) for tensor in tensors_in(part)]


def _check_public(func: Function, *, trained: bool) -> None:
    """Refuse functions by which public tensors would get private values unseen, later on.

    Args:
        func: The function that is called.
        trained: Whether it takes trained parameters, or what is derived from them.
    """
    if func in _HOOKS and not trained:
        raise _hooked("a tensor")
    if func == reads.GRAPH and not _is_asked_by(_GRAPH_READERS):
        raise _hooked("a tensor (grad_fn)")
    if func in _STORAGES and not trained and not _is_asked_by(_STORAGE_READERS):
        raise NotSound(
            f"The memory of a tensor{user_line()} may get private values later, where nothing is watched.",
            remedy="Use the tensor itself, or a copy: tensor.clone().",
        )


_HANDING_ON = frozenset((("torch.overrides", "handle_torch_function"), ("torch._tensor", "storage")))
"""Functions of torch that the user's code calls, and that call a mode."""
_STORAGE_READERS = "dalenius.", "torch."
_GRAPH_READERS = *_STORAGE_READERS, "transformers.", "peft.", "accelerate."
"""Libraries that look at memory and graphs, and keep neither."""


def _is_asked_by(libraries: tuple[str, ...]) -> bool:
    """Return whether a function of torch was called by one of these libraries, and not by the user's code."""
    frame: Any = sys._getframe(3)
    while frame is not None and (frame.f_globals.get("__name__"), frame.f_code.co_name) in _HANDING_ON:
        frame = frame.f_back
    if frame is None or frame.f_code.co_name in ("get_gradient_edge", "_get_grad_fn_or_grad_acc"):
        return False
    return f"{frame.f_globals.get('__name__', '')}.".startswith(libraries)


def _is_watched_state(state: State | None) -> bool:
    """Return whether a state is that of a private tensor, or of one as long as a batch."""
    return state is not None and (state.kind in PRIVATE or is_long(state))


def _is_private(tensor: Tensor) -> bool:
    """Return whether a tensor depends on private examples of the pass that is watched."""
    with torch._C.DisableTorchFunction():
        state = _OPEN[-1].state(tensor) if _OPEN else None
    return state is not None and state.kind in PRIVATE


def _is_looping() -> bool:
    """Return whether a loop is watched at present."""
    return bool(_OPEN) and _OPEN[-1].looping and not _OPEN[-1].paused


def _is_known_function(function: type) -> bool:
    """Return whether a custom function is one of torch or of this library, or is vouched for."""
    if not _is_looping():
        return True
    return is_own(function) or function in REGISTERED or f"{function.__module__}.{function.__name__}" in KNOWN


def version_of(tensor: Tensor) -> int:
    """Return how often a tensor was written to, −1 where that is not counted."""
    try:
        return tensor._version
    except RuntimeError:
        return -1


def is_mutable(func: Any, writes: bool) -> bool:
    """Return whether an operator writes to its arguments, other than the first and `out`.

    Some that update running statistics do not say so, and are known by the names of their arguments.

    Args:
        func: A function of torch, or an operator of torch.ops.
        writes: Whether its name says that it writes to its first argument.
    """
    if isinstance(func, torch._ops.OpOverload):
        return bool(func._schema.is_mutable)
    bare = isinstance(func, torch._ops.OpOverloadPacket)
    packet = func if bare else getattr(torch.ops.aten, getattr(func, "__name__", ""), None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return False
    schemas = [getattr(packet, name)._schema for name in packet.overloads()]
    # Overloads for lists of Python, such as those of `sort`, are of TorchScript.
    several = bare or "foreach" in str(packet)
    written = [
        argument
        for schema in schemas
        for argument in schema.arguments
        if several or "List" not in str(argument.type)
        if argument.name.startswith("running_")
        or (argument.alias_info is not None and argument.alias_info.is_write and not argument.is_out)
    ]
    return bool(written) and (bare or not writes)


def _is_watched(tensor: Tensor) -> bool:
    """Return whether a tensor depends on private examples, or on how many they are."""
    with torch._C.DisableTorchFunction():
        state = _OPEN[-1].state(tensor) if _OPEN else None
    return state is not None and (state.kind in PRIVATE or is_long(state))


def _length(tensor: Tensor) -> Any:
    """Return the length of a tensor, a private size where it is a batch's."""
    tape = _OPEN[-1] if _OPEN else None
    with torch._C.DisableTorchFunction():
        state = None if tape is None or tape.paused else tape.state(tensor)
    if state is not None and tensor.dim():
        size = reads.measured(reads.SIZE, (tensor, 0), {}, state)
        if isinstance(size, BatchSize):
            return BatchSize(plain(size), size.ratio, "len()", number=size.number)
        return size
    with torch._C.DisableTorchFunction():
        return tensor.shape[0] if tensor.dim() else tensor.__len__()


def _withdraw(tape: Tape) -> None:
    """Take a mode off the stack, wherever it is."""
    above = []
    while torch._C._len_torch_function_stack():
        mode = torch.overrides._pop_mode()
        if mode is tape:
            break
        above.append(mode)
    for mode in reversed(above):
        torch.overrides._push_mode(mode)


def _name(func: Function) -> str:
    name = str(getattr(func, "__name__", "a function"))
    return str(getattr(func, "__self__", func).__name__) if name == "__get__" else name


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    for one in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(one, tuple | list):
            yield from _flat(tuple(one), {})
        elif isinstance(one, slice):
            yield from (one.start, one.stop, one.step)
        else:
            yield one


def _of_types(args: Any, kwargs: dict[str, Any], types: frozenset[type]) -> bool:
    """Return whether arguments, or entries of lists among them, are of one of these types."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind in types:
            return True
        if kind in _LISTS:
            for entry in value:
                if type(entry) in types or (type(entry) is slice and _cut(entry, types)):
                    return True
        elif kind is slice and _cut(value, types):
            return True
    return False


def _cut(part: slice, types: frozenset[type]) -> bool:
    """Return whether a bound of a slice is of one of these types."""
    return type(part.start) in types or type(part.stop) in types or type(part.step) in types


def _call(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of torch with plain sizes."""
    if _of_types(args, kwargs, _INTEGERS):
        args, kwargs = whole_sizes(args), whole_sizes(kwargs)
    if func in _EMPTY and _OPEN:
        # Memory that was free may hold what private tensors left there.
        with torch.no_grad():
            return func(*args, **kwargs).zero_()
    return func(*args, **kwargs)


def _gives_sizes(args: tuple[Any, ...]) -> bool:
    """Return whether the arguments of `Tensor.new` are sizes, and not values."""
    if len(args) == 1 and isinstance(args[0], torch.Size):
        return True
    return bool(args) and all(type(size) is int or isinstance(size, PrivateInteger) for size in args)


def _laid_out(result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Return the result of `x.contiguous()`, a copy wherever it would be one in a longer batch.

    Dimensions of size 1 or 0 make any layout contiguous, so that whether x itself comes back may tell a size.

    Args:
        result: What torch returned.
        args: The positional arguments of the call.
        kwargs: The named arguments of the call.
    """
    if not args or result is not args[0]:
        return result
    layout = (*args[1:], *kwargs.values(), torch.contiguous_format)[0]
    step, steps = 1, []
    for size in reversed(result.shape):
        steps.append(step)
        step *= max(size, 1)
    if layout is torch.contiguous_format and result.stride() == tuple(reversed(steps)):
        return result
    return result.clone(memory_format=layout)


_OPERATORS = "setitem iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift"
_IN_PLACE = frozenset(f"__{name}__" for name in _OPERATORS.split())
_LOOKUPS = frozenset((functional.embedding, functional.embedding_bag))
_RUNNING, _AFFINE = ("running_mean", "running_var"), ("weight", "bias")
_NATIVE = ("input", *_AFFINE, *_RUNNING, "training")
_NORMALIZATIONS: dict[Function, tuple[str, ...]] = {
    torch.native_batch_norm: _NATIVE,
    torch.cudnn_batch_norm: _NATIVE,
    torch.miopen_batch_norm: _NATIVE,
    functional.batch_norm: ("input", *_RUNNING, *_AFFINE, "training"),
    functional.instance_norm: ("input", *_RUNNING, *_AFFINE, "use_input_stats"),
    torch.batch_norm: ("input", *_AFFINE, *_RUNNING, "training"),
    torch.instance_norm: ("input", *_AFFINE, *_RUNNING, "use_input_stats"),
}
"""Functions that write running statistics, with the names of their first arguments."""
_LISTS = frozenset((tuple, list, torch.Size))
_SIZES, _PRIVATE_NUMBERS = frozenset((BatchSize,)), frozenset((PrivateNumber, PrivateInteger))
_INTEGERS = frozenset((BatchSize, PrivateInteger))


def _sized(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether sizes among the arguments are those of a batch."""
    return _of_types(args, kwargs, _SIZES)


_OWN_NODES: set[type] = set()
"""Types of nodes of graphs that rules of this library make."""


def _is_followed_back(tensor: Tensor) -> bool:
    """Return whether a tensor comes from a function of torch, or from a rule of this library."""
    try:
        node: Any = tensor.grad_fn
    except RuntimeError:
        return False
    kind = type(node)
    if kind in _OWN_NODES or not issubclass(kind, BackwardCFunction):
        return True
    if getattr(getattr(node, "_forward_cls", None), "__module__", "").startswith("dalenius."):
        _OWN_NODES.add(kind)
        return True
    return False


def _described_plainly(value: Any) -> tuple[Any, ...] | None:
    """Return a list of plain numbers, or a slice, as a tuple; None if anything else is in it."""
    if value is Ellipsis:
        return ()
    if type(value) is slice:
        entries = value.start, value.stop, value.step
        return entries if all(entry is None or type(entry) is int for entry in entries) else None
    parts: list[Any] = []
    for entry in value:
        kind = type(entry)
        if kind in ATOMS:
            parts += kind, entry
        elif kind is slice or entry is Ellipsis:
            inner = _described_plainly(entry)
            if inner is None:
                return None
            parts += kind, inner
        else:
            return None
    return tuple(parts)


def _numbered(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether private numbers are among the arguments."""
    return _of_types(args, kwargs, _PRIVATE_NUMBERS)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return plain(value)


def _targets(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """Return the tensors that a call writes to by its name or by `out`."""
    written = args[:1] if in_place(func) else ()
    return [*tensors_in((*written, kwargs.get("out")))]


def _statistics(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """Return the running statistics that a normalization writes to, if it does."""
    given = dict(zip(_NORMALIZATIONS[func], args, strict=False)) | kwargs
    if not given.get("training", given.get("use_input_stats", func is functional.instance_norm)):
        return []
    return [*tensors_in((given.get("running_mean"), given.get("running_var")))]


class Traits(NamedTuple):
    """What a tape has to know of a function, whatever it is called with."""

    mutates: bool
    """Whether the function writes to arguments in a way that its name does not tell."""

    writes: bool
    """Whether the function changes its first argument."""
    odd: bool
    """Whether its results are not all that is to be followed."""
    special: str
    """The method of `Tape` that takes its place where tensors are private, if any does."""
    quick: bool
    """Whether nothing but its result is to be seen to where tensors have a batch axis (`_run_quickly`)."""
    takes_indices: bool
    """Whether it fails on values that are out of range, such as tokens and labels (`index_range`)."""
    foreign: bool
    """Whether it is code of the user's, which torch was handed as one of its own functions (`arguments`)."""
    replaces: bool
    """Whether it gives a tensor other memory, beside what is known of it."""


_TRAITS: dict[Function, Traits] = {}
_MOST_TRAITS = 10_000


def traits_of(func: Function) -> Traits:
    """Return the traits of a function, which are looked up once."""
    known = _TRAITS.get(func)
    if known is None:
        from dalenius.learn.rules import BAGS

        if len(_TRAITS) > _MOST_TRAITS:
            _TRAITS.clear()
        writes = in_place(func)
        odd = writes or func in _LOOKUPS or func in _NORMALIZATIONS or func in BAGS
        special = _special_name(func)
        mutates = func not in _NORMALIZATIONS and is_mutable(func, writes)
        indices = func in GUARDED
        unknown = is_foreign(func)
        plain = not (odd or mutates or unknown) and (not indices or func is PICK or func in _DIVISIONS)
        quick = plain and _is_quick(func, special)
        known = _TRAITS[func] = Traits(
            mutates, writes, odd, special, quick, indices, unknown, _name(func).split(".")[0] == "set_"
        )
    return known


def _is_quick(func: Function, special: str) -> bool:
    """Return whether a function computes a result of its arguments, and nothing else is to be seen to.

    `_scaled` looks at totals and sizes of batches, and `_picked` at masks, which take the general way.
    """
    from dalenius.learn.rules import FOLLOWED

    if special not in ("", "_scaled", "_picked"):
        return False
    others = _HOOKS, _EMPTY, _MEASURES, FOLLOWED, reads.VALUES
    return func not in (_SET_DATA, _GET_DATA) and not any(func in some for some in others)


def _special_name(func: Function) -> str:
    if func in criteria.NAMES:
        return "_criterion"
    if func in REPLACEMENTS:
        return "_opened"
    if func is Tensor.backward or func is torch.autograd.backward:
        return "_backward"
    if func is Tensor.__len__:
        return "_counted"
    if getattr(func, "__module__", "") == _EXCHANGES:
        return "_exchanged"
    if func in reads.READS:
        return "_read"
    if func is Tensor.__getitem__:
        return "_picked"
    if func in _DIVISIONS or func in _PRODUCTS:
        return "_scaled"
    return "_written" if getattr(func, "__name__", "") == "__setitem__" else ""


def in_place(func: Function) -> bool:
    """Return whether a function changes its first argument."""
    name = getattr(func, "__name__", "")
    return name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))
