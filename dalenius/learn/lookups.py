"""Parts of tables whose rows are looked up, and of such that are multiplied with as well."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dalenius.learn.parts import (
    Outer,
    Part,
    Whole,
    blanked,
    full,
    lengths,
    pieces,
    raised,
    squares,
    tiny,
)

DEVIATIONS = 6
"""Of independent rounding errors, by which a sum of products is raised."""
SHORT = 1 << 11
"""Positions of which all pairs are looked at."""


@dataclass(eq=False)
class Lookup(Part):
    """Rows of a table: position t of an example adds right_t to row `rows_t`; a negative row is nobody's."""

    rows: Tensor
    right: Tensor
    height: int

    def __post_init__(self) -> None:
        self.right = full(self.right)
        self.examples = self.rows.shape[0]
        self.shape = (self.height, self.right.shape[2])
        self._sums: tuple[Tensor, Tensor, Tensor] | None = None

    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """What each example adds to each row that it uses: the examples, the rows, the sums."""
        if self._sums is None:
            numbers = torch.arange(self.examples, device=self.rows.device).view(-1, 1)
            keys = (numbers * (self.height + 1) + self.rows + 1).view(-1)
            used, place = torch.unique(keys, return_inverse=True)
            added = self.right.new_zeros(used.numel(), self.shape[1])
            added.index_add_(0, place, self.right.reshape(-1, self.shape[1]))
            who = torch.div(used, self.height + 1, rounding_mode="floor")
            row = used - who * (self.height + 1) - 1
            kept = row >= 0
            self._sums = (who[kept], row[kept], added[kept])
        return self._sums

    def squared(self) -> Tensor:
        """Of the sums by row; on a GPU, which would have to be waited for, by products of equal rows."""
        if self.right.is_cuda and self.rows.shape[1] <= SHORT:
            found = [self._squared(part) for part in pieces(self.right, 2 * self.rows.shape[1] ** 2)]
            return torch.cat(found) if found else self.right.new_zeros(0)
        who, _, added = self.sums()
        return self.right.new_zeros(self.examples).index_add_(0, who, squares(added))

    def _squared(self, part: slice) -> Tensor:
        rows, right = self.rows[part], self.right[part].masked_fill((self.rows[part] < 0).unsqueeze(-1), 0)
        other, each = rows.unsqueeze(1) != rows.unsqueeze(2), right.norm(dim=2)
        products = torch.bmm(right, right.transpose(1, 2)).masked_fill_(other, 0)
        most = torch.bmm(each.unsqueeze(2), each.unsqueeze(1)).masked_fill_(other, 0)
        found, reach = (one.sum((1, 2), dtype=torch.float64) for one in (products, most))
        return raised(found, reach.sqrt_(), (1, self.shape[1], 0), right.dtype).to(right.dtype)

    def spread(self) -> Tensor:
        """Σ_t ‖r_t‖²."""
        return self.right.norm(dim=2).double().square_().sum(1)

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """Into the rows that were used; on a GPU always in the same order."""
        if self.right.is_cuda:
            right = self.right * weights.to(self.right.dtype).view(-1, 1, 1)
            right = right.masked_fill((self.rows < 0).unsqueeze(-1), 0)
            sums = torch.ops.aten.embedding_dense_backward(
                right, self.rows.clamp(min=0), self.height, -1, False
            )
            total.add_(sums) if keep else total.copy_(sums)
            return
        if not keep:
            total.zero_()
        who, row, added = self.sums()
        total.index_add_(0, row, added * weights.to(added.dtype)[who].view(-1, 1))

    def whole(self) -> Tensor:
        """All rows of all examples: for small tables only."""
        numbers = torch.arange(self.examples, device=self.rows.device).view(-1, 1)
        places = (numbers * self.height + self.rows.clamp(min=0)).view(-1)
        right = self.right.masked_fill((self.rows < 0).unsqueeze(-1), 0)
        shares = right.new_zeros(self.examples * self.height, self.shape[1])
        shares.index_add_(0, places, right.reshape(-1, self.shape[1]))
        return shares.view(self.examples, *self.shape)

    def forget(self, bad: Tensor) -> None:
        """What they would have added."""
        self.right, self._sums = blanked(self.right, bad), None


