"""Seeds of single rows: what is random in reading a row depends on that row and on the step alone.

Augmentation draws from generators that a whole process shares. Seeded row by row, it does not depend on the
other rows of a batch, their order, or the number of worker processes. A data set with a generator of its own
is not covered, nor are the generators of a GPU.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

GENERATORS: tuple[tuple[Any, str, str, str], ...] = (
    (random, "getstate", "setstate", "seed"),
    (np.random, "get_state", "set_state", "seed"),
    (torch.default_generator, "get_state", "set_state", "manual_seed"),
)
"""Generators that data sets draw from, and how each is read, written and seeded."""
SEED_BYTES = 4
"""The length of seeds, which NumPy limits."""


def row_seed(seed: int, row: int, slot: int) -> int:
    """Return the seed of a row.

    Args:
        seed: the secret seed of the step.
        row: the number of the row in the data set.
        slot: which of the rows of its example it is, so that several views of a row differ.
    """
    digest = blake2b(f"{seed} {row} {slot}".encode(), digest_size=SEED_BYTES).digest()
    return int.from_bytes(digest, "little")


def seed_generators(seed: int) -> None:
    """Seed the shared generators of Python, NumPy and torch on the CPU."""
    for generator, _, _, name in GENERATORS:
        getattr(generator, name)(seed)


@contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the shared generators as they were."""
    states = [getattr(generator, name)() for generator, name, _, _ in GENERATORS]
    try:
        yield
    finally:
        for (generator, _, name, _), state in zip(GENERATORS, states, strict=True):
            getattr(generator, name)(state)
