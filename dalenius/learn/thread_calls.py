"""Threads that are begun inside of a private loop: they must not compute with private tensors.

A torch function mode watches one thread. What another one computes would come back without a state, and be
taken for public. While a pass is watched, functions that are handed to threads run under a mode of their own,
which refuses private tensors and leaves everything else alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from threading import Thread
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from dalenius.errors import NotSound
from dalenius.learn.marks import found_in, is_of_example

_thread: Any = Thread
_pool: Any = ThreadPoolExecutor
_start, _submit = _thread.start, _pool.submit
_users = 0


class _Guard(TorchFunctionMode):
    """Refuses every function of private tensors, in a thread that is not watched.

    Args:
        is_private: Returns whether a tensor depends on private examples, or is as long as a batch of them.
    """

    def __init__(self, is_private: Callable[[Tensor], bool]) -> None:
        super().__init__()
        self._is_private = is_private

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of public tensors."""
        kwargs = kwargs or {}
        if any(self._is_private(tensor) or is_of_example(tensor) for tensor in found_in(args, kwargs)):
            raise NotSound(
                "Another thread computes with private examples: its operations are not watched, so that it "
                "could mix them.",
                remedy="Work on batches in the thread that iterates over private.loader.",
            )
        return func(*args, **kwargs)


@contextmanager
def guarded_threads(is_private: Callable[[Tensor], bool]) -> Iterator[None]:
    """Refuse private tensors in threads that are begun, or given work, inside.

    Args:
        is_private: Returns whether a tensor depends on private examples, or is as long as a batch of them.
    """

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with _Guard(is_private):
                return function(*args, **kwargs)

        return run

    def start(thread: Any) -> None:
        # An attribute of the thread hides its method.
        thread.run = guarded(thread.run)
        _start(thread)

    def submit(pool: Any, function: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        return _submit(pool, guarded(function), *args, **more)

    global _users
    if not _users:
        _thread.start, _pool.submit = start, submit
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            _thread.start, _pool.submit = _start, _submit
