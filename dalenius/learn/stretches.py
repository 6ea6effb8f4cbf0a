"""`Stretches`: a run's steps, divided into passes over its loader, or into what is paid for at once."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.errors import InvalidArgument
from dalenius.learn.sampling import Sampling
from dalenius.privacy import numbers

Length = int | str
"""A number of steps, "epoch" or "run"."""


@dataclass(frozen=True)
class Stretches:
    """Consecutive stretches of the steps of a sampling, all of one length but for the last.

    Attributes:
        sampling: The sampling whose steps are divided.
        length: The number of steps of a stretch; "epoch" for the epochs of the sampling; "run" for all steps.
    """

    sampling: Sampling
    length: Length

    def around(self, step: int) -> tuple[int, int]:
        """Return the first step of the stretch that a step lies in, and the first step after that stretch."""
        steps = self.sampling.steps
        if self.length == "run":
            return 0, steps
        if self.length == "epoch":
            epoch = self.sampling.epoch_of(step)
            return self.sampling.epoch_start(epoch), self.sampling.epoch_start(epoch + 1)
        length = int(self.length)
        start = step // length * length
        return start, min(steps, start + length)

    def __str__(self) -> str:
        return f"{self.length} steps" if isinstance(self.length, int) else f"one {self.length}"


def read_length(pay: Length) -> Length:
    """Return the argument `pay` of `Private`, or raise InvalidArgument."""
    if pay in ("run", "epoch"):
        return pay
    if isinstance(pay, str):
        raise InvalidArgument(
            'pay is "run", "epoch" or a number of steps.',
            remedy='Pass pay="run", "epoch" or such as pay=100.',
        )
    return numbers.count(pay, "pay")
