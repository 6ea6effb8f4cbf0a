"""What a watched call is given: values of types that run no code of the user's beneath torch.

While torch runs a function, its mode is off, and the tape sees nothing. Torch asks the arguments for numbers,
entries and lengths, and calls functions that it is given. So only types are admitted whose methods are those
of Python, numpy, torch or this library. Numbers, texts, lists and dicts of the user's own subclasses are
replaced by plain ones of the same value, by methods that a subclass cannot change. Functions, modules and
operators of the user's are refused.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import BatchSize, PrivateInteger, PrivateNumber
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.library_code import PREFIXES, is_library_class, is_library_function

_OF_PYTHON = int, float, bool, str, complex, bytes, range, type(None), type(Ellipsis)
_OF_TORCH = (
    Tensor,
    nn.Parameter,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    torch.Generator,
)
_ATOMS = frozenset((Tensor, nn.Parameter, *_OF_PYTHON, *_OF_TORCH, BatchSize, PrivateInteger, PrivateNumber))
"""Types of arguments that run no code of the user's, whatever their value is."""
_LISTS = frozenset((tuple, list, torch.Size))
_DICTS = frozenset((dict, OrderedDict, defaultdict))
_KNOWN: set[type] = set()
"""Further types that were admitted."""
_BUILT = (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
"""Types of functions that are written in C."""
_HEAP = 1 << 9
"""The flag of a class that was made while Python runs, as by a class statement."""
_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__index__,
    float: float.__float__,
    str: str.__str__,
    tuple: lambda value: (*tuple.__iter__(value),),
    list: lambda value: [*list.__iter__(value)],
    dict: lambda value: dict(dict.items(value)),
}
"""What gives the plain value of a subclass, whatever the subclass overrides."""


