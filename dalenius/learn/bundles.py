"""`Bundle`: the shares of many small parameters side by side, so that a GPU need not be asked for each.

Scales, shifts and biases are most of a model's parameters and few of its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import torch
from torch import Tensor

from dalenius.learn.parts import Part, Whole, blanked, squares

SMALL = 1 << 13
"""Numbers of a parameter that is small."""


def bundled(parts: Mapping[Tensor, Part]) -> Bundle | None:
    """What of these is small, on one GPU and of one type, if it is more than one parameter."""
    small: dict[Tensor, Whole] = {}
    for parameter, part in parts.items():
        if type(part) is Whole and part.shares.is_cuda and parameter.numel() <= SMALL:
            first = next(iter(small.values()), part).shares
            if (first.device, first.dtype) == (part.shares.device, part.shares.dtype):
                small[parameter] = part
    return Bundle(small) if len(small) > 1 else None


class Bundle:
    """Shares as rows of one matrix."""

    def __init__(self, wholes: Mapping[Tensor, Whole]) -> None:
        self.parameters = list(wholes)
        self._rows = torch.cat([one.shares.reshape(one.examples, -1) for one in wholes.values()], 1)

    @property
    def first(self) -> Tensor:
        """The parameter that stands for all."""
        return self.parameters[0]

    def norms(self, norm: str) -> Tensor:
        """Of all together: for each example the squared L2 norm, or the L1 norm."""
        return squares(self._rows) if norm == "l2" else self._rows.abs().sum(1)

    def forget(self, bad: Tensor) -> None:
        """By rows."""
        self._rows = blanked(self._rows, bad)

    def add(self, weights: Tensor, totals: Mapping[Tensor, Tensor], fresh: Set[Tensor]) -> None:
        """The weighted sum, to each parameter's total or in its place."""
        found = torch.mv(self._rows.t(), weights.to(self._rows.dtype))
        shares = found.split([one.numel() for one in self.parameters])
        pairs = list(zip(self.parameters, shares, strict=True))
        for function, some in (
            (torch._foreach_copy_, [pair for pair in pairs if pair[0] in fresh]),
            (torch._foreach_add_, [pair for pair in pairs if pair[0] not in fresh]),
        ):
            if some:
                function([totals[one].view(-1) for one, _ in some], [share for _, share in some])
