"""Rows to train on, and rows to test on: which is which never depends on what they hold.

Of an owner's rows an exact share is drawn by a seed, and columns without a range are scaled by all rows: so
the rows to train on are like those to test on, and nothing but the training tells them apart.

Where an account pays, every row tosses a secret coin of its own. With the same coins, neighbouring data give
neighbouring rows to train on and the same rows to test on, or the other way round; so what is charged for
both covers either.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.report.study.data import Data, Floats, Ints

FEWEST = 10
"""Rows that an owner's study needs on either side."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one side."""

    x: Tensor
    y: Tensor
    group: Ints | None

    def __len__(self) -> int:
        return len(self.y)


def split(data: Data, share: Fraction, seed: int) -> tuple[Part, Part]:
    """An owner's rows in random order."""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed)).numpy()
    count = round(share * len(data))
    if min(count, len(data) - count) < FEWEST:
        raise InvalidArgument(
            f"A study needs {FEWEST} rows or more to train on, and as many to test on.",
            remedy="Pass more rows, or another share to test on; rows of classes not stated are left out.",
        )
    test, train = order[:count], order[count:]
    return _parts(data, _scaled(data), train, test)


def toss(data: Data, share: Fraction) -> tuple[Part, Part]:
    """Private rows: to train on and to test on, by coins."""
    if data.unscaled:
        raise NotSound(
            f"The range of {', '.join(data.unscaled)} is not stated, and must not be taken from the data.",
            remedy="State the range of each, such as age=0:120.",
        )
    heads = np.asarray(noise.bernoulli(share, len(data)), dtype=bool)
    return _parts(data, data.x, np.flatnonzero(~heads), np.flatnonzero(heads))


def _parts(data: Data, x: Floats, train: Ints, test: Ints) -> tuple[Part, Part]:
    found = []
    for rows in (train, test):
        group = None if data.group is None else data.group[rows]
        found.append(Part(torch.from_numpy(x[rows]), torch.from_numpy(data.y[rows]), group))
    return found[0], found[1]


def _scaled(data: Data) -> Floats:
    """The unscaled columns less their mean, by their spread; a null is in neither, and is 0."""
    count = len(data.unscaled)
    if not count:
        return data.x
    x = data.x.copy()
    first = np.ma.masked_invalid(x[:, :count].astype(np.float64))
    spread = first.std(axis=0).filled(0)
    x[:, :count] = ((first - first.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).filled(0)
    return x
