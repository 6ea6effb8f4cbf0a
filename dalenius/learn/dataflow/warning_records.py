"""Warnings of torch about private tensors: shown, and not handed to functions of the user's.

Whether torch warns may depend on private values or sizes, as of an `out=` that is resized. A warning that is
printed tells the user and steers nothing. One that is recorded, or handed to a function in place of
`warnings.showwarning`, is a plain value that the loop could decide by. So torch is kept quiet where warnings
are recorded or handed on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_module: Any = warnings
_IGNORED: list[Any] = [("ignore", None, Warning, None, 0)]


def are_recorded() -> bool:
    """Return whether warnings go to other functions than those that print them."""
    shown = _module._showwarnmsg_impl
    return _module.showwarning is not _module._showwarning_orig or shown.__module__ != "warnings"


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """Ignore warnings inside, where they are recorded."""
    if not are_recorded():
        yield
        return
    before, _module.filters = _module.filters, _IGNORED
    try:
        yield
    finally:
        _module.filters = before
