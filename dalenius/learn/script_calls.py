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
def followed_scripts(private: Callable[[Tensor], bool]) -> Iterator[None]:
    """Run scripted functions of private tensors as they were written, and refuse what was not written so.

    Args:
        private: Returns whether a tensor depends on private examples.
    """
    before: list[Any] = [kind.__call__ for kind in _SCRIPTS]

    def watched(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not any(map(private, tensors_in((args, kwargs)))):
                return original(self, *args, **kwargs)
            # What torch.jit.script was given, which torch keeps for its compiler.
            written = getattr(self, "_torchdynamo_inline", None)
            if callable(written):
                return written(*args, **kwargs)
            raise NotSound(
                f"A function or module of TorchScript on private examples{user_line()} is not followed.",
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
