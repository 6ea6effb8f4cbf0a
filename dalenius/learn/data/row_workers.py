"""Readers of rows: in this process, or by worker processes that read while the model trains.

Both give the same tensors. Workers are those of torch's DataLoader. A row that fails in a worker becomes
zeros there, as it would here, and what a worker writes in an error is dropped.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.learn.data.row_collation import Leaves, RowCollation, joined
from dalenius.learn.quiet import FAILURES, kept_generators, seed_generators

Key = tuple[int, int]
"""The number of a row, and its seed."""
Finish = Callable[[], Leaves]
"""Wait for rows that are being read, and return their tensors."""
PIECES = 2
"""Pieces that a worker reads of a batch: fewer would wait for the slowest, more cost more messages."""
TRIAL: Key = (-1, 0)
"""In place of a row: whether the example that the form was read from can be read."""


class RowSource(Dataset[Leaves]):
    """Rows of a data set, brought to one form.

    Args:
        dataset: a data set with `__getitem__`.
        collation: how rows are brought to the form.
        example: the declared row that the form was read from; None if it was the first of the data set.
    """

    def __init__(self, dataset: Any, collation: RowCollation, example: Any = None) -> None:
        self.dataset, self.collation, self._example = dataset, collation, example

    def __getitems__(self, keys: list[Key]) -> Leaves:
        """Return the tensors of these rows, each read with its seed; torch's workers call this."""
        if keys == [TRIAL]:
            return [torch.tensor(self._readable())]
        batch = self.collation.blanks(len(keys))
        for place, (row, seed) in enumerate(keys):
            seed_generators(seed)
            self.collation.write(self.dataset, row, batch, place)
        return batch

    def _readable(self) -> bool:
        try:
            self.collation.leaves(self.dataset[0] if self._example is None else self._example)
        except FAILURES:
            return False
        return True


class RowReader(ABC):
    """Something that reads rows of a source, one batch at a time."""

    @abstractmethod
    def start(self, keys: list[Key]) -> Finish:
        """Begin to read at least one row. What was begun before and not waited for is dropped."""

    @abstractmethod
    def close(self) -> None:
        """Stop reading."""


class LocalReader(RowReader):
    """Reads rows in this process, when they are waited for. Shared generators stay as they are."""

    def __init__(self, source: RowSource) -> None:
        self._source = source

    def start(self, keys: list[Key]) -> Finish:
        """Remember which rows are wanted."""

        def finish() -> Leaves:
            with kept_generators():
                return self._source.__getitems__(keys)

        return finish

    def close(self) -> None:
        """Do nothing: rows are read when they are waited for, and not before."""


class WorkerReader(RowReader):
    """Reads rows by worker processes, which begin at once.

    Args:
        source: the rows.
        workers: how many processes.
    """

    def __init__(self, source: RowSource, workers: int) -> None:
        self._source, self._workers, self._owner = source, workers, 0
        self._pieces: list[list[Key]] = []
        self._loader: DataLoader[Leaves] | None = None
        self._inherited: DataLoader[Leaves] | None = None

    def start(self, keys: list[Key]) -> Finish:
        """Hand rows to the workers, which are started where there are none."""
        if self._loader is None or self._owner != os.getpid():
            self._open()
        size = -(-len(keys) // (self._workers * PIECES))
        try:
            pieces = self._sent([keys[i : i + size] for i in range(0, len(keys), size)])
        except FAILURES:
            self.close()
            raise QueryFailed() from None
        return lambda: joined(self._received(pieces))

    def _open(self) -> None:
        if self._loader is not None:
            # In a forked process: letting go of the loader would end the workers of the parent.
            self._inherited = self._loader
        self._owner, self._pieces = os.getpid(), []
        self._loader = DataLoader(
            self._source,
            batch_sampler=self._pieces,
            num_workers=self._workers,
            collate_fn=_unchanged,
            persistent_workers=True,
            prefetch_factor=PIECES,
            # The shared generator, which dropout draws from, stays as it is.
            generator=torch.Generator(),
        )
        try:
            trials = self._sent([[TRIAL]] * self._workers)
        except FAILURES:
            self.close()
            raise InvalidArgument(
                "Worker processes could not be started.",
                remedy="Pass num_workers=0 and prefetch=False, or a data set and a collate function that can "
                "be pickled.",
            ) from None
        if not all(bool(readable) for (readable,) in self._received(trials)):
            self.close()
            raise InvalidArgument(
                "A worker process cannot read rows that this process can.",
                remedy="Pass num_workers=0 and prefetch=False, or open files and devices in __getitem__ and "
                "not before.",
            )

    def _sent(self, pieces: list[list[Key]]) -> Iterator[Leaves]:
        """Send pieces to the workers. The loader reads its sampler anew for each iteration."""
        assert self._loader is not None
        self._pieces[:] = pieces
        return iter(self._loader)

    def _received(self, pieces: Iterator[Leaves]) -> list[Leaves]:
        try:
            return list(pieces)
        except FAILURES:
            # What a worker says of its end may be data.
            self.close()
            raise QueryFailed() from None

    def close(self) -> None:
        """End the workers. They are started again when rows are asked for."""
        self._loader = None


def _unchanged(leaves: Leaves) -> Leaves:
    return leaves
