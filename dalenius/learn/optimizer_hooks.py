"""Hooks of an optimizer, which run inside of its step: they may use weights, and nothing private.

The step itself is not watched, as all that it is given is noised. A hook is the user's code, and can refer to
a batch. So each hook is run watched, and what it leaves is looked at: weights, gradients and the optimizer's
state must be public afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import optimizer as torch_optimizer

from dalenius.errors import NotSound

Hook = Callable[..., Any]


@contextmanager
def watched_hooks(
    optimizer: torch.optim.Optimizer,
    watched: Callable[[], AbstractContextManager[None]],
    is_private: Callable[[Tensor], bool],
) -> Iterator[None]:
    """Watch the hooks of steps of an optimizer that are made inside.

    Args:
        optimizer: The optimizer.
        watched: Returns a context in which functions of torch are watched.
        is_private: Whether a tensor depends on private examples.

    Raises:
        NotSound: A hook left something private in weights, gradients or the optimizer's state.
    """

    def run(hook: Hook) -> Hook:
        def checked(*args: Any, **kwargs: Any) -> Any:
            with watched():
                result = hook(*args, **kwargs)
            if any(map(is_private, _moved(optimizer))):
                raise NotSound(
                    f"A hook of the optimizer, {getattr(hook, '__name__', 'a function')}, writes private "
                    "examples into weights, gradients or the optimizer's state, where they have no noise.",
                    remedy="Use weights and public values alone in hooks of the optimizer.",
                )
            return result

        return checked

    tables = [table for table in _tables(optimizer) if table]
    before = [dict(table) for table in tables]
    for table in tables:
        table.update({key: run(hook) for key, hook in table.items() if not _is_own(hook)})
    try:
        yield
    finally:
        for table, hooks in zip(tables, before, strict=True):
            table.update({key: hooks[key] for key in table if key in hooks})


def _tables(optimizer: torch.optim.Optimizer) -> list[MutableMapping[int, Hook]]:
    own = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    return [
        *own,
        torch_optimizer._global_optimizer_pre_hooks,
        torch_optimizer._global_optimizer_post_hooks,
    ]


def _is_own(hook: Hook) -> bool:
    """Return whether a hook is one of this library."""
    return str(getattr(hook, "__module__", "")).startswith("dalenius.")


def _moved(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    """Give all tensors that the optimizer's next step uses."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
    for state in optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, Tensor))