def admitted(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, with plain values in place of the user's own subclasses.

    Args:
        name: What the function that is called is called.
        args: Its positional arguments.
        kwargs: Its named arguments.

    Raises:
        NotSound: An argument would run code of the user's, or hides its entries.
    """
    if all(map(_is_plain, args)) and (not kwargs or all(map(_is_plain, kwargs.values()))):
        return args, kwargs
    positional = tuple([_plain(name, value) for value in args])
    return positional, {key: _plain(name, value) for key, value in kwargs.items()}


def _is_plain(value: Any) -> bool:
    """Return whether a value can be passed on as it is."""
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind in _LISTS:
        return all(map(_is_plain, value))
    if kind is slice:
        return _is_plain(value.start) and _is_plain(value.stop) and _is_plain(value.step)
    if kind in _DICTS:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return kind in _KNOWN


def _plain(name: str, value: Any) -> Any:
    """Return a value, with plain ones in the place of the user's own subclasses; refuse any other."""
    kind = type(value)
    if _is_plain(value):
        return value
    if kind in _LISTS:
        return kind([_plain(name, entry) for entry in value])
    if kind is slice:
        return slice(*(_plain(name, entry) for entry in (value.start, value.stop, value.step)))
    if kind in _DICTS:
        return {_plain(name, key): _plain(name, entry) for key, entry in value.items()}
    if _is_known(kind):
        _KNOWN.add(kind)
        return value
    if issubclass(kind, tuple) and is_library_class(kind):
        # Packed sequences and results with named fields: rebuilt, they would be other types.
        for entry in value:
            _plain(name, entry)
        return value
    for base, plain in _PLAIN.items():
        if issubclass(kind, base):
            return _plain(name, plain(value))
    if _is_own_callable(value):
        return value
    raise _refused(name, value)


def _is_known(kind: type) -> bool:
    """Return whether all values of a type run code of numpy, torch or this library alone."""
    if issubclass(kind, type):
        return True
    if issubclass(kind, np.ndarray | np.generic | np.dtype):
        return _is_of(kind, np) or kind.__module__.startswith("numpy.dtypes")
    if issubclass(kind, nn.Module | tuple | list | dict):
        return False
    if issubclass(kind, Tensor):
        # Classes of tensors are checked by themselves, with more to say about them.
        return True
    return is_library_class(kind) or _is_of(kind, torch) or kind is memoryview or kind is bytearray


def _is_of(kind: type, module: Any) -> bool:
    """Return whether a class is the one that a module has under its name."""
    return getattr(module, kind.__name__, None) is kind or getattr(module, f"{kind.__name__}_", None) is kind


def _is_own_callable(value: Any) -> bool:
    """Return whether what can be called is code of torch or of this library, without hooks."""
    if isinstance(value, nn.Module):
        hooks = value._forward_hooks or value._forward_pre_hooks or value._modules
        return is_library_class(type(value)) and not hooks and "forward" not in vars(value)
    return isinstance(value, FunctionType | MethodType | BuiltinFunctionType) and not is_foreign(value)


def is_foreign(func: Any) -> bool:
    """Return whether a function that torch is asked to run is code of the user's.

    `torch.overrides.handle_torch_function` hands any function to a mode, and operators may be written in
    Python.
    """
    if isinstance(func, FunctionType | MethodType):
        wrapped = getattr(func, "__wrapped__", None)
        if isinstance(wrapped, _BUILT):
            own = f"{getattr(func, '__globals__', {}).get('__name__', '')}.".startswith(PREFIXES)
            return not own or is_foreign(wrapped)
        return not is_library_function(func)
    if isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return _is_written_in_python(func)
    if isinstance(func, type):
        return not is_library_class(func)
    if isinstance(func, _BUILT):
        return not _is_of_library(func)
    return not is_library_class(type(func))


def _is_of_library(func: Any) -> bool:
    """Return whether a function or method that is written in C belongs to a module or class of torch."""
    descriptor = getattr(func, "__self__", func)
    if descriptor is None:
        # A static method of a class of torch does not tell whose it is.
        return getattr(torch._C._VariableFunctions, func.__name__, None) is func
    if isinstance(descriptor, property):
        return not is_foreign(descriptor.fget)
    owner = getattr(descriptor, "__objclass__", descriptor)
    if isinstance(owner, ModuleType):
        return f"{owner.__name__}.".startswith(PREFIXES)
    kind = owner if isinstance(owner, type) else type(owner)
    # Classes that are written in C as well, which nobody makes in Python.
    fixed = not kind.__flags__ & _HEAP and kind.__module__.startswith(PREFIXES)
    return fixed or is_library_class(kind)


_SPACES = frozenset(("aten", "prims", "prim", "quantized", "c10d", "_c10d_functional"))
"""Where operators of torch's own come from."""


def _is_written_in_python(func: Any) -> bool:
    """Return whether an operator was made by `torch.library`, outside of torch."""
    packet = func.overloadpacket if isinstance(func, torch._ops.OpOverload) else func
    space, _, name = packet._qualified_op_name.partition("::")
    if space in _SPACES:
        return False
    from torch._library import custom_ops

    made: Mapping[str, Any] = custom_ops.OPDEFS
    beginnings = f"{space}/{name}/", f"{space}/{name}."
    return f"{space}::{name}" in made or any(key.startswith(beginnings) for key in torch.library._impls)


def foreign(name: str) -> NotSound:
    """Return the refusal of a function of the user's that torch would run unwatched."""
    return NotSound(
        f"{name} is run by torch{user_line()} as one of its own functions, and what it does is not watched.",
        remedy="Call the function itself, without torch.library or torch.overrides around it.",
    )


def _refused(name: str, value: Any) -> NotSound:
    kind = type(value)
    if callable(value):
        return NotSound(
            f"{name} takes a function or a module{user_line()}, which torch runs where nothing is watched.",
            remedy="Call it yourself, and pass what it returns.",
        )
    if hasattr(kind, "__getitem__") or hasattr(kind, "__iter__"):
        return NotSound(
            f"{name} takes a {kind.__name__}{user_line()}, and what is in it is not followed.",
            remedy="Pass a list or a tuple.",
        )
    return NotSound(
        f"{name} takes a {kind.__name__}{user_line()}, whose own methods torch would run unwatched.",
        remedy="Pass a plain number, a text, a list or a tensor.",
    )
