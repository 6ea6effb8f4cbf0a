"""`Totals`: the sums of a batch, one for each parameter.

On a processor they lie in memory that every step uses again: new pages cost more than sums. On a GPU, and
where they are `flat`, all sums of one type lie side by side, so that noise is added to them at once. Between
steps those of a GPU are nowhere: the forward pass needs the room.
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

    @property
    def there(self) -> bool:
        """Whether they lie on a GPU, or anywhere but with the processor."""
        return self.parameters[0].device.type != "cpu"

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return sum(one.numel() for one in self.parameters)


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
            if not side.there:
                self._lay_out(side)
                side.alone = self._references(side)

    def _lay_out(self, side: Side) -> None:
        first, sizes = side.parameters[0], [one.numel() for one in side.parameters]
        make = torch.empty if side.there else torch.zeros
        side.flat = make(side.size, dtype=first.dtype, device=first.device)
        for one, part in zip(side.parameters, side.flat.split(sizes), strict=True):
            self[one] = part.view(one.shape)

    def __missing__(self, parameter: Tensor) -> Tensor:
        self._lay_out(next(side for side in self.sides if any(one is parameter for one in side.parameters)))
        return self[parameter]

    def _references(self, side: Side) -> tuple[int, ...]:
        memory = torch._C._storage_Use_Count(side.flat.untyped_storage()._cdata)
        return memory, *(sys.getrefcount(self[one]) for one in side.parameters)

    def renew(self) -> None:
        """Before the first chunk of a batch: whoever keeps a gradient must not see the next sum in it."""
        self.let_go()
        for side in self.sides:
            for one in side.parameters:
                if one.grad is self.get(one, one):
                    one.grad = None
            if not side.there and self._references(side) != side.alone:
                self._lay_out(side)

    def let_go(self) -> None:
        """After the last use of a batch's sums: parameters have them as gradients, as long as needed."""
        for side in self.sides:
            if side.there:
                side.flat = torch.empty(0)
                for one in side.parameters:
                    self.pop(one, None)
