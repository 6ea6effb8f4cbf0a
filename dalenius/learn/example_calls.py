"""`ExampleCalls`: watches the torch functions that the loss of one example calls.

The loss runs inside `torch.vmap`, so every torch function sees one example and treats each of them alone.
Where a trained parameter is among the arguments of a function, there are two cases. A lifted function
(`lifted_functions`) runs on all examples and leaves each one's share of the gradient on the tape. Any other
function gets a copy of the parameter for each example, a view that takes no memory; the gradient of a copy is
the share of its example.

A tensor that holds an example, or follows from one, carries the token of its pass. Tensors with the token of
another pass, and tensors that share memory with the batch, are refused: by them one example would reach
another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch._functorch.autograd_function import custom_function_call
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd.function import BackwardCFunction
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dalenius.errors import NotSound
from dalenius.learn.custom_functions import REGISTERED
from dalenius.learn.dataflow.equivalents import REPLACEMENTS
from dalenius.learn.dataflow.states import note_written
from dalenius.learn.index_range import GUARDED, with_valid_indices
from dalenius.learn.lifted_functions import Lifted
from dalenius.learn.marks import TOKEN, found_in, other_sequence, replaced, tensors_in
from dalenius.learn.overrides import check_class, check_modes, is_own
from dalenius.learn.tape import Function, Tape, in_place, is_mutable, version_of

_TOKEN, _INSIDE = TOKEN, "_dalenius_inside"
_UNSEEN = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
_WATCHED_ATTRIBUTES = frozenset(("T", "mT", "H", "mH", "data", "real", "imag", "grad", "_base", "grad_fn"))
_HOOKS = "register_hook", "register_post_accumulate_grad_hook", "grad_fn", "backward"
_UNWATCHED = frozenset((*_HOOKS, "__dlpack__", "storage", "untyped_storage", "__reduce_ex__"))
"""Functions and attributes of a tensor by which code gets at it that is not watched."""
_TO_PYTHON = (
    "item",
    "tolist",
    "numpy",
    "is_nonzero",
    "equal",
    "allclose",
    "__array__",
    "__bool__",
    "__int__",
)
_BY_VALUE = (
    "nonzero",
    "nonzero_static",
    "argwhere",
    "masked_select",
    "unique",
    "unique_consecutive",
    "bincount",
)
_READS = frozenset((*_TO_PYTHON, "__float__", "__index__", "__complex__", *_BY_VALUE))
"""Functions whose result is a Python value, or has a size, that depends on the values of a tensor."""
_HERE = tuple(f"{item}{os.sep}" for item in (Path(__file__).parents[1], Path(torch.__file__).parent))
"""Folders whose code is not the user's."""


_SPACES = frozenset(("aten", "prims", "prim", "torchvision", "c10d", "_c10d_functional", "quantized"))
"""Where operators come from that are not written in Python."""


class NoRule(Exception):
    """An operation that torch.vmap cannot run, or that brings a vmap rule of its own."""


class NoExchange(TorchDispatchMode):
    """Refuses exchanges between processes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run any other operation as it is."""
        if "c10d" in func.namespace:
            raise NotSound(
                f"The loss of one example exchanges tensors between processes, {where()}.",
                remedy="Compute the loss from the example alone; private.step() adds up what processes have.",
            )
        return func(*args, **(kwargs or {}))


class Unread(TorchDispatchMode):
    """Refuses operators whose result in Python, or whose size, follows from values of tensors."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run any other operator as it is."""
        if not _BY_VALUES.isdisjoint(func.tags):
            raise reading(where())
        return func(*args, **(kwargs or {}))


_BY_VALUES = frozenset((torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape))
_PACKED = "_pack_padded_sequence", "_pad_packed_sequence", "lstm", "gru", "rnn_tanh", "rnn_relu"
_READABLE = frozenset(("__repr__", "__format__", "__getitem__", "__setitem__", *_PACKED))
"""Functions that may read values of an example, of which its results show nothing but in their entries.

What a text is used for is an assumption on the receipt. `_reads` looks at indices that would tell a size.
"""


