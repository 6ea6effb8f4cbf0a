"""What one use of a parameter adds to its gradient, for each example by itself.

A use yields a *part*: enough to tell the squared norm of every example's share, and to sum the shares with
any weights, without ever holding all of them. Where they are small they are held (`Whole`), where they are
sums of outer products only the factors are (`Outer`): with left factors l_t and right factors r_t

    ‖Σ_t l_t r_tᵀ‖² = Σ_{t,s} (l_t·l_s)(r_t·r_s)                      (Goodfellow 2015; Li et al. 2022)
    Σ_b c_b Σ_t l_{bt} r_{bt}ᵀ                                          one product of matrices.

A squared norm out of products of factors is a difference of large numbers where factors cancel. It is raised
by what rounding may have taken from it, so that a norm is never too small by more than the arithmetic of the
last sum: `raised` adds u(√p + √d + T)·(Σ_t ‖l_t‖‖r_t‖)², p and d the lengths of the factors and T their
number, the standard deviation of independent rounding errors at unit roundoff u.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dalenius.learn import gpu

SCRATCH, SCRATCH_THERE = 1 << 18, 1 << 25
"""Numbers that are worked on at a time: they stay in the cache of a processor, or keep a GPU busy."""
HALF = torch.float16, torch.bfloat16
HELD, HELD_DEAR = 3, 4
"""Shares are held where they are at most so many times as many numbers as their factors: the second where
products of factors cost more than the shares."""
HELD_THERE = 0.25
"""The same on a GPU, whose kernels take norms without writing shares."""
LONG = 1 << 12
"""Entries of which a norm is made at once."""
LARGEST = 1 << 23
"""And so many in all: an allocator serves such blocks out of what it has; larger ones cost new pages."""


class Part(ABC):
    """What one use of a parameter of a `shape` adds."""

    shape: tuple[int, ...]
    examples: int

    @abstractmethod
    def squared(self) -> Tensor:
        """For each example, the squared norm of its share, not less than it is."""

    @abstractmethod
    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """Add the weighted sum of the shares to `total`, or put it in the place of what is not to `keep`.

        Examples that were forgotten have a weight of zero.
        """

    @abstractmethod
    def whole(self) -> Tensor:
        """The shares themselves: (examples, *shape)."""

    def absolute(self) -> Tensor:
        """For each example, the L1 norm of its share."""
        return self.whole().reshape(self.examples, -1).abs().sum(1)

    @abstractmethod
    def forget(self, bad: Tensor) -> None:
        """Set the shares of the marked examples to zero, whatever they were."""


def full(tensor: Tensor) -> Tensor:
    """In single precision at least; what is computed with it is no part of a graph."""
    tensor = tensor.detach()
    return tensor.float() if tensor.dtype in HALF else tensor


def single(tensor: Tensor) -> torch.dtype:
    """Its type, or single precision in place of half."""
    return torch.float32 if tensor.dtype in HALF else tensor.dtype


def summed(factor: Tensor) -> Tensor:
    """Over positions; of a single one it is seen, not copied."""
    if factor.shape[1] == 1:
        return full(factor).select(1, 0)
    return factor.detach().sum(1, dtype=single(factor))


def alike(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Two factors as they are, if kernels can work on them, and else in single precision at least."""
    if left.dtype == right.dtype == torch.bfloat16 and gpu.at_hand(left, right):
        return left.detach(), right.detach()
    return full(left), full(right)


@dataclass(eq=False)
class Whole(Part):
    """The shares, held."""

    shares: Tensor

    def __post_init__(self) -> None:
        self.shares = full(self.shares)
        self.examples, self.shape = self.shares.shape[0], tuple(self.shares.shape[1:])

    def squared(self) -> Tensor:
        """Of each row."""
        return squares(self.shares)

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """A product with a matrix."""
        rows = self.shares.reshape(self.examples, -1)
        total.view(-1).addmv_(rows.t(), weights.to(rows.dtype), beta=int(keep))

    def whole(self) -> Tensor:
        """As they are."""
        return self.shares

    def forget(self, bad: Tensor) -> None:
        """By rows."""
        self.shares = blanked(self.shares, bad)


