"""`Totals`: the sums of a batch, one for each parameter, in memory that every step uses again.

On a GPU, and where they are `flat`, all sums of one type lie side by side, so that noise is added to them at
once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(eq=False)
class Side:
    """Parameters whose sums lie side by side, and all those numbers."""

    parameters: list[Tensor]
    flat: Tensor
    alone: tuple[int, ...] = ()
    """How often its memory and its sums are held if nobody else does."""


class Totals(dict[Tensor, Tensor]):
    """By parameter."""

    def __init__(self, parameters: Iterable[Tensor], *, flat: bool = False) -> None:
        super().__init__()
        kinds: dict[object, list[Tensor]] = {}
        for one in parameters:
            alone = one.device.type == "cpu" and not flat
            kinds.setdefault(one if alone else (one.device, one.dtype), []).append(one)
        self.sides = [Side(group, torch.empty(0)) for group in kinds.values()]
        for side in self.sides:
            self._lay_out(side)
            side.alone = self._references(side)

    def _lay_out(self, side: Side) -> None:
        first, sizes = side.parameters[0], [one.numel() for one in side.parameters]
        side.flat = torch.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        for one, part in zip(side.parameters, side.flat.split(sizes), strict=True):
            self[one] = part.view(one.shape)

    def _references(self, side: Side) -> tuple[int, ...]:
        memory = torch._C._storage_Use_Count(side.flat.untyped_storage()._cdata)
        return memory, *(sys.getrefcount(self[one]) for one in side.parameters)

    def renew(self) -> None:
        """Before the first chunk of a batch: whoever keeps a gradient must not see the next sum in it."""
        for side in self.sides:
            for one in side.parameters:
                if one.grad is self[one]:
                    one.grad = None
            if self._references(side) != side.alone:
                self._lay_out(side)
