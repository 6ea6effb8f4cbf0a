"""`TensorRows`: rows of plain tensors, which have one form by construction."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Subset, TensorDataset


class TensorRows:
    """Rows of tensors side by side, taken all at once.

    Args:
        tensors: tensors of one length.
        numbers: which of their rows there are, and in what order; None for all of them.
    """

    def __init__(self, tensors: tuple[Tensor, ...], numbers: Tensor | None = None) -> None:
        self._tensors, self._numbers = tensors, numbers

    @classmethod
    def of(cls, dataset: Any) -> TensorRows | None:
        """Return the rows of a TensorDataset or of a Subset of one; None for any other data set."""
        if type(dataset) is TensorDataset:
            return cls(dataset.tensors)
        if type(dataset) is not Subset:
            return None
        inner = cls.of(dataset.dataset)
        if inner is None:
            return None
        numbers = torch.as_tensor(np.asarray(dataset.indices, dtype=np.int64))
        return cls(inner._tensors, numbers if inner._numbers is None else inner._numbers[numbers])

    def take(self, rows: NDArray[np.int64]) -> list[Tensor]:
        """Return the rows of these numbers."""
        index = torch.from_numpy(rows)
        if self._numbers is not None:
            index = self._numbers[index]
        return [tensor[index] for tensor in self._tensors]

    def filled(self, rows: NDArray[np.int64], missing: int) -> list[Tensor]:
        """Return the rows of these numbers, and `missing` rows of zeros after them.

        The order of memory is that of `take`, which code in a loop may rely on.
        """
        count = len(self._tensors[0]) if self._numbers is None else len(self._numbers)
        if not count:
            return [tensor.new_zeros((missing, *tensor.shape[1:])) for tensor in self._tensors]
        leaves = self.take(np.append(rows, np.zeros(missing, dtype=np.int64)))
        for leaf in leaves:
            leaf[len(rows) :] = 0
        return leaves
