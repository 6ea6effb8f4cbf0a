"""Code of the user's that runs inside of an optimizer's step: it may use weights, and nothing private.

The step of an optimizer of torch is not watched, as all that it is given is noised. A hook, an optimizer of
the user's own and a step that was wrapped are other code, and can refer to a batch. So they are run watched,
and what they leave is looked at: weights, gradients, the optimizer's state and its settings must be public.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import optimizer as torch_optimizer

from dalenius.errors import NotSound
from dalenius.learn.library_code import functions_of, is_library_class, is_library_function

Call = Callable[..., Any]
_NAMES = frozenset(
    ("__module__", "__doc__", "__qualname__", "__annotations__", "__firstlineno__", "__static_attributes__")
)
"""What the body of a class defines where nothing is in it."""


@contextmanager
def watched_steps(
    optimizer: torch.optim.Optimizer,
    watched: Callable[[], AbstractContextManager[None]],
    is_private: Callable[[Tensor], bool],
    check_settings: Callable[[], object],
) -> Iterator[Call]:
    """Give the step of an optimizer, in which code of the user's is watched.

    Args:
        optimizer: The optimizer.
        watched: Returns a context in which functions of torch are watched.
        is_private: Whether a tensor depends on private examples.
        check_settings: Refuses settings of the optimizer that depend on private examples.

    Raises:
        NotSound: A hook, or the step, left something private in what the optimizer moves or moves by.
    """

    def run(call: Call, what: str) -> Call:
        def checked(*args: Any, **kwargs: Any) -> Any:
            with watched():
                result = call(*args, **kwargs)
            check_settings()
            if any(map(is_private, moved(optimizer))):
                raise NotSound(
                    f"{what} writes private examples into weights, gradients or the optimizer's state, where "
                    "they have no noise.",
                    remedy="Use weights and public values alone in steps and hooks of the optimizer.",
                )
            return result

        return checked

    tables = [table for table in _tables(optimizer) if table]
    before = [dict(table) for table in tables]
    for table in tables:
        for key, hook in table.items():
            if not _is_own(hook):
                table[key] = run(hook, f"A hook of the optimizer, {getattr(hook, '__name__', 'a function')},")
    try:
        yield optimizer.step if is_stock(optimizer) else run(optimizer.step, "The step of the optimizer")
    finally:
        for table, hooks in zip(tables, before, strict=True):
            table.update({key: hooks[key] for key in table if key in hooks})


def is_stock(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether all that an optimizer's step may call is code of torch or of this library.

    A subclass of the user's that defines anything is not, whatever it defines: `step` calls other methods.
    """
    kind = type(optimizer)
    replaced = [value for name, value in vars(optimizer).items() if callable(getattr(kind, name, None))]
    return (
        all(_is_stock_class(base) for base in kind.__mro__[:-1])
        and all(map(is_library_function, (optimizer.step, *replaced)))
        and type(optimizer.state) is defaultdict
        and type(optimizer.param_groups) is list
        and all(type(group) is dict for group in optimizer.param_groups)
        and all(_is_plain(value) for group in optimizer.param_groups for value in group.values())
    )


def _is_plain(setting: Any) -> bool:
    """Return whether arithmetic with a setting runs no code of the user's."""
    if type(setting) in (list, tuple):
        return all(map(_is_plain, setting))
    if type(setting) is dict:
        return all(map(_is_plain, setting.values()))
    return type(setting).__module__ in ("builtins", "numpy") or is_library_class(type(setting))


def _is_stock_class(kind: type) -> bool:
    if is_library_class(kind):
        return all(map(is_library_function, functions_of(kind)))
    return vars(kind).keys() <= _NAMES


def moved(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    """Give all tensors that the optimizer's next step uses."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
    for state in optimizer.state.values():
        yield from _tensors(list(state.values()))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _tensors(entry)


def _tables(optimizer: torch.optim.Optimizer) -> list[MutableMapping[int, Call]]:
    own = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    return [
        *own,
        torch_optimizer._global_optimizer_pre_hooks,
        torch_optimizer._global_optimizer_post_hooks,
    ]


def _is_own(hook: Call) -> bool:
    """Return whether a hook is one of this library."""
    return str(getattr(hook, "__module__", "")).startswith("dalenius.")
