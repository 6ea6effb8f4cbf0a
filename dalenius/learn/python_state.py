"""`python_state`: a summary of what a function of Python could remember from one call to the next.

Where examples run one after the other, a value that is kept in Python tells a later example how many came
before it: a counter, an entry of a list, the state of a generator of random numbers. Everything that can be
reached from a function and a model is read: variables around the function, attributes of objects, of classes
and of tensors, entries of containers, positions of iterators, states of generators. Code of torch and of
other libraries is not entered, but for attributes of their objects.

A summary is compared and forgotten. What it cannot reach (files, memory of extensions, values behind a
library's functions) is an assumption on the receipt.
"""

from __future__ import annotations

import random
import sys
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np
import torch
from torch import Tensor

_random: Any = random
_numbers: Any = np.random
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), np.generic)
_SEQUENCES = list, tuple, deque
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
_HERE = str(Path(__file__).parents[1])
_MOST = 200_000
"""Objects that are read."""
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
            if id(value) in self._known or len(self._known) >= _MOST:
                continue
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
        return len(value), list(value)
    if isinstance(value, set | frozenset):
        return len(value), sorted(value, key=lambda entry: (type(entry).__name__, repr(entry)))
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
    if hasattr(type(value), "__next__"):
        return _position(value)
    return None, [type(value), *_attributes(value)]


def _mapping(value: Mapping[Any, Any]) -> tuple[Any, list[Any]]:
    try:
        pairs = list(value.items())
    except Exception:
        return None, []
    shown = [(key, entry) for key, entry in pairs if not str(key).startswith(_OWN)]
    own = _attributes(value) if type(value) is not dict else []
    return len(shown), [part for pair in shown for part in pair] + own


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
    if type(value) is torch.Generator:
        return value.get_state().tolist()
    return None


def _plain_state(state: Any) -> Any:
    """Return a state of numpy's with all numbers of its arrays, which are cut where they are printed."""
    if isinstance(state, Mapping):
        return tuple((name, _plain_state(entry)) for name, entry in state.items())
    if isinstance(state, tuple):
        return tuple(map(_plain_state, state))
    return state.tolist() if isinstance(state, np.ndarray) else state


def _position(value: Any) -> tuple[Any, list[Any]]:
    """Return where an iterator is, without moving it."""
    try:
        reduced = value.__reduce__()
    except Exception:
        return repr(value), _attributes(value)
    if isinstance(reduced, str):
        return reduced, []
    return None, [part for part in reduced[1:] if not callable(part)]


def _attributes(value: Any) -> list[Any]:
    """Return the attributes of an object, and the names they have."""
    parts: list[Any] = []
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict):
        parts += [
            part for name, entry in held.items() if not str(name).startswith(_OWN) for part in (name, entry)
        ]
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            entry = getattr(value, name, None) if not name.startswith("__") else None
            parts += [name, entry]
    return parts


def _class_attributes(kind: type) -> list[Any]:
    """Return the attributes of a class of the user's, those of its bases included."""
    if _is_library(kind.__module__):
        return []
    shown = [
        part
        for name, entry in vars(kind).items()
        if not name.startswith("__") or name in ("__call__", "__init__", "__getattr__")
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
    for name in sorted(names & space.keys()):
        value = space[name]
        parts.append(value)
        if isinstance(value, ModuleType) and not _is_library(value.__name__):
            parts += [vars(value)[entry] for entry in sorted(names & vars(value).keys())]
    return parts


def _closed_over(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # The variable has no value yet.
            yield None


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
