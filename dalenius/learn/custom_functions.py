"""Custom autograd functions whose users vouch for them.

    class Straight(torch.autograd.Function): …
    dp.learn.register_function(Straight)

What a `torch.autograd.Function` does on the way back is not seen by the data-flow analysis, so that its
results count as mixed. A function that is registered is taken to treat every example by itself on the way
back. Its forward pass is analysed like any other code. The receipt of a run names
the registered functions that it has used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.dataflow.provenance import user_line

_function: Any = torch.autograd.Function

REGISTERED: set[type] = set()
"""Functions whose users vouch that their backward pass keeps examples apart."""


def register_function(function: type[torch.autograd.Function]) -> None:
    """Vouch that the backward pass of a custom function treats every example by itself.

    Args:
        function: A subclass of `torch.autograd.Function`. What its backward pass gives an example must depend
            on that example, its incoming gradient and public values alone.

    Raises:
        InvalidArgument: `function` is not a subclass of `torch.autograd.Function`.
    """
    if not (isinstance(function, type) and issubclass(function, torch.autograd.Function)):
        raise InvalidArgument(
            "register_function takes a class of custom autograd functions.",
            remedy="Pass the subclass of torch.autograd.Function itself, not an instance or its apply.",
        )
    REGISTERED.add(function)


@contextmanager
def guarded_functions(known: Callable[[type], bool]) -> Iterator[None]:
    """Refuse custom functions that nobody vouches for, whatever they are applied to.

    Args:
        known: Returns whether the backward pass of a custom function is known.
    """
    before = vars(_function)["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not known(cls):
            raise NotSound(
                f"{cls.__name__} is a custom function{user_line()}, whose backward pass is not known to keep "
                "examples apart.",
                remedy="Write it with functions of torch, or vouch for it by dp.learn.register_function.",
            )
        return before.__func__(cls, *args, **kwargs)

    _function.apply = classmethod(apply)
    try:
        yield
    finally:
        _function.apply = before


def vouched(functions: Iterable[type]) -> tuple[str, ...]:
    """Return the assumption about registered functions that a run has used, for its receipt."""
    names = sorted(function.__name__ for function in functions)
    if not names:
        return ()
    return (f"the backward pass of {' and '.join(names)} treats every example by itself",)