class ExampleCalls(TorchFunctionMode):
    """A function mode around one call of a loss of one example.

    Args:
        names: the trained parameters and their names.
        batch: storages of the tensors of the batch, by address.
        spans: the memory that these have, however it is reached.
        private: whether a value that the loss did not get as an argument depends on private data.
        tape: the tape that lifted functions put their parts on; None where examples run one after the other.
        rows: the number of examples that are run at once.
        earlier: memory that the loss made for examples before this one, by address.
    """

    def __init__(
        self,
        names: Mapping[Tensor, str],
        *,
        batch: Collection[int],
        spans: Sequence[range] = (),
        private: Callable[[Any], bool],
        tape: Tape | None = None,
        rows: int = 1,
        earlier: Mapping[int, StorageWeakRef] | None = None,
    ) -> None:
        from dalenius.learn.rules import RULES

        super().__init__()
        self._rules = RULES
        self._parameters = {id(item): item for item in names}
        self._batch, self._private, self._tape, self._rows = batch, private, tape, rows
        self._spans = spans
        self._token, self._level = object(), 0
        self._lifted: Lifted | None = None
        self._earlier = earlier or {}
        self._copies: dict[int, tuple[Tensor, Tensor]] = {}
        self._own: dict[int, Any] = {}
        self.error: Exception | None = None
        """The first error of a function of torch: one that is caught would let values steer the loss."""

    def begin(self, example: list[Tensor]) -> None:
        """Note the tensors of the example, which the loss is about to be called with."""
        if self._tape is not None:
            self._level = functorch.maybe_current_level() or 0
            self._lifted = Lifted(self._tape, self._rows, self._level, self._parameters.keys())
        for tensor in self._owned(example):
            setattr(tensor, _TOKEN, self._token)

    def gradients(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each parameter of which copies were used, with the gradients of its copies."""
        for key, (copy, _) in self._copies.items():
            if copy.grad is not None:
                yield self._parameters[key], copy.grad

    def __torch_function__(
        self, func: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run a function of torch on one example, and note which results follow from the example."""
        try:
            return self._run(func, types, args, kwargs or {})
        except Exception as error:
            self.error = self.error or error
            raise

    def _run(self, func: Function, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors = found_in(args, kwargs)
        check_modes()
        for kind in {*types, *map(type, tensors)}:
            check_class(kind)
        _check_operator(func, args, kwargs)
        numbers = list(_numbers(args, kwargs))
        if any(map(self._private, numbers)):
            raise _outside(func)
        if any(isinstance(number, torch.Generator) for number in numbers):
            raise NotSound(
                f"The loss of one example draws from a generator of its own, {where()}: which numbers an "
                "example gets would depend on how many came before it.",
                remedy="Leave out generator=: the key of the run seeds every step.",
            )
        if not tensors:
            created = func(*args, **kwargs)
            return self._owned(self._noted(created, False))
        attribute = _attribute(func)
        if attribute is not None and attribute not in _WATCHED_ATTRIBUTES:
            for tensor in tensors:
                self._check_asked(func, tensor)
            with torch._C.DisableTorchFunction():
                return func(*args, **kwargs)
        if func is Tensor.__bool__:
            answer = _answer_to_checks()
            if answer is not None:
                return answer
        held = self._check(func, tensors, args, kwargs)
        self._check_saving()
        trained = any(id(item) in self._parameters for item in tensors)
        tied = trained and torch.is_grad_enabled()
        if held and func in REPLACEMENTS:
            with self:
                return REPLACEMENTS[func](*args, **kwargs)
        if tied and func not in self._rules and _is_opaque(func):
            return self._open(func)(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            result: Any = NotImplemented
            if held and func in GUARDED:
                args, kwargs = with_valid_indices(func, args, kwargs, self._is_examples)
            if self._lifted is not None and (held or tied):
                result = self._lifted.run(func, args, kwargs, trained=trained)
            if result is NotImplemented:
                if tied:
                    args, kwargs = replaced(args, self._copied), replaced(kwargs, self._copied)
                if self._tape is None:
                    self._check_written(func, args, kwargs)
                with Unread() if self._tape is None and held and _is_unread(func) else nullcontext():
                    result = self._run_noting_writes(func, args, kwargs, held or tied)
            return self._owned(self._noted(result, held or tied), tensors)

    def _noted(self, result: Any, held: bool) -> Any:
        """Note where results come from.

        Random numbers inside of torch.vmap are one for each example, and are the example's like it.

        Args:
            result: What a function has returned.
            held: Whether an argument follows from the example.
        """
        for tensor in tensors_in(result):
            own = held or functorch.is_functorch_wrapped_tensor(tensor)
            setattr(tensor, _TOKEN if own else _INSIDE, self._token)
        return result

    def _is_examples(self, tensor: Tensor) -> bool:
        """Return whether a tensor follows from the example."""
        return getattr(tensor, _TOKEN, None) is self._token

    def length(self, tensor: Tensor) -> int:
        """Return `len(tensor)`; refuse that of a tensor which depends on other examples, or on how many."""
        self._check_asked(Tensor.__len__, tensor)
        with torch._C.DisableTorchFunction():
            return tensor.__len__()

    def _check_asked(self, func: Function, tensor: Tensor) -> None:
        """Refuse to tell a size, or another attribute, of a tensor that depends on other examples."""
        token = getattr(tensor, _TOKEN, None)
        if id(tensor) in self._parameters or self._token in (token, getattr(tensor, _INSIDE, None)):
            return
        if token is not None:
            raise _kept()
        if not functorch.is_functorch_wrapped_tensor(tensor):
            self._check_private(func, tensor)

    def _run_noting_writes(
        self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], held: bool
    ) -> Any:
        """Run a function, and refuse it if it has written into a tensor that the call did not make.

        Running statistics of observers and normalizations are written by functions whose names do not tell.

        Args:
            func: The function.
            args: Its positional arguments.
            kwargs: Its named arguments.
            held: Whether one of them follows from the example.
        """
        if not held and self._tape is not None:
            return func(*args, **kwargs)
        tensors = [one for one in found_in(args, kwargs) if not functorch.is_functorch_wrapped_tensor(one)]
        versions = list(map(version_of, tensors))
        result = func(*args, **kwargs)
        for tensor, version in zip(tensors, versions, strict=True):
            if version_of(tensor) != version and _address(tensor) not in self._own:
                note_written(tensor)
                raise _writing()
        return result

    # Values that must not be used.

    def _check(
        self, func: Function, tensors: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Return whether an argument follows from the example; refuse arguments that hold other examples."""
        held = False
        for tensor in tensors:
            token = None if id(tensor) in self._parameters else getattr(tensor, _TOKEN, None)
            if token is self._token:
                held = True
            elif token is not None:
                raise _kept()
            elif functorch.is_functorch_wrapped_tensor(tensor):
                # Wrapped by a transform inside the loss, such as torch.func.grad.
                held = True
            elif id(tensor) not in self._parameters:
                self._check_outside(func, tensor)
            if self._tape is None:
                check_custom(tensor)
        if held and _reads(func, args):
            raise reading(where())
        if held and (_writes_inside(func, args, kwargs) or _writes_unseen(func)):
            raise _writing()
        name = _attribute(func) or getattr(func, "__name__", "")
        if held and name in _UNWATCHED:
            raise NotSound(
                f"The loss of one example hands tensors to code that is not watched: {name}, {where()}.",
                remedy="Return the loss, without hooks and without backward(); private.step() does the rest.",
            )
        if func is custom_function_call and not is_own(args[0]) and args[0] not in REGISTERED:
            raise unknown_function(args[0])
        if func is custom_function_call and self._tape is not None and _has_own_rule(args[0]):
            raise NoRule
        return held

    def _check_outside(self, func: Function, tensor: Tensor) -> None:
        """Refuse a tensor that is not the example's and that depends on private data."""
        self._check_private(func, tensor)
        if (
            tensor.requires_grad
            and getattr(tensor, _INSIDE, None) is not self._token
            and self._learns(tensor)
        ):
            raise NotSound(
                "The loss of one example uses a tensor from outside that requires gradients, and that the "
                f"run does not train, {where()}: its gradient would be private, without noise.",
                remedy="Make it a parameter of the model, or call requires_grad_(False) or detach().",
            )

    def _check_private(self, func: Function, tensor: Tensor) -> None:
        shared = _address(tensor) in self._batch or any(_place(tensor) in span for span in self._spans)
        if shared or _address(tensor) in self._earlier or self._private(tensor):
            raise _outside(func)

    def _learns(self, tensor: Tensor) -> bool:
        """Return whether a backward pass would give gradients to more than copies of trained parameters."""
        if tensor.is_leaf:
            return True
        copies = {id(copy) for copy, _ in self._copies.values()}
        waiting: list[Any] = [tensor.grad_fn]
        known = set()
        while waiting:
            node = waiting.pop()
            leaf = getattr(node, "variable", None)
            if leaf is not None and id(leaf) not in copies:
                return True
            for after, _ in getattr(node, "next_functions", ()):
                if after is not None and after not in known:
                    known.add(after)
                    waiting.append(after)
        return False

    @property
    def storages(self) -> list[Any]:
        """Memory that the loss made for this example."""
        return [storage for storage in self._own.values() if storage is not None]

    @property
    def made(self) -> dict[int, StorageWeakRef]:
        """Memory that the loss made for this example, by address."""
        return {key: StorageWeakRef(storage) for key, storage in self._own.items() if storage is not None}

    def _check_saving(self) -> None:
        """Refuse hooks on saved tensors, which see all examples; checkpoints run one example at a time."""
        hooks: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
        if hooks is None:
            return
        if self._tape is not None:
            raise NoRule
        if getattr(hooks[0], "__module__", "") != "torch.utils.checkpoint":
            raise NotSound(
                f"The loss of one example runs under hooks on saved tensors, {where()}.",
                remedy="Leave out torch.autograd.graph.saved_tensors_hooks and save_on_cpu.",
            )

    def _check_written(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse to write an example into a tensor that outlives it; torch.vmap does so by itself."""
        written = [*tensors_in(kwargs.get("out"))]
        if in_place(func) or getattr(func, "__name__", "") == "__set__":
            written += tensors_in(args[0])
        if any(_address(item) not in self._own for item in written):
            raise _writing()

    def _owned(self, result: Any, tensors: Collection[Tensor] = ()) -> Any:
        """Note the memory of results that share none with tensors from outside."""
        if self._tape is None:
            shared = {_address(item) for item in tensors} - self._own.keys()
            for tensor in tensors_in(result):
                # Tensors of other layouts have no one address, and count as memory from outside.
                if _address(tensor) and _address(tensor) not in shared:
                    self._own[_address(tensor)] = _storage(tensor)
        return result

    # Trained parameters.

    def _copied(self, tensor: Tensor) -> Tensor:
        """Return the copies of a trained parameter, one for each example; any other tensor as it is."""
        if id(tensor) not in self._parameters:
            return tensor
        if id(tensor) not in self._copies:
            with temporarily_clear_interpreter_stack():
                copy = tensor.detach()
                copy = copy.clone() if self._tape is None else copy.expand(self._rows, *copy.shape)
                copy.requires_grad_()
            shown = copy if self._tape is None else functorch._add_batch_dim(copy, 0, self._level)
            self._copies[id(tensor)] = copy, shown
        return self._copies[id(tensor)][1]

    def _open(self, func: FunctionType) -> Function:
        """Return a function of torch that is written in Python, changed so that its calls are seen here."""
        unseen = dict.fromkeys(_UNSEEN, lambda *_: False)
        copy = FunctionType(
            func.__code__, func.__globals__ | unseen, func.__name__, func.__defaults__, func.__closure__
        )
        copy.__kwdefaults__ = func.__kwdefaults__

        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return copy(*args, **kwargs)

        return run


def check_custom(tensor: Tensor) -> None:
    """Refuse the result of a custom function, whose backward pass may keep something of an example."""
    node: Any = tensor.grad_fn
    function = getattr(node, "_forward_cls", None)
    if not isinstance(node, BackwardCFunction) or function in REGISTERED:
        return
    if not str(getattr(function, "__module__", "")).startswith(("torch.", "dalenius.")):
        raise unknown_function(function)


def unknown_function(function: Any) -> NotSound:
    """Return the refusal of a custom function that nobody vouches for."""
    return NotSound(
        f"{getattr(function, '__name__', 'A function')} is a custom autograd function, {where()}: its "
        "backward pass is not watched, and may use other examples than its own.",
        remedy="Write it with functions of torch, or vouch for it by dp.learn.register_function.",
    )


def _check_operator(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse operators that are written in Python, and arguments whose entries are not seen."""
    operator = isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket)
    space = str(func).split(".")[0].removeprefix("torch.ops.") if operator else "aten"
    if operator and space not in _SPACES:
        raise NotSound(
            f"The loss of one example calls an operator of its own, {func}, {where()}, which is not watched.",
            remedy="Write it with functions of torch.",
        )
    other = other_sequence(args, kwargs)
    if other:
        raise NotSound(
            f"The loss of one example passes a {other} to torch, {where()}: what is in it is not followed.",
            remedy="Pass a list or a tuple.",
        )


def _numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """Yield the arguments that are not tensors, and those in lists and tuples."""
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, list | tuple) else (value,):
            if not isinstance(item, Tensor):
                yield item


def _storage(tensor: Tensor) -> Any:
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor.untyped_storage() if tensor.layout == torch.strided else None


def _address(tensor: Tensor) -> int:
    """Return where the memory of a tensor is noted; 0 for a sparse tensor, which has several."""
    storage = _storage(tensor)
    return 0 if storage is None else storage._cdata


def _place(tensor: Tensor) -> int:
    """Return where the values of a tensor begin; −1 for one that has no memory of its own."""
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor.data_ptr() if tensor.layout == torch.strided else -1


def _calling_module() -> str:
    """Return the module of the code that calls a function of torch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_HANDING_ON):
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__", "")


def _answer_to_checks() -> bool | None:
    """Return what a library that branches on a value is told without a look at it; None for any other code.

    Arguments of distributions are taken as valid, as an error would depend on the example. Masks of
    transformers are taken as having something to hide, which is the general way whatever is in them.
    """
    name = _calling_module()
    if name.startswith("torch.distributions"):
        return True
    return False if name.startswith("transformers.") else None


def _is_unread(func: Function) -> bool:
    """Return whether a function must not read values of an example, as those for packed sequences do."""
    return getattr(func, "__name__", "") not in _READABLE and _calling_module() not in _RECURRENT


_RECURRENT = "torch.nn.modules.rnn", "torch.nn.utils.rnn"


_HANDING_ON = "dalenius.learn", "torch.overrides", "torch._tensor"


def _attribute(func: Function) -> str | None:
    """Return the name of the attribute of a tensor that a function reads, if it does."""
    if getattr(func, "__name__", "") != "__get__":
        return None
    return getattr(getattr(func, "__self__", None), "__name__", "")


def _is_opaque(func: Function) -> TypeGuard[FunctionType]:
    """Return whether a function of torch is written in Python and hands its arguments on to others."""
    return isinstance(func, FunctionType) and not func.__globals__.keys().isdisjoint(_UNSEEN)


_MASKS = torch.bool, torch.uint8


def _reads(func: Function, args: tuple[Any, ...]) -> bool:
    """Return whether a function reads values of tensors into Python, or has a result of a size by values."""
    name = getattr(func, "__name__", "")
    if name in ("__getitem__", "__setitem__"):
        parts = args[1] if isinstance(args[1], tuple | list) else (args[1],)
        bounds = [bound for part in parts if isinstance(part, slice) for bound in (part.start, part.stop)]
        masks = name == "__getitem__" and any(item.dtype in _MASKS for item in tensors_in(args[1]))
        return masks or any(isinstance(bound, Tensor) for bound in bounds)
    if name in ("repeat_interleave", "tensor_split"):
        return len(args) > 1 and isinstance(args[1], Tensor)
    return name in _READS or (name == "where" and len(args) == 1)


_STATISTICS = frozenset(("batch_norm", "instance_norm", "native_batch_norm"))
"""Functions that write running statistics only where they are told to."""


def _writes_inside(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a function changes a table, or running statistics, that it is given."""
    name = getattr(func, "__name__", "")
    if name in ("embedding", "embedding_bag") and isinstance(func, FunctionType):
        return (args[3] if len(args) > 3 else kwargs.get("max_norm")) is not None
    if name not in _STATISTICS:
        return False
    place = 1 if isinstance(func, FunctionType) else 3
    flag = "use_input_stats" if name == "instance_norm" else "training"
    mean = args[place] if len(args) > place else kwargs.get("running_mean")
    updates = args[5] if len(args) > 5 else kwargs.get(flag, name == "instance_norm")
    return mean is not None and bool(updates)


def _writes_unseen(func: Function) -> bool:
    """Return whether a function replaces a tensor's memory, or writes to tensors though its name hides it."""
    name = getattr(func, "__name__", "")
    if name == "set_" or (name not in _STATISTICS and is_mutable(func, in_place(func))):
        return True
    bare: list[Any] = [func] if hasattr(func, "_schema") else []
    if isinstance(func, torch._ops.OpOverloadPacket):
        bare = [getattr(func, name) for name in func.overloads()]
    return any(
        argument.alias_info is not None and argument.alias_info.is_write
        for operator in bare
        for argument in operator._schema.arguments
    )


def _writing() -> NotSound:
    return NotSound(
        f"The loss of one example writes into a tensor that other examples see, {where()}.",
        remedy="Write into tensors that the loss made itself; keep no running statistics, and no max_norm.",
    )


def _has_own_rule(function: Any) -> bool:
    return function.vmap is not torch.autograd.Function.vmap


def _kept() -> NotSound:
    return NotSound(
        f"The loss of one example uses a tensor kept from another example or batch, {where()}.",
        remedy="Compute the loss from the example alone, and keep nothing of it for later calls.",
    )


def _outside(func: Function) -> NotSound:
    name = _attribute(func) or getattr(func, "__name__", "A function")
    return NotSound(
        f"The loss of one example uses private data that is not its example: {name}, {where()}.",
        remedy="Use the example that the function is given, and public constants.",
    )


def reading(place: str) -> NotSound:
    """Return the refusal of a loss that depends on values of an example in Python, at a place."""
    return NotSound(
        f"The loss of one example reads values of the example into Python, or branches on them, {place}.",
        remedy="Use torch.where(condition, a, b) in place of if, and masks in place of selections.",
    )


def is_library_file(name: str) -> bool:
    """Return whether a file of code is one of torch or of this library."""
    return name.startswith(_HERE)


def where(error: BaseException | None = None) -> str:
    """Return the line of the user's code that is running, or that an error came through last."""
    output = ""
    if error is None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_HERE):
            frame = frame.f_back
        if frame is not None:
            output = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
    trace = None if error is None else error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_HERE):
            output = f"{Path(name).name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return f"in {output}" if output else "in the function"
