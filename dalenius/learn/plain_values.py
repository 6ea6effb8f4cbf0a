"""Plain values of Python that code may look at: attributes of modules, and variables around a function.

No mode of torch sees them. Where a pass is made once and replayed, or examples run one after the other, they
must not change in between.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from torch import nn

PLAIN = frozenset((int, float, bool, str, type(None)))
"""Types of values that can be compared as they are."""


def plain_attributes(modules: Iterable[nn.Module]) -> tuple[tuple[tuple[str, Hashable], ...], ...]:
    """Return the numbers, texts and flags that modules hold, by name.

    Args:
        modules: The modules, each of which is looked at alone.
    """
    return tuple(
        tuple((name, value) for name, value in vars(module).items() if type(value) in PLAIN)
        for module in modules
    )


def plain_surroundings(function: Callable[..., Any]) -> tuple[Hashable, ...]:
    """Return the numbers, texts and flags that a function of Python takes from around it.

    Args:
        function: A function, or anything else that can be called, of which nothing is known.
    """
    return tuple(value for value in _surroundings(function) if type(value) in PLAIN)


def _surroundings(function: Callable[..., Any]) -> Iterator[Any]:
    code = getattr(function, "__code__", None)
    yield from getattr(function, "__defaults__", None) or ()
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # The variable has no value yet.
            yield None
    names = getattr(function, "__globals__", {})
    yield from (names.get(name) for name in getattr(code, "co_names", ()))
