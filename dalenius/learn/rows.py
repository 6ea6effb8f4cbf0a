"""Inputs and targets side by side, in whatever they are kept: tensors, arrays, frames, dictionaries of these.

Rows are taken by number. Which container it is, and the shape of a row, are facts of the schema and public;
how many rows there are and what they hold is not. A torch data set is read row by row and stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, MissingExtra, QueryFailed
from dalenius.learn.data.row_seeds import row_seed
from dalenius.learn.quiet import FAILURES, kept_generators, seed_generators
from dalenius.release import Cell

Numbers = NDArray[np.int64]


class Rows:
    """Rows of inputs and a target.

    Args:
        dataset: A pair of columns, or a data set with a row for each number.
        collate: Stacks the rows of a data set.
        seed: A secret seed, from which the generators that libraries share are seeded for each row of a data
            set (`seeded`). Default: they are left alone.
    """

    def __init__(
        self, dataset: Any, *, collate: Callable[[list[Any]], Any] | None = None, seed: int | None = None
    ) -> None:
        self._dataset, self._collate, self._seed = None, collate, seed
        if type(dataset).__name__ == "TensorDataset" and len(dataset.tensors) == 2:
            dataset = dataset.tensors
        if isinstance(dataset, list | tuple) and (len(dataset) != 2 or isinstance(dataset, list)):
            _check_listed(dataset)
        if isinstance(dataset, tuple) and len(dataset) == 2 and not hasattr(dataset, "_fields"):
            self._inputs, self._targets = (_kept(side) for side in dataset)
            if _size(self._inputs) != _size(self._targets):
                raise InvalidArgument(
                    "Inputs and targets differ in length.", remedy="Pass (x, y) with one target for each row."
                )
            if isinstance(self._targets, Mapping) or getattr(self._targets, "ndim", 1) != 1:
                raise InvalidArgument(
                    "Targets must be one column.", remedy="Pass y of one dimension, a target for each row."
                )
            self._count = _size(self._targets)
        elif all(hasattr(dataset, name) for name in ("__len__", "__getitem__")) and not _columns(dataset):
            self._dataset, self._count = dataset, len(dataset)
        else:
            raise InvalidArgument(
                "The rows of this data set cannot be asked for by number.",
                remedy="Pass (x, y), or a data set with __len__ and __getitem__ whose rows are pairs.",
            )

    def __len__(self) -> int:
        return self._count

    @property
    def by_number(self) -> bool:
        """Whether it is a data set that gives one row at a time."""
        return self._dataset is not None

    @contextmanager
    def seeded(self, number: int) -> Iterator[None]:
        """Let what is random in reading or answering a row of a data set follow from its number alone."""
        if self._seed is None or not self.by_number:
            yield
            return
        with kept_generators():
            seed_generators(row_seed(self._seed, number, 0))
            yield

    def inputs(self, numbers: Sequence[int] | Numbers) -> Any:
        """The inputs of these rows, as one batch."""
        return self._pair(numbers)[0] if self._dataset is not None else taken(self._inputs, numbers)

    def part(self, numbers: Sequence[int] | Numbers) -> Any:
        """Inputs and targets of these rows: a pair, or those rows of a data set as a list."""
        if self._dataset is not None:
            return [self._dataset[int(i)] for i in numbers]
        return taken(self._inputs, numbers), taken(self._targets, numbers)

    def check_labels(self, classes: Sequence[Cell]) -> None:
        """Refuse classes of which by its type no target can be one: texts for numbers, or numbers for texts.

        That a single target is none of them is as private as what it is, and not told.
        """
        kind = getattr(getattr(None if self.by_number else self._targets, "dtype", None), "kind", "")
        texts = [isinstance(label, str) for label in classes]
        if classes and (
            (kind and kind in "biuf" and all(texts)) or (kind and kind in "SU" and not any(texts))
        ):
            raise InvalidArgument(
                "Targets are numbers and classes are texts, or the other way round.",
                remedy="List classes as they are in the targets.",
            )

    def targets(self) -> list[Any]:
        """All targets, in order."""
        if self._dataset is None:
            return listed(self._targets)
        return [self._target(i) for i in range(len(self))]

    def _target(self, number: int) -> Any:
        """None where the row cannot be read, which is as private as what it holds."""
        assert self._dataset is not None
        try:
            with self.seeded(number):
                return _plain(self._dataset[number][1])
        except FAILURES:
            return None

    def form(self) -> Any:
        """Inputs without any row, which have the form of the others; a data set tells it only by its rows."""
        assert self._dataset is None
        return taken(self._inputs, [])

    def _pair(self, numbers: Sequence[int] | Numbers) -> Any:
        try:
            from torch.utils.data import default_collate
        except ImportError as absent:
            raise MissingExtra(
                "Rows of a data set are stacked by PyTorch.",
                remedy="Run pip install 'dalenius[learn]', or pass (x, y) as arrays.",
            ) from absent
        assert self._dataset is not None
        try:
            return (self._collate or default_collate)([self._dataset[int(i)] for i in numbers])
        except Exception:
            raise QueryFailed() from None


def _check_listed(rows: Sequence[Any]) -> None:
    """Columns side by side are no list of rows."""
    if len(rows) and all(hasattr(one, "shape") for one in rows):
        raise InvalidArgument(
            "A list of columns is not a data set.",
            remedy="Pass (inputs, targets), inputs of several columns as a dictionary of them.",
        )


def taken(container: Any, numbers: Sequence[int] | Numbers) -> Any:
    """These rows of a tensor, an array, a frame, a list, or of each entry of a dictionary."""
    if isinstance(container, Mapping):
        return {name: taken(one, numbers) for name, one in container.items()}
    if hasattr(container, "iloc"):
        return container.iloc[list(numbers)]
    if isinstance(container, list):
        return [container[int(i)] for i in numbers]
    if isinstance(container, np.ndarray):
        return container[np.asarray(numbers, dtype=np.int64)]
    import torch

    return container[torch.as_tensor(np.asarray(numbers, dtype=np.int64), device=container.device)]


def listed(column: Any) -> list[Any]:
    """A column as a list of plain values."""
    found = column.tolist() if hasattr(column, "tolist") else list(column)
    return [_plain(one) for one in found] if isinstance(found, list) else [found]


def _plain(value: Any) -> Any:
    """A number in a tensor or an array of one entry, as itself."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def _columns(dataset: Any) -> bool:
    """Whether numbers ask for something else than rows."""
    return isinstance(dataset, str | bytes | Mapping | np.ndarray) or hasattr(dataset, "iloc")


def _kept(side: Any) -> Any:
    """A container of rows; a list of numbers as an array of objects, which no value changes the type of."""
    if isinstance(side, Mapping):
        found = {str(name): _kept(one) for name, one in side.items()}
        if not found or len({_size(one) for one in found.values()}) > 1:
            raise InvalidArgument(
                "Inputs by name differ in length, or there are none.", remedy="Pass as many rows under each."
            )
        return found
    known = isinstance(side, np.ndarray | list) or hasattr(side, "iloc")
    if not (known or (hasattr(side, "device") and hasattr(side, "dtype"))) or getattr(side, "ndim", 1) == 0:
        raise InvalidArgument(
            "Rows must be in tensors, arrays, frames, lists, or a dictionary of these.",
            remedy="Pass (x, y) as arrays or tensors, one row for each example.",
        )
    return side


def _size(container: Any) -> int:
    return _size(next(iter(container.values()))) if isinstance(container, Mapping) else len(container)