@dataclass(eq=False)
class Outer(Part):
    """Sums over positions of outer products: left (examples, T, p), right (examples, T, d)."""

    left: Tensor
    right: Tensor

    def __post_init__(self) -> None:
        self.left, self.right = alike(self.left, self.right)
        self.examples = self.left.shape[0]
        self.shape = (self.left.shape[2], self.right.shape[2])

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (*self.shape, self.left.shape[1])

    @property
    def there(self) -> bool:
        """Whether kernels of a GPU take over, which take norms of shares without writing them."""
        return self.left.shape[1] > 1 and self.left.dtype != torch.float64 and gpu.at_hand(self.left)

    def squared(self) -> Tensor:
        """By products of factors, some examples at a time; on a GPU by the shares, which are not written."""
        if self.left.shape[1] == 1:
            left, right = (squares(one).double() + one.shape[2] * tiny(one) for one in self._factors)
            return left * right
        if self.there:
            from dalenius.learn.gpu import outer

            return outer.squares([outer.ready(self.left, self.right)])[0]
        found = [self._squared(part) for part in pieces(self.left, 2 * self.left.shape[1] ** 2)]
        return torch.cat(found) if found else self.left.new_zeros(0)

    def _squared(self, part: slice) -> Tensor:
        left, right = self.left[part], self.right[part]
        products = gpu.products(left, left.transpose(1, 2)).mul_(gpu.products(right, right.transpose(1, 2)))
        near, far = lengths(left), lengths(right)
        # No share exceeds Σ_t ‖l_t‖‖r_t‖.
        found = raised(products.sum((1, 2)), (near * far).sum(1), self._sizes)
        lefts, rights = (one.double().square_().sum(1) for one in (near, far))
        return found.double() + vanished(lefts, rights, self._sizes, tiny(left))

    @property
    def _factors(self) -> tuple[Tensor, Tensor]:
        return self.left, self.right

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """One product of matrices, over examples and positions alike."""
        if self.there and total.dtype == torch.float32:
            from dalenius.learn.gpu import outer

            layers = [outer.ready(self.left, self.right)]
            outer.add(layers, weights[None], [total.view(self.shape)], keep=keep)
            return
        factors, each = map(full, self._factors), weights.to(single(self.left)).view(-1, 1, 1)
        smaller = int(self.shape[1] < self.shape[0])
        left, right = (one * each if i == smaller else one for i, one in enumerate(factors))
        if left.is_cuda:
            left, right = blanked(left, weights == 0), blanked(right, weights == 0)
        total.view(self.shape).addmm_(left.flatten(0, 1).t(), right.flatten(0, 1), beta=int(keep))

    def whole(self) -> Tensor:
        """A product for each example."""
        return gpu.products(self.left.transpose(1, 2), self.right)

    def forget(self, bad: Tensor) -> None:
        """Both factors: zero times infinity is not zero. On a GPU it is done when they are used."""
        if not self.left.is_cuda:
            self.left, self.right = blanked(self.left, bad), blanked(self.right, bad)

    def smallest(self) -> Part:
        """The shares where they need little memory: then their product is not made a second time."""
        factors = self.left.numel() + self.right.numel()
        few = self.left.shape[1] > 1 and held(self, factors, self._sizes, there=self.there)
        return Whole(self.whole()) if few else self


@dataclass(eq=False)
class Summed(Part):
    """The clipped sum of a layer, of which no more is known (`layers`): it is added as it is."""

    total: Tensor
    examples: int

    def __post_init__(self) -> None:
        self.shape = tuple(self.total.shape)

    def squared(self) -> Tensor:
        """Nothing is left to be clipped."""
        return self.total.new_zeros(self.examples)

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """Whatever the weights."""
        total.add_(self.total) if keep else total.copy_(self.total)

    def whole(self) -> Tensor:
        """It cannot be taken apart."""
        raise AssertionError("the shares of a sum are not known")

    def forget(self, bad: Tensor) -> None:
        """It holds none of them."""


def held(part: Part, factors: int, sizes: tuple[int, ...], *, there: bool = False) -> bool:
    """Whether to hold the shares of a part, rather than factors of so many numbers, of sizes p, d and T."""
    size = part.examples * math.prod(part.shape)
    if there:
        return 0 < size <= HELD_THERE * factors
    return 0 < size <= min((HELD_DEAR if dear(sizes) else HELD) * factors, LARGEST)


def dear(sizes: tuple[int, ...]) -> bool:
    """Whether products of factors cost more than the shares."""
    left, right, positions = sizes
    return positions * (left + right) > left * right


def lengths(factor: Tensor) -> Tensor:
    """The norm of each example's factor at each position."""
    return torch.linalg.vector_norm(factor, dim=2, dtype=single(factor))


def squares(tensor: Tensor) -> Tensor:
    """The squared norm of each row; a long one out of parts, as long sums in single precision lose much."""
    # A size of -1 is not known where there are no rows.
    flat = full(tensor).reshape(tensor.shape[0], math.prod(tensor.shape[1:]))
    whole = flat.shape[1] // LONG * LONG
    if not whole:
        return torch.linalg.vector_norm(flat, dim=1).square_()
    parts = torch.linalg.vector_norm(flat[:, :whole].unflatten(1, (-1, LONG)), dim=2)
    found = parts.double().square_().sum(1)
    if whole < flat.shape[1]:
        found += torch.linalg.vector_norm(flat[:, whole:], dim=1).double().square_()
    return found.to(flat.dtype)


def raised(
    squared: Tensor, reach: Tensor, sizes: tuple[int, ...], dtype: torch.dtype | None = None
) -> Tensor:
    """By what rounding in the type it was computed in may have taken from it; sizes are p, d and T."""
    left, right, positions = sizes
    unit = torch.finfo(dtype or squared.dtype).eps / 2 * (math.sqrt(left) + math.sqrt(right) + positions)
    return squared.clamp_(min=0).addcmul_(reach.to(squared.dtype), reach.to(squared.dtype), value=unit)


def tiny(tensor: Tensor) -> float:
    """What is smaller may be zero in arithmetic of its type."""
    return torch.finfo(single(tensor)).tiny


def vanished(left: Tensor, right: Tensor, sizes: tuple[int, ...], least: float) -> Tensor:
    """What numbers below `least` may have taken from a norm out of products, by Σ_t ‖l_t‖² and Σ_t ‖r_t‖².

    Each l_t·l_s may be off by p·least, each r_t·r_s by d·least, and |r_t·r_s| sum up to T·Σ_t ‖r_t‖² at most.
    """
    p, d, positions = sizes
    return positions * least * (p * right.double() + d * left.double() + positions)


def pieces(tensor: Tensor, each: int) -> Iterator[slice]:
    """Slices of its examples, `each` of which needs so many numbers of scratch."""
    examples, scratch = tensor.shape[0], SCRATCH_THERE if tensor.is_cuda else SCRATCH
    step = max(1, scratch // max(1, each))
    return (slice(start, min(start + step, examples)) for start in range(0, examples, step))


def blanked(tensor: Tensor, bad: Tensor) -> Tensor:
    """With zeros for the marked examples."""
    return tensor.masked_fill(bad.view(-1, *(1,) * (tensor.dim() - 1)), 0)
