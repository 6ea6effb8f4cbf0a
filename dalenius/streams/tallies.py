"""What a counter keeps of the data, and what it makes of it with the noise of each step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Values = NDArray[Any]


class Tally(ABC):
    """The data of a counter of `width` numbers."""

    def __init__(self, width: int) -> None:
        self.width = width

    @abstractmethod
    def series(self, steps: Ints, drawn: Ints) -> Values:
        """Take in steps, one row each, with their noise; what is released at each of them."""

    @abstractmethod
    def plain(self) -> Any:
        """What it holds, for JSON."""

    @abstractmethod
    def restore(self, plain: Any) -> None:
        """Hold what `plain` gave."""


class Total(Tally):
    """Everything so far, in whole numbers of any size."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self._sums = [0] * width

    def series(self, steps: Ints, drawn: Ints) -> Values:
        """Sums with the noise of their steps."""
        within = np.cumsum(steps, axis=0)
        found: Values = within + drawn
        if max(map(abs, self._sums)) >= 1 << 61:
            found = found.astype(object)
        found = found + np.array(self._sums, dtype=found.dtype)
        self._sums = [total + more for total, more in zip(self._sums, within[-1].tolist(), strict=True)]
        return found

    def plain(self) -> Any:
        """The sums."""
        return self._sums

    def restore(self, plain: Any) -> None:
        """The sums."""
        self._sums = [int(total) for total in plain]


class Recent(Tally):
    """The last `window` steps, each kept until it has passed."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__(width)
        self._sums, self._window = np.zeros(width, np.int64), window
        self._steps: deque[Ints] = deque([np.zeros(width, np.int64)] * window, maxlen=window)

    def series(self, steps: Ints, drawn: Ints) -> Values:
        """Sums of the window with the noise of their steps."""
        found = np.empty_like(drawn)
        for row, step in enumerate(steps):
            self._sums = self._sums + step - self._steps[0]
            self._steps.append(step.copy())
            found[row] = self._sums + drawn[row]
        return found

    def plain(self) -> Any:
        """The steps."""
        return [step.tolist() for step in self._steps]

    def restore(self, plain: Any) -> None:
        """The steps, and their sum."""
        self._steps = deque((np.array(step, np.int64) for step in plain), maxlen=self._window)
        self._sums = np.sum(self._steps, axis=0)


class Faded(Tally):
    """Steps with noise, each worth `decay` of what it was a step ago: nothing else is kept of the data."""

    def __init__(self, width: int, decay: float, shift: int) -> None:
        super().__init__(width)
        self._decay, self._shift, self._held = decay, shift, np.zeros(width)

    def series(self, steps: Ints, drawn: Ints) -> Values:
        """Noise is added in whole numbers; what is made of such sums is free, floats or not."""
        from scipy.signal import lfilter

        large = int(np.abs(steps).max()) << self._shift >= 1 << 62
        exact: Values = (steps.astype(object) if large else steps) * (1 << self._shift) + drawn
        noisy = exact.astype(np.float64) * 2.0**-self._shift
        found: Values = lfilter([1.0], [1.0, -self._decay], noisy, axis=0, zi=self._decay * self._held[None])[
            0
        ]
        self._held = found[-1]
        return found

    def plain(self) -> Any:
        """The faded sums."""
        return self._held.tolist()

    def restore(self, plain: Any) -> None:
        """The faded sums."""
        self._held = np.array(plain, np.float64)
