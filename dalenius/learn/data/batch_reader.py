"""`BatchReader`: batches of a data set whose shapes are public.

Rows of plain tensors are taken as they are. Rows of any other data set are read, collated and padded one at
a time, here or by worker processes, and put together afterwards. Which rows are in a batch changes nothing
but which rows are in it: not the tensors of the others, not a shape, not an error.

What a data set or a collate function prints, logs or warns of by itself is the caller's to keep private.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.data.padding import read_padding
from dalenius.learn.data.row_collation import Collate, Leaves, RowCollation, joined
from dalenius.learn.data.row_seeds import READ_ALONE, row_seed
from dalenius.learn.data.row_workers import Finish, Key, LocalReader, RowReader, RowSource, WorkerReader
from dalenius.learn.data.tensor_rows import TensorRows
from dalenius.learn.quiet import FAILURES, kept_generators
from dalenius.privacy import numbers

MOST_WORKERS = 1024
"""More processes than any machine reads rows with."""


@dataclass(frozen=True, eq=False)
class Pending:
    """Rows that were asked for, or are being read.

    Args:
        rows: their numbers.
        seed: the seed that they are read with.
        finish: what waits for them and returns their tensors.
    """

    rows: NDArray[np.int64]
    seed: int
    finish: Finish = field(default=list)

    def serves(self, wanted: Pending) -> bool:
        """Say whether these are the rows that are wanted."""
        return self.seed == wanted.seed and np.array_equal(self.rows, wanted.rows)


class BatchReader:
    """The batches of a data set, each brought to one public form.

    Args:
        dataset: what `read_dataset` returned.
        collate: called with a list of one row, or None.
        synthetic: declared rows, of which the first declares the form as well; or None.
        views: how many copies of a row a batch holds, each read by itself.
        each: how many rows an example has in a batch: `views` for each of the rows of its unit.
        row: a declared row, the form of which all rows are brought to. Default: the first of `synthetic`,
            else the first of the data set.
        pad_to: public lengths (`padding`). Needed for every data set that is not of plain tensors.
        num_workers: how many processes read rows. Default: 0, rows are read in this one.
        pin_memory: whether batches are copied to pinned memory; without CUDA it has no effect.
        prefetch: whether rows that `ahead` names are read while a batch is in use: plain tensors in a thread,
            other rows by `num_workers` processes, of which there is at least one.

    Raises:
        NotSound: `pad_to` is missing.
        InvalidArgument: An argument is not what its name says.
    """

    def __init__(
        self,
        dataset: Any,
        collate: Collate | None,
        synthetic: Sequence[Any] | None,
        *,
        views: int,
        each: int,
        row: Any = None,
        pad_to: Any = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        prefetch: bool = False,
    ) -> None:
        self._dataset, self._collate, self._views, self._each = dataset, collate, views, each
        self._synthetic = None if synthetic is None else list(synthetic)
        self._declared = row if row is not None or not self._synthetic else self._synthetic[0]
        self._padding = read_padding(pad_to)
        tensors = TensorRows.of(dataset) if collate is None and not pad_to else None
        if tensors is None and pad_to is None:
            raise _lengths_missing(collate)
        self._tensors, self._prefetch = tensors, bool(prefetch)
        self._workers = numbers.count(num_workers, "num_workers", least=0, most=MOST_WORKERS)
        self._pin = bool(pin_memory) and torch.cuda.is_available()
        self._reader: RowReader | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._pending: Pending | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted of the rows, as sentences for a receipt."""
        if self._tensors is not None:
            return ()
        if self._declared is not None:
            return (READ_ALONE,)
        return (
            "the first row's structure, types and shapes (where pad_to gives no length) are taken as public; "
            "a row of another form is replaced by zeros",
            READ_ALONE,
        )

    # Batches.

    def rows(self, part: NDArray[np.int64], *, at_least: int = 2, seed: int | None = None) -> tuple[Any, int]:
        """Return a batch of these rows, and how many of its rows are real.

        Blank examples, of zeros, follow the real ones where there are fewer than `at_least`. They must count
        nothing; so must a row that a unit lacks, in place of which one of its own is repeated. A real row
        that cannot be read, or is not of the form, is zeros too; it is real, and counts.

        Args:
            part: row numbers, one for each example or a line for each; -1 for a row that a unit lacks.
            at_least: the fewest examples of a batch.
            seed: the secret seed of what is random in reading rows. Default: that of torch's generator.
        """
        real, missing = len(part) * self._each, max(0, at_least - len(part)) * self._each
        wanted = self._wanted(part, seed)
        if self._tensors is not None:
            leaves = self._tensors.filled(wanted.rows, missing) if missing else self._finished(wanted)
            return tuple(self._pinned(leaves)), real
        collation = self._source.collation
        parts = [self._finished(wanted)] if len(part) else []
        if missing or not parts:
            parts.append(collation.blanks(missing))
        return collation.batch(self._pinned(joined(parts))), real

    def _finished(self, wanted: Pending) -> Leaves:
        """Return the tensors of rows, which may have been begun ahead."""
        pending, self._pending = self._pending, None
        if pending is None or not pending.serves(wanted):
            return self._start(wanted)()
        return pending.finish()

    def _pinned(self, leaves: Leaves) -> Leaves:
        return [leaf if leaf.is_cuda else leaf.pin_memory() for leaf in leaves] if self._pin else leaves

    def ahead(self, part: NDArray[np.int64], *, seed: int | None = None) -> None:
        """Begin to read the rows that will be asked for next, where `prefetch` is on.

        If other rows are asked for, or with another seed, what was read is dropped.

        Args:
            part: as for `rows`.
            seed: as for `rows`.
        """
        if self._prefetch and len(part):
            wanted = self._wanted(part, seed)
            self._pending = replace(wanted, finish=self._start(wanted))

    def close(self) -> None:
        """End worker processes and the thread, which are started again when rows are asked for."""
        self._pending = None
        if self._reader is not None:
            self._reader.close()
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
        self._thread = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _wanted(self, part: NDArray[np.int64], seed: int | None) -> Pending:
        lines = part.reshape(len(part), part[:1].size or 1)
        first = np.broadcast_to(lines[:, :1], lines.shape)
        # A unit that lacks a row repeats one of its own, which counts nothing.
        rows = np.where(lines < 0, np.maximum(first, 0), lines).reshape(-1)
        return Pending(np.repeat(rows, self._views), torch.initial_seed() if seed is None else seed)

    def _start(self, wanted: Pending) -> Finish:
        tensors = self._tensors
        if tensors is None:
            return self._rows_reader().start(self._keys(wanted))
        if not self._prefetch:
            return partial(tensors.take, wanted.rows)
        self._thread = self._thread or ThreadPoolExecutor(1, "rows")
        return self._thread.submit(tensors.take, wanted.rows).result

    def _keys(self, wanted: Pending) -> list[Key]:
        return [
            (row, row_seed(wanted.seed, row, place % self._each))
            for place, row in enumerate(wanted.rows.tolist())
        ]

    def _rows_reader(self) -> RowReader:
        if self._reader is None:
            workers = max(self._workers, int(self._prefetch))
            source = self._source
            self._reader = WorkerReader(source, workers) if workers else LocalReader(source)
        return self._reader

    @cached_property
    def _source(self) -> RowSource:
        """The rows, brought to the form of the declared row or of the first."""
        public = self._declared is not None
        with kept_generators():
            collation = RowCollation.of(self._example, self._collate, self._padding, public=public)
        return RowSource(self._dataset, collation, self._declared)

    @cached_property
    def _example(self) -> Any:
        if self._declared is not None:
            return self._declared
        try:
            with kept_generators():
                return self._dataset[0]
        except FAILURES:
            raise InvalidArgument(
                "The first row, whose form all rows are brought to, cannot be read.",
                remedy="Try dataset[0], or pass synthetic=[row], a made-up row of the form of yours.",
            ) from None


def _lengths_missing(collate: Collate | None) -> NotSound:
    """Return the refusal of rows that may differ in shape."""
    equal = (
        "Pass pad_to={} if all rows have the same shapes, else their public lengths: pad_to=128, or pad_to="
    )
    lengths = '{"input_ids": 128, "labels": dp.learn.Pad(128, value=-100)}.'
    if collate is not None:
        return NotSound(
            "collate is called with one row at a time, and rows are then padded or cut to public lengths, "
            "which pad_to gives: a batch as long as its longest row would tell of that row.",
            remedy=equal + lengths,
        )
    return NotSound(
        "Rows of this data set may differ in shape, and the shape of a batch would tell of its rows.",
        remedy=equal + lengths,
    )
