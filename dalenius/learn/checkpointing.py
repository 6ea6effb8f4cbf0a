"""Gradient checkpointing in a private pass: activations are kept, and forward passes are made once.

Checkpointing drops what a backward pass needs and makes the forward pass again. Per-example gradients come
from rules that replace functions of torch on the way forward, so that a second forward pass that is not
watched would not match the first. Inside of a private pass checkpoints are therefore ordinary calls: the
result is the same, and memory is saved by smaller chunks instead (`chunk=`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import checkpoint


def saved_elsewhere() -> Any:
    """Return the hooks that take what a function saves for its backward pass, None if there are none."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


@contextmanager
def kept_activations() -> Iterator[None]:
    """Save what a backward pass needs as it is, whatever hooks on saved tensors are in force."""
    taken = []
    while (hooks := saved_elsewhere()) is not None:
        torch._C._autograd._pop_saved_tensors_default_hooks()
        taken.append(hooks)
    try:
        yield
    finally:
        for hooks in reversed(taken):
            torch._C._autograd._push_saved_tensors_default_hooks(*hooks)


@contextmanager
def direct_checkpoints() -> Iterator[None]:
    """Call functions that are checkpointed directly, so that nothing is computed again on the way back."""
    module: Any = checkpoint
    names = "CheckpointFunction", "_checkpoint_without_reentrant_generator"
    before = [getattr(module, name) for name in names]

    class Direct:
        @staticmethod
        def apply(function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
            return function(*args)

    def around(*_: Any, **__: Any) -> Iterator[None]:
        yield

    module.CheckpointFunction, module._checkpoint_without_reentrant_generator = Direct, around
    try:
        yield
    finally:
        for name, original in zip(names, before, strict=True):
            setattr(module, name, original)
