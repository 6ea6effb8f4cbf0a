"""Rows of a data set as tensors, and made-up rows of the same form.

Made-up rows have the shapes and types of the first row and none of its values: noise for floats, zeros and
ones for whole numbers, which are labels of two classes and words of any vocabulary.
"""

from __future__ import annotations

import hmac
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from dalenius.errors import InvalidArgument, NotSound, QueryFailed
from dalenius.learn.several import Processes
from dalenius.noise.stream import StreamKey

Collate = Callable[[list[Any]], Any]
SOME = 64
"""Rows that processes compare."""
ROWS = 10
"""The first number of the path of the stream that rows are compared under."""


def read_dataset(dataset: Any) -> Any:
    """A data set whose rows can be asked for by number; tensors are rows side by side."""
    if isinstance(dataset, DataLoader):
        raise NotSound(
            "Batches of a DataLoader are shuffled, and no theorem makes shuffled batches cost as little as "
            "Poisson samples do.",
            remedy="Pass loader.dataset: private.loader draws Poisson samples of it.",
        )
    if isinstance(dataset, Tensor):
        dataset = (dataset,)
    if isinstance(dataset, tuple | list) and dataset and all(isinstance(one, Tensor) for one in dataset):
        if len({len(one) if one.dim() else 0 for one in dataset}) > 1:
            raise InvalidArgument(
                "These tensors do not have one row for each other's.", remedy="Pass tensors of one length."
            )
        return TensorDataset(*dataset)
    if isinstance(dataset, IterableDataset) or not all(
        hasattr(dataset, n) for n in ("__len__", "__getitem__")
    ):
        raise InvalidArgument(
            "The rows of this data set cannot be asked for by number.",
            remedy="Pass tensors, or a data set with __len__ and __getitem__.",
        )
    return dataset


def collated(dataset: Any, rows: Sequence[int], collate: Collate | None) -> Any:
    """These rows as one batch."""
    if collate is None and type(dataset) is TensorDataset:
        index = torch.as_tensor(rows, dtype=torch.int64)
        return tuple(one[index] for one in dataset.tensors)
    try:
        return (collate or default_collate)([dataset[int(i)] for i in rows])
    except Exception:
        # What went wrong, and in which row, is data.
        raise QueryFailed() from None


def made_up(dataset: Any, count: int) -> list[Any]:
    """So many rows of the form of the first one."""
    if not len(dataset):
        raise InvalidArgument(
            "There is no row whose form made-up rows could have.", remedy="Pass synthetic=[…], made-up rows."
        )
    bits, form = torch.Generator().manual_seed(0), dataset[0]
    first = [_like(form, bits) for _ in range(count // 2)]
    return first + [_other(one, bits) for one in first]


def _other(row: Any, bits: torch.Generator) -> Any:
    """Another row of the same form, with every label and every bit the other one."""
    found = _like(row, bits)
    return _turned(found, row)


def _turned(new: Any, old: Any) -> Any:
    if isinstance(old, Tensor):
        return new if old.is_floating_point() or old.is_complex() else (1 - old.to(torch.int64)).to(old.dtype)
    if isinstance(old, bool | int):
        return type(old)(1 - int(old))
    if isinstance(old, tuple) and hasattr(old, "_fields"):
        return type(old)(*(_turned(a, b) for a, b in zip(new, old, strict=True)))
    if isinstance(old, tuple | list):
        return type(old)(_turned(a, b) for a, b in zip(new, old, strict=True))
    if isinstance(old, dict):
        return {key: _turned(new[key], old[key]) for key in old}
    return new


def _like(row: Any, bits: torch.Generator) -> Any:
    if isinstance(row, Tensor):
        return _tensor(row, bits)
    if isinstance(row, bool | int):
        return type(row)(int(torch.randint(2, (), generator=bits)))
    if isinstance(row, float):
        return float(torch.randn((), generator=bits))
    if isinstance(row, tuple) and hasattr(row, "_fields"):
        return type(row)(*(_like(one, bits) for one in row))
    if isinstance(row, tuple | list):
        return type(row)(_like(one, bits) for one in row)
    if isinstance(row, dict):
        return {key: _like(one, bits) for key, one in row.items()}
    if hasattr(row, "__array__"):
        return _tensor(torch.as_tensor(row), bits).numpy()
    raise InvalidArgument(
        f"Made-up rows with a {type(row).__name__} cannot be made.",
        remedy="Pass synthetic=[…], two or more made-up rows.",
    )


def _tensor(row: Tensor, bits: torch.Generator) -> Tensor:
    if row.is_floating_point() or row.is_complex():
        return torch.randn(row.shape, generator=bits).to(row.dtype)
    return torch.randint(2, row.shape, generator=bits).to(row.dtype)


def _plainly(leaf: Any) -> Any:
    """What of a row is the same in any process."""
    return leaf.detach().cpu().numpy() if isinstance(leaf, Tensor) else leaf


class Supply:
    """Batches of a data set, and made-up ones; an example has `each` rows, `views` of each of its own."""

    def __init__(
        self, dataset: Any, collate: Collate | None, synthetic: Sequence[Any] | None, *, views: int, each: int
    ) -> None:
        self._dataset, self._collate, self._views, self._each = dataset, collate, views, each
        self._synthetic = None if synthetic is None else list(synthetic)

    def rows(self, part: NDArray[np.int64]) -> Any:
        """A chunk of row numbers, as tensors; a made-up example where it is empty."""
        if len(part) == 0:
            return self.made_up((0,))
        first = np.broadcast_to(part.reshape(len(part), -1)[:, :1], part.reshape(len(part), -1).shape)
        # A unit that lacks a row repeats one of its own, which counts nothing.
        rows = np.where(part.reshape(-1) < 0, np.maximum(first.reshape(-1), 0), part.reshape(-1))
        return collated(self._dataset, np.repeat(rows, self._views).tolist(), self._collate)

    def compare(self, processes: Processes, key: StreamKey) -> None:
        """Refuse where processes have other rows, or have them in another order: one would count twice.

        Some rows, of public numbers, are read twice. Of a data set that changes its rows nothing is known.
        """
        if processes.count == 1:
            return
        count = len(self._dataset)
        rows = [i * count // SOME for i in range(SOME)] if count else []
        secret = key.stream(ROWS).words(4, np.uint64).tobytes()
        digests = processes.each("rows", lambda: [self._digest(rows, secret) for _ in range(2)])
        if all(one == two for one, two in digests) and len({one for one, _ in digests}) > 1:
            raise InvalidArgument(
                "Processes of one run were given other rows, or the same rows in another order.",
                remedy="Give all of them the same rows in the same order.",
            )

    def _digest(self, rows: Sequence[int], secret: bytes) -> bytes:
        found = hmac.new(secret, digestmod="sha256")
        for i in rows:
            try:
                found.update(pickle.dumps([_plainly(one) for one in tree_leaves(self._dataset[i])]))
            except Exception:
                found.update(b"?")
        return found.digest()

    def made_up(self, chosen: Sequence[int]) -> Any:
        """Made-up examples, every one with as many rows as a real one."""
        if self._synthetic is None:
            self._synthetic = made_up(self._dataset, 2 * self._each)
        places = [i * self._each + j for i in chosen for j in range(self._each)]
        items = [self._synthetic[place % len(self._synthetic)] for place in places]
        return (self._collate or default_collate)(items)