@dataclass(eq=False)
class Tied(Part):
    """A table that is looked up and multiplied with in one model: the shares of both uses add up.

    ⟨Σ_t e_{i_t} v_tᵀ, Σ_s l_s r_sᵀ⟩ = Σ_{t,s} l_s[i_t]·(v_t·r_s).
    """

    looked_up: Lookup
    multiplied: Outer

    def __post_init__(self) -> None:
        self.examples, self.shape = self.multiplied.examples, self.multiplied.shape

    def squared(self) -> Tensor:
        """With twice the product of the two, raised by what it may have lost where they cancel."""
        one, two = self.looked_up, self.multiplied
        rows = one.rows.clamp(min=0).unsqueeze(1).expand(-1, two.left.shape[1], -1)
        taken = full(two.left.gather(2, rows)).masked_fill_((one.rows < 0).unsqueeze(1), 0)
        products = taken.mul_(torch.bmm(full(two.right), one.right.transpose(1, 2)))
        cross = products.sum((1, 2), dtype=torch.float64)
        both = one.squared().double() + two.squared().double()
        # Left factors are as long as the vocabulary: their norms are taken once. Were positions independent,
        # the squared norm of the share would be Σ_t ‖l_t‖²‖r_t‖².
        left, right = lengths(two.left), lengths(two.right)
        spread = (one.spread().sqrt() + (left * right).double().square_().sum(1).sqrt_()).square_()
        spread *= math.sqrt(self.shape[1]) + math.sqrt(one.rows.shape[1] + two.left.shape[1]) + 8
        unit = DEVIATIONS * torch.finfo(one.right.dtype).eps / 2
        # The same for entries that a product with may have vanished.
        entries = left.double().sum(1)
        both += 2 * tiny(one.right) * one.rows.shape[1] * self.shape[1] * (entries + two.left.shape[1])
        return (both + 2 * cross).clamp_(min=0).add_(spread + 8 * both, alpha=unit)

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """One after the other."""
        self.multiplied.add(weights, total, keep=keep)
        self.looked_up.add(weights, total)

    def whole(self) -> Tensor:
        """Their sum."""
        return self.looked_up.whole() + self.multiplied.whole()

    def forget(self, bad: Tensor) -> None:
        """In both."""
        self.looked_up.forget(bad)
        self.multiplied.forget(bad)


def united(parts: list[Part]) -> Part:
    """All uses of one parameter as one part: norms are of the sum of the shares, not sums of norms."""
    if len(parts) == 1:
        return parts[0]
    outers = [part for part in parts if isinstance(part, Outer)]
    lookups = [part for part in parts if isinstance(part, Lookup)]
    if len(outers) + len(lookups) < len(parts):
        shares = parts[0].whole().clone()
        for part in parts[1:]:
            shares += part.whole().view(shares.shape)
        return Whole(shares)
    found: list[Part] = []
    if lookups:
        rows, right = (_beside([getattr(one, name) for one in lookups]) for name in ("rows", "right"))
        found.append(Lookup(rows, right, lookups[0].height))
    if outers:
        left, right = (_beside([getattr(one, name) for one in outers]) for name in ("left", "right"))
        found.append(Outer(left, right))
    one, *two = found
    return Tied(one, two[0]) if two and isinstance(one, Lookup) and isinstance(two[0], Outer) else one


def _beside(tensors: list[Tensor]) -> Tensor:
    """Positions of all uses; those of one use stay where they are."""
    return torch.cat(tensors, 1) if len(tensors) > 1 else tensors[0]
