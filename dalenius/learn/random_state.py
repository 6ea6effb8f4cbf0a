"""The state of torch's random generator in a private pass.

How far the generator has moved on tells how many examples there were, and a state that is put back would give
several examples the same numbers. In a watched loop the state is therefore a private value; while the loss of
one example runs, it can neither be read nor set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.dataflow.provenance import user_line

_random: Any = torch.random


class _Watched(torch.Generator):
    """Stands for torch's generator, and hands its state out as a private tensor.

    Args:
        real: torch's generator.
        mark: Notes that a tensor is private.
        check: Refuses a state that must not be put back.
    """

    real: torch.Generator
    mark: Callable[[Tensor], None]
    check: Callable[[Tensor], None]

    def get_state(self) -> Tensor:
        """Return the state, as a private tensor."""
        state = self.real.get_state()
        self.mark(state)
        return state

    def set_state(self, new_state: Tensor) -> torch.Generator:
        """Set the state."""
        self.check(new_state)
        return self.real.set_state(new_state)

    def manual_seed(self, seed: int) -> torch.Generator:
        """Begin anew from a seed."""
        return self.real.manual_seed(seed)

    def seed(self) -> int:
        """Begin anew from a seed of the operating system's."""
        return self.real.seed()

    def initial_seed(self) -> int:
        """Return the seed."""
        return self.real.initial_seed()


class _Closed(_Watched):
    """Stands for torch's generator where no state may be read or set."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("get_state", "set_state", "manual_seed", "seed"):
            return self._refuse
        return super().__getattribute__(name)

    def _refuse(self, *_: Any) -> NoReturn:
        raise NotSound(
            f"The loss of one example reads or sets the state of torch's random generator{user_line()}: "
            "which numbers an example gets would depend on the examples before it.",
            remedy="Leave seeds to the run, whose key seeds every step.",
        )


@contextmanager
def watched_generator(mark: Callable[[Tensor], None], check: Callable[[Tensor], None]) -> Iterator[None]:
    """Hand the state of torch's generator out as a private tensor inside.

    Args:
        mark: Notes that a tensor is private.
        check: Refuses a state that must not be put back.
    """
    with _standing_in(_Watched, mark, check):
        yield


@contextmanager
def closed_generator() -> Iterator[None]:
    """Refuse to read or set the state of torch's generator inside."""
    with _standing_in(_Closed, lambda _: None, lambda _: None):
        yield


@contextmanager
def _standing_in(
    kind: type[_Watched], mark: Callable[[Tensor], None], check: Callable[[Tensor], None]
) -> Iterator[None]:
    before = torch.default_generator
    stand_in = kind()
    stand_in.real = before.real if isinstance(before, _Watched) else before
    stand_in.mark, stand_in.check = mark, check
    _random.default_generator = torch.default_generator = stand_in
    try:
        yield
    finally:
        _random.default_generator = torch.default_generator = before
