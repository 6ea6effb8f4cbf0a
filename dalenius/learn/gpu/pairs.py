"""Norms of sums of outer products by pairs of positions, for short sequences and long rows.

    ‖Σ_t l_t r_tᵀ‖² = Σ_{t,s} (l_t·l_s)(r_t·r_s)

Tiles of both matrices of products are made, multiplied and added up; of a tile and its mirror image only one
is made, and a single number leaves. Products of bfloat16 are exact in single precision. With rounding errors
taken as independent, the sum has a standard deviation of at most √2·u(√p + √d + 1)·Q, Q = Σ_t ‖l_t‖²‖r_t‖²,
where p and d are the lengths of the factors and u is the unit roundoff: an error of (l_t·l_s)(r_t·r_s) is
about u(√p + √d + 1) of ‖l_t‖‖l_s‖‖r_t‖‖r_s‖, and squares of these add up to Q². Q is the sum along the
diagonal. The norm is raised by more than four such deviations, and by as much as sums within a tile may lose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from dalenius.learn.gpu import on

SIZE, DEEP = 128, 64
"""Positions of a tile, and numbers of a row that are multiplied at a time."""
MARGIN, INSIDE = 6, 8
"""How far a norm is raised: `MARGIN`·u(√p + √d + `INSIDE`)·Q."""


@triton.jit
def _products(
    factor, row, column, positions, length, step,
    size: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    """Of the rows of a factor from `row` on with those from `column` on."""
    m, n, k = row + tl.arange(0, size), column + tl.arange(0, size), tl.arange(0, deep)
    ones = factor + m[:, None].to(tl.int64) * step + k[None, :]
    others = factor + n[:, None].to(tl.int64) * step + k[None, :]
    found = tl.zeros([size, size], tl.float32)
    for start in range(0, length, deep):
        inside = (start + k < length)[None, :]
        one = tl.load(ones, mask=inside & (m < positions)[:, None], other=0.0)
        other = tl.load(others, mask=inside & (n < positions)[:, None], other=0.0)
        found = tl.dot(one, tl.trans(other), found)
        ones += deep
        others += deep
    return found


@triton.jit
def _squares(
    lefts, rights, out, positions, rows, columns, left_each, left_step, right_each, right_step,
    kind: tl.constexpr, size: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    pair, example, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    across, first, rest = tl.cdiv(positions, size), 0, pair
    while rest >= across - first:
        rest -= across - first
        first += 1
    row, column = first * size, (first + rest) * size
    left = tl.multiple_of(tl.load(lefts + layer).to(tl.pointer_type(kind)), 16)
    right = tl.multiple_of(tl.load(rights + layer).to(tl.pointer_type(kind)), 16)
    left += example.to(tl.int64) * left_each
    right += example.to(tl.int64) * right_each
    found = _products(left, row, column, positions, rows, left_step, size, deep)
    found *= _products(right, row, column, positions, columns, right_step, size, deep)
    m, n = tl.arange(0, size), tl.arange(0, size)
    own = tl.sum(tl.where((m[:, None] == n[None, :]) & (rest == 0), found, 0.0))
    place = 2 * ((layer * tl.num_programs(1) + example) * tl.num_programs(0) + pair)
    tl.store(out + place, tl.sum(found) * tl.where(rest == 0, 1.0, 2.0))
    tl.store(out + place + 1, own)


def cheaper(positions: int, rows: int, columns: int) -> bool:
    """Whether products of pairs are fewer than those of the entries."""
    across = triton.cdiv(positions, SIZE)
    return across * (across + 1) // 2 * SIZE**2 * (rows + columns) < positions * rows * columns


def squares(layers: Sequence[tuple[Tensor, Tensor]], pointers: Tensor) -> Tensor:
    """Of each layer and example; `pointers` say where left and right factors begin, all of one form."""
    left, right = layers[0]
    (examples, positions, rows), columns = left.shape, right.shape[2]
    across = triton.cdiv(positions, SIZE)
    pairs = across * (across + 1) // 2
    out = torch.empty(len(layers), examples, pairs, 2, device=left.device, dtype=torch.float32)
    steps = (*left.stride()[:2], *right.stride()[:2])
    with on(left):
        _squares[(pairs, examples, len(layers))](
            *pointers, out, positions, rows, columns, *steps,
            kind=tl.bfloat16, size=SIZE, deep=DEEP, num_warps=8, num_stages=3,
        )  # fmt: skip
    found, diagonal = out.sum(2, dtype=torch.float64).unbind(-1)
    unit = torch.finfo(torch.float32).eps / 2 * (math.sqrt(rows) + math.sqrt(columns) + INSIDE)
    return found.clamp(min=0).add_(diagonal, alpha=MARGIN * unit)
