"""`python_state`: a summary of what a function of Python could remember from one call to the next.

Where examples run one after the other, a value that is kept in Python tells a later example how many came
before it: a counter, an entry of a list, the state of a generator of random numbers. Everything that can be
reached from a function and a model is read: variables around the function, attributes of objects, of classes
and of tensors, entries of containers, positions of iterators, states of generators. Code of torch and of
other libraries is not entered, but for attributes of their objects.

Objects of extensions, whose memory Python does not show, are read by what they would be pickled as. One that
has no such form is refused, and so are more objects than can be read: what they keep is not known.

A summary is compared and forgotten. What it cannot reach (files, clocks, variables of installed packages) is
an assumption on the receipt.
"""

from __future__ import annotations

import copyreg
import random
import sys
import sysconfig
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from hashlib import blake2b
from io import BytesIO, IOBase, StringIO
from pathlib import Path
from re import Match
from threading import Lock, RLock, local
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch import Tensor

from dalenius.errors import NotSound

_random: Any = random
_numbers: Any = np.random
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), np.generic)
_SEQUENCES = list, tuple, deque
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
_HERE = str(Path(__file__).parents[1])
_MOST = 200_000
"""Objects that are read."""
_EMPTY = (
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
    type(Lock()),
    type(RLock()),
    local,
    np.ufunc,
)
"""Types of extensions that hold nothing beside attributes."""
_METHODS = FunctionType, staticmethod, classmethod, property
_CONTAINERS = list, tuple, deque, set, frozenset, dict
_MANAGED_DICT, _MANAGED_WEAKREF = 1 << 4, 1 << 3
"""Flags of types whose objects have a dictionary, or weak references, outside of their size."""
_POINTER = 8
_OWN = "_dalenius"
_SHARED = _random._inst, _numbers.mtrand._rand, _numbers.mtrand._rand._bit_generator


def python_state(roots: Iterable[Any]) -> bytes:
    """Return a summary of all plain values that can be reached from some objects.

    Args:
        roots: Functions, modules and other objects.
    """
    digest = blake2b()
    with torch._C.DisableTorchFunction():
        for entry in _Walk().entries(roots):
            digest.update(repr(entry).encode())
    return digest.digest()


