"""Plain runs of a loop, without the library, that show whether it mixes.

A training loop is per example if what a row adds to a step does not depend on the other rows. `Plain` runs
the loop with SGD on three batches. A row of the last batch is replaced by another row, once among one company
of rows and once among a second company. If the loop is a sum or a mean over examples, the replacement moves
the parameters by the same vector in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import default_collate

from tests.learn.mixing.loops import MixingLoop
from tests.learn.runs import flat


class Plain:
    """A stand-in for `Private` without privacy: it records how far every batch moves the parameters."""

    def __init__(self, loop: MixingLoop, data: Any, batches: Sequence[Sequence[int]]) -> None:
        self.model = loop.model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.moves: list[Tensor] = []
        self._data, self._batches = data, batches
        self._collate = loop.asked.get("collate", default_collate)

    @property
    def loader(self) -> Iterator[Any]:
        """The batches, in order. A batch without a step moves nothing."""
        for rows in self._batches:
            self.moves.append(torch.zeros_like(flat(self.model)))
            if isinstance(self._data, tuple):
                yield tuple(column[torch.tensor(rows)] for column in self._data)
            else:
                yield self._collate([self._data[row] for row in rows])

    def zero_grad(self) -> None:
        """Forget the gradients of the last batch."""
        self.optimizer.zero_grad()

    def step(self) -> None:
        """Record the move of an SGD step, and take the step back."""
        before = [parameter.detach().clone() for parameter in self.model.parameters()]
        start = flat(self.model)
        self.optimizer.step()
        self.moves[-1] = flat(self.model) - start
        with torch.no_grad():
            for parameter, value in zip(self.model.parameters(), before, strict=True):
                parameter.copy_(value)


@contextmanager
def double_precision() -> Iterator[None]:
    """Make float64 the default, so that rounding is far below any mixing."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def mixes(loop: MixingLoop, *, trials: int = 40) -> bool:
    """Return whether, in one of the trials, a row's effect on the last step depends on its company."""
    with double_precision(), loop.setting(), torch.random.fork_rng(devices=[]):
        return any(gap(loop, trial) > 1e-7 for trial in range(trials))


def gap(loop: MixingLoop, trial: int) -> float:
    """Return how far apart the effects of one replacement are in two companies, relative to the moves.

    The smaller of two gaps counts: one if the loop is read as a sum, the other if it is read as a mean.
    """
    data = loop.data()
    count = len(data[0]) if isinstance(data, tuple) else len(data)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(trial)).tolist()
    (old, new), earlier, others = order[:2], order[2:18], order[18:]
    sums, means, scale = [], [], 1e-12
    for company, size in enumerate(loop.sizes):
        before = [earlier[start : start + 4] for start in (8 * company, 8 * company + 4)]
        rows = others[20 * company :][:size]
        # Only a loop that depends on the size of the batch may be shown to depend on the order of its rows.
        place = 1 if loop.sizes[0] == loop.sizes[1] else 1 - company
        moves = []
        for row in (old, new):
            torch.manual_seed(trial)
            plain = Plain(loop, data, [*before, [*rows[:place], row, *rows[place:]]])
            loop.run(plain)
            moves.append(plain.moves[-1])
        scale = max(scale, *(float(move.norm()) for move in moves))
        sums.append(moves[1] - moves[0])
        means.append((moves[1] - moves[0]) * (size + 1))
    smaller = min(float((effects[1] - effects[0]).norm()) for effects in (sums, means))
    return smaller / scale if torch.isfinite(torch.tensor([smaller, scale])).all() else 0.0
