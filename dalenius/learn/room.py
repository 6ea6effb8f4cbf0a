"""`Room`: how many examples a GPU has room for at a time, measured on the first chunks of a run.

Passes over two and over eight blank examples, which count nothing, say what an example takes, and what a pass
takes whatever it holds. Most of what is left then is filled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from dalenius.learn.recording import sizes_up

SIZES = 2, 8
"""Examples of the passes that are measured."""
FILLED = 0.75
"""The share of free memory that is used: no two passes are alike."""


class Room:
    """On one device."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._peaks = device, dict.fromkeys(SIZES, 0)
        self.measuring = False

    @contextmanager
    def measured(self, examples: int) -> Iterator[None]:
        """While a pass over so many examples is made."""
        torch.cuda.synchronize(self._device)
        before = torch.cuda.memory_allocated(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        self.measuring = True
        try:
            yield
        finally:
            self.measuring = False
        self._peaks[examples] = torch.cuda.max_memory_allocated(self._device) - before

    def examples(self, most: int) -> int:
        """How many fit, and at most so many."""
        free = torch.cuda.mem_get_info(self._device)[0]
        held = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        return fitting(self._peaks, FILLED * (free + held), most)


def fitting(peaks: dict[int, int], free: float, most: int) -> int:
    """By what passes over few examples took: one of the sizes that recordings have."""
    (few, at_few), (more, at_more) = sorted(peaks.items())
    each = max(1.0, (at_more - at_few) / (more - few))
    found = max(1, min(int((free - max(0.0, at_few - few * each)) / each), most))
    return next(one for one in range(found, 0, -1) if sizes_up(one) == one)
