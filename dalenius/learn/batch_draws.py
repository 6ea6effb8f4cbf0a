"""`Draws`: the rows of every step, and the seed of what is random in a model, from the key of the run."""

from __future__ import annotations

from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from dalenius.errors import NotSound
from dalenius.learn.random_state import own_seed, run_seed
from dalenius.learn.sampling import Sampling
from dalenius.learn.several import Processes
from dalenius.learn.state import chance, set_chance
from dalenius.noise.stream import StreamKey

SAMPLE = 0
"""The first number of the paths of streams that batches are drawn from."""
CHANCE = 7
"""The first number of the paths of streams that seed torch's generators, a step each."""


class Draws:
    """Batches of a sampling, the same for the same key, step and attempt.

    Args:
        sampling: How batches are drawn.
        processes: The processes of the run: all draw the same rows, and each has a seed of its own.
    """

    _seed: ClassVar[int | None] = None
    """The last seed of torch's generator that a run of this process has set."""

    def __init__(self, sampling: Sampling, processes: Processes) -> None:
        self._sampling, self._processes = sampling, processes
        self.random_state: Any = None
        """The state of torch's generators before the step at hand; None between steps."""
        self.digest = 0
        """A checksum of the rows of the step at hand, which processes compare."""

    def restore(self) -> None:
        """Put torch's generators back to where they were before the step at hand."""
        if self.random_state is not None:
            set_chance(self.random_state)

    def check_seed(self) -> None:
        """Refuse a loop that seeded torch's generator: how many numbers it draws depends on the batch."""
        if Draws._seed is not None and run_seed() != Draws._seed:
            raise NotSound(
                "The loop seeded torch's generator: which number an example gets would depend on how many "
                "others are in the batch, and be known to whoever knows the seed.",
                remedy="Leave out torch.manual_seed in the loop: the key of the run seeds every step.",
            )

    def rows(self, key: StreamKey, step: int, attempt: int) -> NDArray[np.int64]:
        """Return the rows of an attempt at a step, and seed torch's generators for it.

        Args:
            key: The key of the run.
            step: The number of the step, from 0.
            attempt: The number of the attempt at it, from 0. A further attempt has a batch of its own.
        """
        self.random_state = chance()
        # What is random in the model, such as dropout, is as secret as the sample.
        own = (self._processes.rank,) if self._processes.rank else ()
        torch.manual_seed(key.stream(CHANCE, step, attempt, *own).integer(63))
        own_seed()
        Draws._seed = run_seed()
        period = self._sampling.period(step)
        again = attempt if self._sampling.redrawn else 0
        path = (SAMPLE, period, again, step) if again else (SAMPLE, period)
        rows = self._sampling.batch(step, key.stream(*path))
        self.digest = crc32(rows.tobytes())
        return rows
