"""Around other people's code that sees private data: silence, and chance of its own.

What it prints, warns of or logs tells of the data. Python's own streams, warnings and logging are covered;
what a library writes to a file, from C or in another process is the caller's. A generator that all models
draw from would carry something of one part of the data into the next model: how much the former had drawn.
Nothing here draws from them.

Streams, generators and the mode of a model belong to the whole process. `quiet` lasts until the last thread
within has left it; `alone` lets one thread at a time ask models, each with chance of its own.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from threading import Lock, RLock
from typing import Any

from dalenius import noise

Generators = tuple[tuple[str, str, str, str], ...]
GENERATORS: Generators = (
    ("random", "getstate", "setstate", "seed"),
    ("numpy.random", "get_state", "set_state", "seed"),
    ("torch", "get_rng_state", "set_rng_state", "manual_seed"),
    ("torch.cuda", "get_rng_state_all", "set_rng_state_all", "manual_seed_all"),
)
"""Modules with a generator that all of a process share, and how it is read, written and sown."""
PYTHON = GENERATORS[:2]
"""Those that are not torch's."""
FAILURES = Exception, SystemExit, GeneratorExit
"""What such code may end by, and the text of which is not shown; whoever interrupts it means the caller."""
SEEDS = 2**32
"""Seeds are below this."""


class _Nowhere(io.TextIOBase):
    """A stream that keeps nothing."""

    def write(self, text: str) -> int:
        """As if it were written."""
        return len(text)

    def writable(self) -> bool:
        """It takes everything."""
        return True


class _Silence:
    """What the process shows, hushed while anyone is within."""

    def __init__(self) -> None:
        self._door, self._within, self._undo = Lock(), 0, ExitStack()

    def enter(self) -> None:
        """Hush it, unless it is."""
        with self._door:
            self._within += 1
            if self._within > 1:
                return
            for one in (redirect_stdout(_Nowhere()), redirect_stderr(_Nowhere()), warnings.catch_warnings()):
                self._undo.enter_context(one)
            warnings.simplefilter("ignore")
            self._undo.callback(logging.disable, logging.root.manager.disable)
            logging.disable(sys.maxsize)

    def leave(self) -> None:
        """As it was, where nobody else is within."""
        with self._door:
            self._within -= 1
            if not self._within:
                self._undo.close()


_SILENCE, _ONE = _Silence(), RLock()


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is printed or logged and nobody is warned."""
    _SILENCE.enter()
    try:
        yield
    finally:
        _SILENCE.leave()


@contextmanager
def alone() -> Iterator[None]:
    """No other thread is within meanwhile: it waits."""
    with _ONE:
        yield


def _renewed() -> None:
    """In a forked process nobody else is within, whoever was where it came from."""
    global _ONE
    _ONE = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renewed)


def seed_generators(seed: int, among: Generators = GENERATORS) -> None:
    """Seed the generators that libraries share, those of them that are loaded.

    Args:
        seed: A number below `SEEDS`.
        among: The generators to seed.
    """
    for name, _, _, sow in _loaded(among):
        getattr(sys.modules[name], sow)(seed)


@contextmanager
def kept_generators(among: Generators = GENERATORS) -> Iterator[None]:
    """Leave the generators that libraries share as they were.

    Args:
        among: The generators to leave.
    """
    there = _loaded(among)
    states: list[Any] = [getattr(sys.modules[name], read)() for name, read, _, _ in there]
    try:
        yield
    finally:
        for (name, _, write, _), state in zip(there, states, strict=True):
            getattr(sys.modules[name], write)(state)


@contextmanager
def chance(seed: int | None = None) -> Iterator[None]:
    """Let generators that libraries share begin at `seed`, or at a fresh one; restore them afterwards."""
    with kept_generators():
        seed_generators(int(noise.uniform(SEEDS, 1)[0]) if seed is None else seed)
        yield


def _loaded(among: Generators) -> list[tuple[str, str, str, str]]:
    """Return the generators of loaded modules; that of a GPU, if it was used."""
    return [one for one in among if _awake(one[0])]


def _awake(name: str) -> bool:
    """Return whether a module is loaded; that of a GPU, whether it was used."""
    module = sys.modules.get(name)
    return module is not None and (name != "torch.cuda" or module.is_initialized())
