"""Whether classes and functions are code of torch or of this library, and not of the user's.

Code of the user's may refer to a batch. So it is watched, or refused where it cannot be watched.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

PREFIXES = ("torch.", "dalenius.")
WRAPPING = ("typing_extensions", "warnings")
"""Modules of decorators that warn, and call what they wrap."""


def is_library_class(kind: type) -> bool:
    """Return whether a class is the one that torch, or this library, has under its name."""
    place = sys.modules.get(kind.__module__) if f"{kind.__module__}.".startswith(PREFIXES) else None
    value: Any = place
    for name in kind.__qualname__.split("."):
        value = getattr(value, name, None)
    return value is kind


def is_library_function(function: Any) -> bool:
    """Return whether a function or method, and all that it wraps, is code of torch or of this library."""
    while function is not None:
        function = getattr(function, "__func__", function)
        name = str(getattr(function, "__globals__", {}).get("__name__", ""))
        wrapped = getattr(function, "__wrapped__", None)
        if not f"{name}.".startswith(PREFIXES) and not (name in WRAPPING and wrapped is not None):
            return False
        function = wrapped
    return True


def functions_of(kind: type) -> list[FunctionType]:
    """Return the functions that the body of a class defines, static ones and those of properties included."""
    functions: list[FunctionType] = []
    for value in vars(kind).values():
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        getters = (value.fget, value.fset, value.fdel) if isinstance(value, property) else (value,)
        functions += [getter for getter in getters if isinstance(getter, FunctionType)]
    return functions
