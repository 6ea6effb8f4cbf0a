"""`Supply`: the batches of a data set, compared between processes, and made-up rows of the same form.

Made-up rows have the shapes and types of the first row and none of its values: noise for floats, zeros and
ones for whole numbers, which are labels of two classes and words of any vocabulary.
"""

from __future__ import annotations

import hmac
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.data.batch_reader import BatchReader
from dalenius.learn.several import Processes
from dalenius.noise.stream import StreamKey

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
        _check_dense(dataset)
        if len({len(one) if one.dim() else 0 for one in dataset}) > 1:
            raise InvalidArgument(
                "These tensors do not have one row for each other's.", remedy="Pass tensors of one length."
            )
        return TensorDataset(*dataset)
    if isinstance(dataset, TensorDataset):
        _check_dense(dataset.tensors)
    if isinstance(dataset, IterableDataset) or not all(
        hasattr(dataset, n) for n in ("__len__", "__getitem__")
    ):
        raise InvalidArgument(
            "The rows of this data set cannot be asked for by number.",
            remedy="Pass tensors, or a data set with __len__ and __getitem__.",
        )
    return dataset


def _check_dense(tensors: Sequence[Tensor]) -> None:
    """Refuse tensors whose rows cannot be picked by number, or have lengths of their own."""
    if any(one.is_nested for one in tensors):
        raise InvalidArgument(
            "Rows of a nested tensor have lengths of their own.",
            remedy="Pass a padded tensor, data.to_padded_tensor(0); or a list of rows, and pad_to=….",
        )
    if any(one.layout is not torch.strided for one in tensors):
        raise InvalidArgument(
            "A tensor of the data is sparse, and rows are picked out of dense tensors.",
            remedy="Pass data.to_dense(), or a data set that makes dense rows one by one.",
        )


def made_up(form: Any, count: int) -> list[Any]:
    """So many rows of the form of this one."""
    bits = torch.Generator().manual_seed(0)
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


class Supply(BatchReader):
    """The batches of a data set, and made-up ones of the same form. Arguments are those of `BatchReader`."""

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
            self._synthetic = made_up(self._example, 2 * self._each)
        places = [i * self._each + j for i in chosen for j in range(self._each)]
        items = [self._synthetic[place % len(self._synthetic)] for place in places]
        if self._tensors is not None:
            return default_collate(items)
        collation = self._source.collation
        batch = collation.blanks(len(items))
        for place in range(len(items)):
            collation.write(items, place, batch, place)
        return collation.batch(batch)
