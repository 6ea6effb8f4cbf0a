"""Rows of a data set as tensors, and made-up rows of the same form.

Made-up rows have the shapes and types of the first row and none of its values: noise for floats, zeros and
ones for whole numbers, which are labels of two classes and words of any vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.marks import replaced

Collate = Callable[[list[Any]], Any]


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
    if collate is None and isinstance(dataset, TensorDataset):
        index = torch.as_tensor(rows, dtype=torch.int64)
        return tuple(one[index] for one in dataset.tensors)
    return (collate or default_collate)([dataset[int(i)] for i in rows])


def made_up(dataset: Any, count: int) -> list[Any]:
    """So many rows of the form of the first one."""
    bits = torch.Generator().manual_seed(0)
    return [_like(dataset[0], bits) for _ in range(count)]


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


def blank(batch: Any) -> Any:
    """A batch of zeros of the same form."""
    return replaced(batch, torch.zeros_like)
