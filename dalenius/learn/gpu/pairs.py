"""Norms of sums of outer products by pairs of positions, for short sequences and long rows.

    ‖Σ_t l_t r_tᵀ‖² = Σ_{t,s} (l_t·l_s)(r_t·r_s)

Tiles of both matrices of products are made, multiplied and added up; of a tile and its mirror image only one
is made, and a single number leaves. Products of bfloat16 are exact in single precision. Two kinds of errors
are made up for, u being the unit roundoff, p and d the lengths of the factors:

    Matrix units cut what they add up, toward zero, sixteen numbers at a time, `LONG` at most in one sum: a
    product may be too small by c = 2u/16 of what the longest sums of both have in them. The norm is too
    small by about c of itself, and where sums rise and fall, by c/4 of each product's bound, T·Q in all.
    Rounding errors, taken as independent, are u(√p + √d + 1) of ‖l_t‖‖l_s‖‖r_t‖‖r_s‖ in each product, and
    squares of these add up to Q², Q = Σ_t ‖l_t‖²‖r_t‖²: the sum has a standard deviation of at most
    √2·u(√p + √d + 1)·Q. Q is the sum along the diagonal.

The norm is raised by the first, by more than four such deviations, by what sums within a tile may lose, and
by what numbers too small for single precision may have taken from it (`parts.vanished`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from dalenius.learn.gpu.tiles import launch
from dalenius.learn.parts import tiny, vanished

SIZE, DEEP, LONG = 128, 64, 512
"""Positions of a tile, and numbers of a row that are multiplied at a time, and that are added up in a sum."""
QUICKER = 1.4
"""How much quicker a product of pairs is than one of entries."""
MARGIN, INSIDE = 6, 8
"""How far a norm is raised: `MARGIN`·u(√p + √d + `INSIDE`)·Q."""


@triton.jit
def _products(factor, row, column, length, size: tl.constexpr, deep: tl.constexpr, long: tl.constexpr):
    """Of the rows of a factor from `row` on with those from `column` on."""
    total = tl.zeros([size, size], tl.float32)
    for first in range(0, length, long):
        found = tl.zeros([size, size], tl.float32)
        for start in range(first, tl.minimum(first + long, length), deep):
            found = tl.dot(factor.load([row, start]), tl.trans(factor.load([column, start])), found)
        total += found
    return total


@triton.jit
def _squares(
    lefts, rights, out, positions, rows, columns, left_each, left_step, right_each, right_step,
    size: tl.constexpr, deep: tl.constexpr, long: tl.constexpr,
):  # fmt: skip
    pair, example, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    across, first, rest = tl.cdiv(positions, size), 0, pair
    while rest >= across - first:
        rest -= across - first
        first += 1
    row, column = first * size, (first + rest) * size
    left = tl.load(lefts + layer).to(tl.pointer_type(tl.bfloat16)) + example.to(tl.int64) * left_each
    right = tl.load(rights + layer).to(tl.pointer_type(tl.bfloat16)) + example.to(tl.int64) * right_each
    lefts_there = tl.make_tensor_descriptor(left, [positions, rows], [left_step, 1], [size, deep])
    rights_there = tl.make_tensor_descriptor(right, [positions, columns], [right_step, 1], [size, deep])
    found = _products(lefts_there, row, column, rows, size, deep, long)
    other = _products(rights_there, row, column, columns, size, deep, long)
    m, n = tl.arange(0, size), tl.arange(0, size)
    own = (m[:, None] == n[None, :]) & (rest == 0)
    place = out + 4 * ((layer * tl.num_programs(1) + example) * tl.num_programs(0) + pair)
    tl.store(place, tl.sum(found * other) * tl.where(rest == 0, 1.0, 2.0))
    tl.store(place + 1, tl.sum(tl.where(own, found * other, 0.0)))
    tl.store(place + 2, tl.sum(tl.where(own, found, 0.0)))
    tl.store(place + 3, tl.sum(tl.where(own, other, 0.0)))


def cheaper(positions: int, rows: int, columns: int) -> bool:
    """Whether products of pairs take less time than those of entries."""
    across = triton.cdiv(positions, SIZE)
    pairs = across * (across + 1) // 2 * SIZE**2 * (rows + columns)
    return pairs < QUICKER * positions * rows * columns


def squares(layers: Sequence[tuple[Tensor, Tensor]], pointers: Tensor) -> Tensor:
    """Of each layer and example; `pointers` say where left and right factors begin, all of one form."""
    left, right = layers[0]
    (examples, positions, rows), columns = left.shape, right.shape[2]
    across = triton.cdiv(positions, SIZE)
    pairs = across * (across + 1) // 2
    out = torch.empty(len(layers), examples, pairs, 4, device=left.device, dtype=torch.float32)
    steps = (*left.stride()[:2], *right.stride()[:2])
    sizes = {"size": SIZE, "deep": DEEP, "long": LONG, "num_warps": 8, "num_stages": 4}
    grid = (pairs, examples, len(layers))
    launch(_squares, grid, left, *pointers, out, positions, rows, columns, *steps, **sizes)
    found, diagonal, lefts, rights = out.sum(2, dtype=torch.float64).unbind(-1)
    unit = torch.finfo(torch.float32).eps / 2
    cut = 2 * unit * (min(rows, LONG) + min(columns, LONG)) / 16
    off = MARGIN * unit * (math.sqrt(rows) + math.sqrt(columns) + INSIDE) + cut * positions / 4
    lost = vanished(lefts, rights, (rows, columns, positions), tiny(left))
    return found.clamp(min=0).mul_(1 + cut).add_(diagonal, alpha=off).add_(lost)