class _Walk:
    """One reading of all that can be reached; every object is entered once.

    Objects are numbered as they are met, so that one which is made anew with the same content reads the same.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Any]] = {}

    def entries(self, roots: Iterable[Any]) -> Iterator[Any]:
        """Yield the plain values, and where others are, in a fixed order."""
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if isinstance(value, _PLAIN):
                yield type(value).__name__, repr(value)
                continue
            number, _ = self._known.get(id(value), (len(self._known), value))
            yield id(type(value)), number
            if id(value) in self._known:
                continue
            if len(self._known) >= _MOST:
                raise NotSound(
                    f"The function of private.loss and the model reach more than {_MOST} objects of Python, "
                    "and losses are computed one after the other: whether any of them keeps something from "
                    "one example to the next is not known.",
                    remedy="Leave data sets and vocabularies out of the object whose method is the loss, or "
                    "keep them as tensors or arrays.",
                )
            # Kept, so that nothing else gets its address.
            self._known[id(value)] = number, value
            own, further = _opened(value)
            yield own
            waiting += further


def _opened(value: Any) -> tuple[Any, list[Any]]:
    """Return what an object holds: plain values, and further objects."""
    # The type of a function in C may hold a descriptor there.
    if str(type(value).__module__).startswith("dalenius."):
        # A run and its parts, which note things in every pass.
        return None, []
    if isinstance(value, _SEQUENCES):
        return len(value), [*value, *_attributes_beside(value)]
    if isinstance(value, set | frozenset):
        entries = sorted(value, key=lambda entry: (type(entry).__name__, repr(entry)))
        return len(value), [*entries, *_attributes_beside(value)]
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Tensor):
        # Values of tensors, and which tensor it is, are seen to where they are used.
        return id(value) if isinstance(value, torch.nn.Parameter) else None, _attributes(value)
    generator = _generator_state(value)
    if generator is not None:
        return generator, []
    if isinstance(value, ModuleType | CodeType):
        return id(value), []
    if isinstance(value, BuiltinFunctionType | MethodWrapperType):
        owner = getattr(value, "__self__", None)
        return value.__qualname__, [] if owner is None or isinstance(owner, ModuleType) else [owner]
    if isinstance(value, FunctionType):
        return id(value.__code__), _surroundings(value)
    if isinstance(value, MethodType):
        return None, [value.__self__, value.__func__]
    if isinstance(value, partial):
        return None, [value.func, value.args, value.keywords, *_attributes(value)]
    if isinstance(value, property):
        return None, [value.fget, value.fset]
    if isinstance(value, staticmethod | classmethod):
        return None, [value.__func__]
    if isinstance(value, type):
        return id(value), _class_attributes(value)
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        if frame is None or frame.f_code.co_filename.startswith(_HERE):
            return None, []
        return frame.f_lasti, list(frame.f_locals.values())
    if isinstance(value, IOBase) and not isinstance(value, StringIO | BytesIO):
        # What is read from files is an assumption.
        return None, _attributes(value)
    if _has_hidden_memory(type(value)):
        return _of_extension(value)
    return None, [type(value), *_attributes(value)]


def _mapping(value: Mapping[Any, Any]) -> tuple[Any, list[Any]]:
    try:
        pairs = list(value.items())
    except Exception:
        return None, []
    shown = [(key, entry) for key, entry in pairs if not str(key).startswith(_OWN)]
    return len(shown), [part for pair in shown for part in pair] + _attributes_beside(value)


def _array(value: np.ndarray[Any, Any]) -> tuple[Any, list[Any]]:
    if value.dtype.hasobject:
        return value.shape, list(value.flat)
    return (value.shape, blake2b(np.ascontiguousarray(value).tobytes()).hexdigest()), []


def _shared() -> tuple[Any, ...]:
    """Return the generators that all code shares, which are seeded for every example."""
    return *_SHARED, torch.default_generator, torch._C.default_generator


def _generator_state(value: Any) -> Any:
    if any(value is generator for generator in _shared()):
        return ()
    if isinstance(value, random.Random):
        return () if isinstance(value, random.SystemRandom) else value.getstate()
    if isinstance(value, np.random.Generator):
        return _plain_state(value.bit_generator.state)
    if isinstance(value, np.random.BitGenerator):
        return _plain_state(value.state)
    if isinstance(value, np.random.RandomState):
        return _plain_state(value.get_state())
    if isinstance(value, torch.Generator):
        return torch.Generator.get_state(value).tolist()
    return None


def _plain_state(state: Any) -> Any:
    """Return a state of numpy's with all numbers of its arrays, which are cut where they are printed."""
    if isinstance(state, Mapping):
        return tuple((name, _plain_state(entry)) for name, entry in state.items())
    if isinstance(state, tuple):
        return tuple(map(_plain_state, state))
    return state.tolist() if isinstance(state, np.ndarray) else state


def _has_hidden_memory(kind: type) -> bool:
    """Return whether objects of a type have memory of an extension's beside attributes and slots."""
    if kind.__module__.partition(".")[0] == "torch":
        return False
    size = object.__basicsize__ + _POINTER * len(list(_slots(kind)))
    if kind.__dictoffset__ and not kind.__flags__ & _MANAGED_DICT:
        size += _POINTER
    if kind.__weakrefoffset__ > 0 and not kind.__flags__ & _MANAGED_WEAKREF:
        size += _POINTER
    return bool(kind.__itemsize__) or kind.__basicsize__ > size


