"""`Loader`: the batches of a run, drawn by its sampler and handed out in chunks that fit memory.

    for epoch in range(10):                     # Private(…, epochs=10)
        for x, y in private.loader: …
    for x, y in private.loader: …               # Private(…, steps=1000)
    for x, y in private.batches(): …            # the whole run, however its length was given

One rule: with `epochs=E` an iteration over the loader is one epoch, and the E-th ends the run; with `steps=`
an iteration is the whole run. An iteration that is broken off is continued by the next one, which ends where
the first would have. After the last step a further iteration is refused.

Every logical batch is one step, also an empty one: a chunk of fewer than two rows is filled up with rows of
zeros, which count nothing. How many rows a batch has is private; into how many chunks it is cut is not, and
follows from `public_size`. Which chunk an example is in depends on no other example (`chunk_assignment`). The
body of a loop may run more often than `len(private.loader)`, which counts steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.attempts import not_copied
from dalenius.learn.random_state import kept_outside
from dalenius.learn.room import SIZES
from dalenius.learn.stretches import Stretches

if TYPE_CHECKING:
    from dalenius.learn.private import Private

FEWEST = 2
"""The fewest examples of a chunk. Blank ones fill it up: no analysis depends on how many there are."""


class Loader:
    """The batches of a run: an iteration is one epoch, or the whole run where its length was given in steps.

    `len` is the number of steps of an iteration, which is public. The body of the loop runs once for every
    chunk of a batch, so it may run more often than that.

    Args:
        private: The run.
        passes: How its steps are divided into iterations.
    """

    def __init__(self, private: Private, passes: Stretches) -> None:
        self._private, self._passes, self._turn = private, passes, 0
        self._pass: tuple[int, int] | None = None

    def __reduce__(self) -> NoReturn:
        raise not_copied()

    def __len__(self) -> int:
        """Return the number of steps of the iteration under way, or else of the next one."""
        last = self._private.sampling.steps - 1
        start, end = self._pass or self._passes.around(min(self._private.steps, last))
        return end - start

    def __repr__(self) -> str:
        length = "the whole run" if self._passes.length == "run" else "one epoch"
        made, steps = self._private.steps, self._private.sampling.steps
        return f"Loader({made} of {steps} steps made; an iteration is {length}, {len(self)} steps)"

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(self._passes)

    def rest(self) -> Iterator[Any]:
        """Return an iterator over all batches up to the end of the run."""
        return self._iterate(Stretches(self._passes.sampling, "run"))

    @property
    def epoch(self) -> int:
        """The number of iterations that were made to their end."""
        private, sampling = self._private, self._private.sampling
        if self._passes.length == "run":
            return int(private.steps == sampling.steps)
        done = sampling.epoch_of(private.steps)
        return done + (private.steps == sampling.steps and sampling.epoch_start(done) < sampling.steps)

    def _iterate(self, passes: Stretches) -> Iterator[Any]:
        private = self._private
        private.check_outside_step("A loop over private.loader was begun")
        if private.steps >= private.sampling.steps:
            raise InvalidArgument(
                f"The run has made all of its {private.sampling.steps} steps: there are no more batches.",
                remedy="Iterate as often as there are epochs (once, where steps were given), or begin a run "
                "of more epochs, which is charged by itself.",
            )
        self._turn += 1
        turn, self._pass = self._turn, passes.around(private.steps)
        end = self._pass[1]
        private.ready()
        try:
            with kept_outside(), private.model.looped(), private.supply:
                private.model.check_watching()
                with private.model.unwatched():
                    private.begin()
                while private.steps < end:
                    with private.model.unwatched():
                        rows = private.drawn()
                    yield from self._measured()
                    yield from self._chunks(rows)
        finally:
            self._pass = None if self._turn == turn else self._pass
            if self._turn == turn:
                # What is called from now on is not watched: the batch at hand can no longer be stepped on.
                private.waiting = False

    def _measured(self) -> Iterator[Any]:
        """Hand out blank examples, which count nothing, to see what the first passes of a run take on a GPU.

        Real examples would have to be picked by their rank in the batch, which others change.
        """
        private, room = self._private, self._private.room
        if room is None:
            return
        nobody = private.no_rows()
        for examples in SIZES:
            with room.measured(examples):
                yield from self._handed_out(nobody, at_least=examples)
        with private.model.unwatched():
            private.fit_chunk()

    def _chunks(self, rows: NDArray[np.int64]) -> Iterator[Any]:
        """Hand out the chunks of a batch. Rows of a unit stay together, and a row that it lacks is blank.

        How many there are follows from public facts. Every process has as many, of which some may be empty.
        """
        with self._private.model.unwatched():
            parts = self._private.chunks_of(rows)
        for number, part in enumerate(parts):
            later = parts[number + 1] if number + 1 < len(parts) else None
            yield from self._handed_out(part, later=later, last=later is None)

    def _handed_out(
        self,
        part: NDArray[np.int64],
        *,
        at_least: int = FEWEST,
        later: NDArray[np.int64] | None = None,
        last: bool = False,
    ) -> Iterator[Any]:
        """Hand out one chunk, and check that the loop has made a step on it.

        Args:
            part: The numbers of its rows.
            at_least: The fewest examples to hand out. Blank ones, which count nothing, fill it up.
            later: The rows of the next chunk, which may be read ahead.
            last: Whether it is the last chunk of its batch.
        """
        private = self._private
        with private.model.unwatched():
            before = private.optimizer_settings()
            batch, _ = private.supply.rows(part, at_least=at_least)
            if later is not None:
                private.supply.ahead(later)
            private.hand_out(batch, part, at_least=at_least, last=last)
        turn = self._turn
        yield batch
        private.model.check_watching()
        with private.model.unwatched():
            self._used()
            self._alone(turn)
            if not last and private.optimizer_settings() != before:
                raise NotSound(
                    "The loop changed settings of the optimizer without a step: it would change them "
                    "once for every chunk of a batch.",
                    remedy="Change them, or step a scheduler, where private.steps has grown.",
                )

    def _used(self) -> None:
        self._private.check_outside_step("The next batch was asked for")
        if self._private.waiting:
            raise InvalidArgument(
                "The loop asked for the next batch without a step on this one.",
                remedy="Call private.step() once for every batch that private.loader gives.",
            )

    def _alone(self, turn: int) -> None:
        """Refuse two loops at once, which would add a row to one sum twice."""
        if self._turn != turn:
            raise InvalidArgument(
                "Another loop over this loader was begun before this one ended.",
                remedy="Iterate over private.loader in one place at a time.",
            )
