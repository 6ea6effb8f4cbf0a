"""Functions of Python's `math` module on private numbers, such as `math.exp(loss.item())` for a perplexity.

They take plain floats, and a private number does not become one. While a pass is watched, the names are
functions that give a private number for a private one, and are the ordinary ones for anything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from dalenius.learn.dataflow.private_numbers import PrivateNumber, computed, plain

NAMES = "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "pow", "tanh"
_ordinary = {name: getattr(math, name) for name in NAMES}
_users = 0


def _following(function: Callable[..., float]) -> Callable[..., Any]:
    """Return a function of `math` whose results are private where an argument is."""

    @wraps(function)
    def follow(*numbers: Any) -> Any:
        if not any(isinstance(number, PrivateNumber) for number in numbers):
            return function(*numbers)
        source = next(number.source for number in numbers if isinstance(number, PrivateNumber))
        return PrivateNumber(computed(function, *map(plain, numbers)), source)

    return follow


@contextmanager
def private_mathematics() -> Iterator[None]:
    """Let functions of `math` take private numbers inside."""
    global _users
    if not _users:
        for name, function in _ordinary.items():
            setattr(math, name, _following(function))
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            for name, function in _ordinary.items():
                setattr(math, name, function)
