"""Calls of TorchScript in a private pass, which run without telling torch's overrides what they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.marks import tensors_in

_SCRIPTS: tuple[Any, ...] = (torch._C.ScriptFunction, torch._C.ScriptMethod)


@contextmanager
def followed_scripts(private: Callable[[Tensor], bool], looping: Callable[[], bool]) -> Iterator[None]:
    """Run scripted functions as they were written, and refuse those of which that is not known.

    Args:
        private: Returns whether a tensor depends on private examples.
        looping: Returns whether a loop is watched. There a script may hold private tensors as constants or
            attributes, whatever it is called with.
    """
    before: list[Any] = [kind.__call__ for kind in _SCRIPTS]

    def watched(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            # What torch.jit.script was given, which torch keeps for its compiler.
            written = getattr(self, "_torchdynamo_inline", None)
            if callable(written):
                return written(*args, **kwargs)
            if not looping() and not any(map(private, tensors_in((args, kwargs)))):
                return original(self, *args, **kwargs)
            raise NotSound(
                f"A function or module of TorchScript{user_line()} is not followed in a private loop.",
                remedy="Call it as it was before torch.jit.script or torch.jit.trace.",
            )

        return call

    for kind, original in zip(_SCRIPTS, before, strict=True):
        kind.__call__ = watched(original)
    try:
        yield
    finally:
        for kind, original in zip(_SCRIPTS, before, strict=True):
            kind.__call__ = original
