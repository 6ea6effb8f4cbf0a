"""`unchanged`: runs a model and puts back whatever it has changed of itself.

A model may keep something of its inputs: a buffer, a submodule or a parameter that it makes in its first
call, a cache in an attribute, an entry of a list. What is reached from a module by attributes and entries of
containers is noted before the call and put back after it. Variables around functions, attributes of classes
and what libraries keep for themselves are not reached.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Undo = Callable[[], None]
_CLOSED = sys.stdlib_module_names | {"torch", "numpy", "dalenius"}
"""Packages whose objects are not entered, but for modules of torch, tensors, arrays and containers."""
_PLAIN = (int, float, complex, str, bytes, type(None), type, FunctionType, ModuleType)


@contextmanager
def unchanged(module: nn.Module) -> Iterator[None]:
    """Put a module back as it was: its tensors, submodules and attributes, and what these hold."""
    with torch._C.DisableTorchFunction():
        undo = list(_noted(module))
    try:
        yield
    finally:
        failures = []
        with torch.no_grad(), torch._C.DisableTorchFunction():
            for step in undo:
                try:
                    step()
                except Exception as failure:
                    failures.append(failure)
        if failures:
            raise failures[0]


def _noted(root: Any) -> Iterator[Undo]:
    """Yield, for everything that is reached, what puts it back."""
    known: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _PLAIN) or id(value) in known:
            continue
        # Kept, so that nothing else gets its address.
        known[id(value)] = value
        undo, further = _opened(value)
        waiting += further
        if undo is not None:
            yield undo


def _opened(value: Any) -> tuple[Undo | None, list[Any]]:
    """Return what puts an object back, and the objects that it holds."""
    if isinstance(value, Tensor):
        return _of_tensor(value), [vars(value)]
    if isinstance(value, dict):
        return _of_mapping(value)
    if isinstance(value, list | deque):
        kind = list if isinstance(value, list) else deque
        return _of_entries(value, list(value), kind.clear, kind.extend), list(value)
    if isinstance(value, set):
        return _of_entries(value, list(value), set.clear, set.update), []
    if isinstance(value, bytearray):
        return _of_entries(value, list(value), bytearray.clear, bytearray.extend), []
    if isinstance(value, tuple):
        return None, list(value)
    if isinstance(value, np.ndarray):
        return _of_array(value), list(value.flat) if value.dtype.hasobject else []
    if isinstance(value, MethodType):
        return None, [value.__self__]
    if isinstance(value, partial):
        return None, [value.func, *value.args, value.keywords]
    package = str(type(value).__module__).partition(".")[0]
    if isinstance(value, nn.Module) or package not in _CLOSED:
        with suppress(TypeError):
            return None, [vars(value)]
    return None, []


def _of_mapping(value: dict[Any, Any]) -> tuple[Undo, list[Any]]:
    kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    before = list(kind.items(value))

    def undo() -> None:
        after = list(kind.items(value))
        same = len(before) == len(after) and all(
            one is key and two is entry for (one, two), (key, entry) in zip(before, after, strict=True)
        )
        if not same:
            kind.clear(value)
            for key, entry in before:
                kind.__setitem__(value, key, entry)

    return undo, [entry for _, entry in before]


def _of_entries(
    value: Any, before: list[Any], clear: Callable[[Any], Any], fill: Callable[[Any, Any], Any]
) -> Undo:
    def undo() -> None:
        after = list(value)
        if len(before) != len(after) or any(one is not two for one, two in zip(before, after, strict=True)):
            clear(value)
            fill(value, before)

    return undo


def _of_array(value: np.ndarray[Any, Any]) -> Undo | None:
    copy = value.copy()

    def undo() -> None:
        if value.dtype.hasobject or not np.array_equal(value, copy, equal_nan=value.dtype.kind in "fc"):
            np.copyto(value, copy)

    return undo if value.flags.writeable else None


def _of_tensor(value: Tensor) -> Undo | None:
    if value.is_meta:
        return None
    copy = value.detach().clone()

    def undo() -> None:
        form = (value.shape, value.dtype, value.device, value.layout)
        if form != (copy.shape, copy.dtype, copy.device, copy.layout):
            value.data = copy
        elif value.layout is not torch.strided or not torch.equal(value, copy):
            with torch.inference_mode(value.is_inference()):
                value.copy_(copy)

    return undo
