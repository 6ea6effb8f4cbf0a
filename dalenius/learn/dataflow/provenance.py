"""Where examples were mixed: the name of the operation, and the line of user code that called it."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_LIBRARIES = tuple(f"/{name}/" for name in ("torch", "dalenius/learn", "transformers", "peft"))
_PYTHON = sysconfig.get_path("stdlib").replace("\\", "/")


SELECTED_ROWS = "selects rows by private values, and functions of single rows and sums alone are followed"
"""Why rows of a batch that a mask selects are mixed (`selected_rows`)."""
OWN, OTHER, SKIPPED = range(3)
"""The user's code; that of other libraries; that of torch and of this one."""


@lru_cache(maxsize=4096)
def _file(path: str) -> tuple[str, int]:
    """Return the name of a file of code, and whose it is."""
    path = path.replace("\\", "/")
    if any(name in path for name in _LIBRARIES[:2]):
        rank = SKIPPED
    else:
        own = not path.startswith(_PYTHON) or "site-packages" in path
        rank = OWN if own and not any(name in path for name in _LIBRARIES) else OTHER
    return Path(path).name, rank


class Origin(NamedTuple):
    """The operation after which a tensor no longer belongs to one example, and where it was called."""

    operation: str
    reason: str
    line: str

    def __str__(self) -> str:
        return f"{self.operation} {self.reason}{self.line}"


def user_line() -> str:
    """Return " (file.py, line 12)" for the innermost caller outside of torch and this library.

    Library frames are skipped by path; inside a library's own model the innermost frame of that library is
    named when no other caller is found.
    """
    frame = sys._getframe(1)
    fallback = ""
    while frame is not None:
        name, rank = _file(frame.f_code.co_filename)
        if rank == OWN:
            return f" ({name}, line {frame.f_lineno})"
        if rank == OTHER and not fallback:
            fallback = f" ({name}, line {frame.f_lineno})"
        previous = frame.f_back
        if previous is None:
            break
        frame = previous
    return fallback


def origin(operation: str, reason: str) -> Origin:
    """Return the origin of a mixed tensor that is being made now."""
    return Origin(operation, reason, user_line())


_COLLECTIVES = {
    "c10d::allreduce": "all_reduce",
    "c10d::allgather": "all_gather",
    "c10d::_allgather_base": "all_gather_into_tensor",
    "c10d::reduce": "reduce",
    "c10d::broadcast": "broadcast",
    "c10d::alltoall": "all_to_all",
    "c10d::scatter": "scatter",
    "c10d::gather": "gather",
    "c10d::reduce_scatter": "reduce_scatter",
}
"""Operators between processes, by the names of their functions in torch.distributed."""


def called(known: Origin, function: str) -> Origin:
    """Return an origin with the name of the function that the user called, and the present line."""
    operation = _COLLECTIVES.get(known.operation, known.operation)
    if operation != known.operation:
        return known._replace(operation=operation, line=user_line())
    if function.strip("_") not in (operation, ""):
        operation = f"{function} (by its operator {operation})"
    return known._replace(operation=operation, line=user_line())