def _of_extension(value: Any) -> tuple[Any, list[Any]]:
    """Return what an object of an extension holds, such as where an iterator is, without changing it."""
    if isinstance(value, BytesIO | StringIO):
        return (value.tell(), value.getvalue()), _attributes(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value), _attributes(value)
    if isinstance(value, CellType):
        return None, _contents(value)
    if isinstance(value, ref):
        return None, [value()]
    if isinstance(value, ContextVar):
        return None, [value.get(None)]
    if isinstance(value, BaseException):
        return None, [value.args, *_attributes(value)]
    if isinstance(value, Match):
        return repr(value), []
    if isinstance(value, _EMPTY) or hasattr(value, "cache_info"):
        return None, _attributes(value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reduce = copyreg.dispatch_table.get(type(value))
            reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception:
        reduced = None
    if isinstance(reduced, str):
        return reduced, _attributes(value)
    if not isinstance(reduced, tuple):
        kind = type(value)
        raise NotSound(
            f"The function of private.loss or the model reaches an object of {kind.__module__}."
            f"{kind.__qualname__}, and losses are computed one after the other: what it keeps from one "
            "example to the next cannot be read.",
            remedy="Leave it out of the function and of forward, or use operations of torch.vmap, which runs "
            "all examples at once.",
        )
    # The entries of lists and dictionaries come as iterators of their own.
    return None, [list(part) if hasattr(part, "__next__") else part for part in reduced[1:]]


def _slots(kind: type) -> Iterator[str]:
    """Yield the names of the slots of a type, as they are asked for from outside of it."""
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                yield f"_{base.__name__.lstrip('_')}{name}"
            elif name not in ("__dict__", "__weakref__"):
                yield name


def _attributes_beside(value: Any) -> list[Any]:
    """Return the attributes of a container of a class of its own."""
    return [] if type(value) in _CONTAINERS else [type(value), *_attributes(value)]


def _attributes(value: Any) -> list[Any]:
    """Return the attributes of an object, and the names they have."""
    parts: list[Any] = []
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict):
        parts += [
            part for name, entry in held.items() if not str(name).startswith(_OWN) for part in (name, entry)
        ]
    for name in _slots(type(value)):
        parts += [name, getattr(value, name, None)]
    return parts


def _class_attributes(kind: type) -> list[Any]:
    """Return the attributes of a class of the user's, those of its bases included."""
    if _is_library(kind.__module__):
        return []
    shown = [
        part
        for name, entry in vars(kind).items()
        if name != "_abc_impl" and (not name.startswith("__") or isinstance(entry, _METHODS))
        for part in (name, entry)
    ]
    return shown + [base for base in kind.__bases__ if base is not object]


def _surroundings(function: FunctionType) -> list[Any]:
    """Return what a function of the user's takes from around it."""
    if _is_library(function.__module__):
        # Those that wrap others, such as decorators and cached functions, hold these in their closures.
        return [*_closed_over(function), getattr(function, "__wrapped__", None)]
    parts = [
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
        *_closed_over(function),
    ]
    parts += list(vars(function).values())
    names = set(_names(function.__code__))
    space = function.__globals__
    waiting = [space[name] for name in sorted(names & space.keys())]
    entered: set[int] = set()
    for value in waiting:
        parts.append(value)
        if isinstance(value, ModuleType) and not _is_library(value.__name__) and id(value) not in entered:
            # Of modules and of modules within them, what is asked for by name.
            entered.add(id(value))
            waiting += [vars(value)[entry] for entry in sorted(names & vars(value).keys())]
    if "cache_info" in names:
        parts += [part.cache_info() for part in list(parts) if hasattr(part, "cache_info")]
    return parts


def _closed_over(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        yield from _contents(cell)


def _contents(cell: CellType) -> list[Any]:
    """Return what a variable around a function holds; None where it has no value yet."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return [None]


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code and functions inside of it take from around it, or ask of objects."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


_known_libraries: dict[str, bool] = {}


def _is_library(name: Any) -> bool:
    """Return whether a module is one of Python, of this library or of an installed one."""
    if not isinstance(name, str):
        return False
    if name not in _known_libraries:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        builtin = module is not None and file is None and name != "__main__"
        inside = isinstance(file, str) and (file.startswith(_LIBRARIES) or file.startswith(_HERE))
        _known_libraries[name] = builtin or inside
    return _known_libraries[name]
