"""`Loader`: the batches of a run, drawn by its sampler and handed out in chunks that fit memory.

Every logical batch is one step, also an empty one, for which a chunk of zeros that counts nothing is handed
out. How many rows a batch has is nobody's business: it is not logged, and there is no `len`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.criteria import OwnMeans
from dalenius.learn.rehearsal import Rehearsal, without_dropout
from dalenius.learn.room import SIZES, Room

if TYPE_CHECKING:
    from dalenius.learn.private import Private


class Loader:
    """Iterate over it once: it ends with the last step of the run."""

    def __init__(self, private: Private) -> None:
        self._private, self._turn = private, 0

    def __iter__(self) -> Iterator[Any]:
        private = self._private
        self._turn += 1
        private.ready()
        with OwnMeans():
            if private.rehearses:
                yield from self._rehearsed()
            private.begin()
            while private.steps < private.sampling.steps:
                yield from self._chunks(private.drawn())

    def _rehearsed(self) -> Iterator[Any]:
        private = self._private
        private.rehearsal, before = Rehearsal(private.model, private.processes), private.settings()
        with without_dropout(private.model):
            for chosen in private.rehearsal.passes:
                private.hand_out(None, last=True)
                yield private.supply.made_up(chosen)
                self._used()
            if private.room is not None:
                yield from self._measured(private.room)
        if private.settings() != before:
            raise NotSound(
                "The loop changed settings of the optimizer without a step: it would change them as often as "
                "there are chunks, which tells how large batches are.",
                remedy="Change them, or step a scheduler, where private.steps has grown.",
            )
        private.rehearsed()

    def _measured(self, room: Room) -> Iterator[Any]:
        """Made-up batches, to see what the loop's passes take."""
        for size in SIZES:
            self._private.hand_out(None, last=True)
            with room.measured(size):
                yield self._private.supply.made_up(range(size))
            self._used()

    def _chunks(self, rows: NDArray[np.int64]) -> Iterator[Any]:
        """Parts of about one size; a unit's rows stay together, and a row it lacks is a blank one.

        Every process has as many, of which some may be empty.
        """
        private, processes = self._private, self._private.processes
        count = max(1, -(-len(rows) // (private.chunk * processes.count)))
        parts = np.array_split(rows, count * processes.count)[count * processes.rank :][:count]
        for number, part in enumerate(parts):
            private.hand_out(part, last=number == count - 1)
            turn = self._turn
            yield private.supply.rows(part)
            self._used()
            self._alone(turn)

    def _used(self) -> None:
        if self._private.waiting:
            raise InvalidArgument(
                "The loop asked for the next batch without a step on this one.",
                remedy="Call private.step() once for every batch that private.loader gives.",
            )

    def _alone(self, turn: int) -> None:
        """Two loops at once would add a row to one sum twice."""
        if self._turn != turn:
            raise InvalidArgument(
                "Another loop over this loader was begun before this one ended.",
                remedy="Iterate over private.loader in one place at a time.",
            )
