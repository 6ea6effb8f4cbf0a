"""`len(x)` of a batch, while a pass is watched: a private size, as `x.shape[0]` is.

Python's `len` returns a plain int whatever a type's `__len__` gives, so that `losses.sum() / len(x)` could
not be told from a division by a constant. While a pass is watched, the name `len` is looked up as a function
that gives a `BatchSize` for a batch and is the ordinary one for anything else. A `len` that was stored
elsewhere before reaches the tensor's own `__len__`, which refuses.
"""

from __future__ import annotations

import builtins
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import Tensor

_ordinary = builtins.len
_CONTAINERS = frozenset((list, tuple, dict, str, OrderedDict, torch.Size))
"""What almost all calls are of: `isinstance` of a tensor takes longer."""
_users = 0


def _own(frame: FrameType) -> bool:
    """Return whether code of this library asks, which computes with plain sizes."""
    return str(frame.f_globals.get("__name__", "")).startswith("dalenius.learn")


@contextmanager
def tracked(measure: Callable[[Tensor], Any]) -> Iterator[None]:
    """Let `len` of tensors be what `measure` returns."""
    global _users

    def length(value: Any) -> Any:
        if type(value) in _CONTAINERS or not isinstance(value, Tensor):
            return _ordinary(value)
        if not _own(sys._getframe(1)):
            return measure(value)
        with torch._C.DisableTorchFunction():
            return _ordinary(value)

    length.__name__ = length.__qualname__ = "len"
    before: Any = builtins.len
    builtins.len = length
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        builtins.len = before if _users else _ordinary
