"""Rows that a mask selects, used otherwise than row by row and written back to their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops

LOOPS = Loops("selected rows")

WIDE = {"sizes": (20, 12)}


class Routed(nn.Module):
    """Sends rows through one of two parts; a subclass says how."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.first, self.second = nn.Linear(5, 1), nn.Linear(5, 4), nn.Linear(5, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        chosen = x[:, 0] > 0
        out = self.second(x)
        return self.head(self.routed(out, torch.tanh(self.first(x[chosen])), chosen))

    def routed(self, out: Tensor, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return the rows of the batch with the selected ones among them."""
        raise NotImplementedError


def written(how: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Routed, Tensor, Tensor, Tensor], Tensor]:
    """Return a method that writes back what a function makes of selected rows."""

    def routed(self: Routed, out: Tensor, rows: Tensor, chosen: Tensor) -> Tensor:
        out[chosen] = how(rows, chosen)
        return out

    return routed


@LOOPS.module("getitem|linear", **WIDE)
class CentredAmongSelected(Routed):
    routed = written(lambda rows, _: rows - rows.mean(0))


@LOOPS.module("getitem|linear", **WIDE)
class NormalizedAmongSelected(Routed):
    routed = written(lambda rows, _: functional.batch_norm(rows, None, None, training=True))


@LOOPS.module("getitem|linear", **WIDE)
class AttentionAmongSelected(Routed):
    routed = written(lambda rows, _: functional.softmax(rows @ rows.T, dim=1) @ rows)


@LOOPS.module("getitem|linear", **WIDE)
class OrderOfSelected(Routed):
    routed = written(lambda rows, _: rows.flip(0))


@LOOPS.module("getitem|linear", **WIDE)
class RunningSumOfSelected(Routed):
    routed = written(lambda rows, _: rows.cumsum(0))


@LOOPS.module("getitem|setitem|div", **WIDE)
class SharesOfSelected(Routed):
    routed = written(lambda rows, chosen: 20 * rows / chosen.sum())


@LOOPS.module("shape|div|setitem|getitem|mul", **WIDE)
class NumberOfSelected(Routed):
    routed = written(lambda rows, _: rows * rows.shape[0])


@LOOPS.module("getitem|setitem", **WIDE)
class SumOfSelected(Routed):
    routed = written(lambda rows, _: rows.sum(0))


@LOOPS.module("cumsum|getitem", sizes=(20, 20))
class WrittenToOthers(Routed):
    """Selected rows are written to the first places, whoever is there."""

    def routed(self, out: Tensor, rows: Tensor, chosen: Tensor) -> Tensor:
        places = chosen.to(torch.int64).cumsum(0)[chosen] - 1
        return out.index_add(0, places, rows)


@LOOPS.module("nonzero|getitem", **WIDE)
class AddedAtOnePlace(Routed):
    def routed(self, out: Tensor, rows: Tensor, chosen: Tensor) -> Tensor:
        (places,) = chosen.nonzero(as_tuple=True)
        return out.index_add(0, places.clamp(max=0), rows)


@LOOPS.criterion("mean|getitem", **WIDE)
def mean_over_selected_rows(outputs: Tensor, y: Tensor) -> Tensor:
    losses = functional.cross_entropy(outputs, y, reduction="none")
    return losses[y > 0].mean()


@LOOPS.criterion("cross_entropy|getitem", **WIDE)
def cross_entropy_of_selected_rows(outputs: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(outputs[y > 0], y[y > 0])


@LOOPS.criterion("getitem|max|amax", **WIDE)
def largest_of_selected_rows(outputs: Tensor, y: Tensor) -> Tensor:
    losses = functional.cross_entropy(outputs, y, reduction="none")
    return losses[y > 0].max()


@LOOPS.criterion("div|sum|numel|getitem", **WIDE)
def sum_over_the_number_of_selected_rows(outputs: Tensor, y: Tensor) -> Tensor:
    selected = functional.cross_entropy(outputs, y, reduction="none")[y > 0]
    return selected.sum() / selected.numel()


@LOOPS.criterion("getitem|lt", **WIDE)
def rows_below_the_mean(outputs: Tensor, y: Tensor) -> Tensor:
    losses = functional.cross_entropy(outputs, y, reduction="none")
    return losses[losses < losses.mean()].sum()


@LOOPS.loop("bool|any|branch|nonzero", **WIDE)
def expert_left_out_if_nobody_needs_it(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        losses = functional.cross_entropy(private.model(x), y, reduction="none")
        chosen = x[:, 0] > 1.2
        loss = losses.sum() / 8
        if chosen.sum() > 3:
            loss = loss + losses[chosen].sum()
        loss.backward()
        private.step()
