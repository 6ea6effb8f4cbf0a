"""The weighted sum of `outer`, for rows that a GPU's copying unit can fetch tile by tile.

The unit is told where a matrix lies and which tile is wanted, and gives zeros for what is outside. An example
of weight zero is asked for where there is nothing, and takes as long as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dalenius.learn.gpu import on

STEP, START = 8, 16
"""Rows and examples begin at multiples of so many numbers, matrices at multiples of so many bytes."""
LEAST = 128
"""Shorter rows are not worth it."""
SIZES = {"tall": 128, "broad": 128, "deep": 64, "num_warps": 8, "num_stages": 4}


@triton.jit
def _sum(
    lefts, rights, outs, weights, examples, each, positions, rows, columns,
    left_each, left_step, right_each, right_step,
    keep: tl.constexpr, tall: tl.constexpr, broad: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, broad)
    tile, share, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row, column = tile // across * tall, tile % across * broad
    left = tl.make_tensor_descriptor(
        tl.load(lefts + layer).to(tl.pointer_type(tl.bfloat16)),
        [examples, positions, rows], [left_each, left_step, 1], [1, deep, tall],
    )  # fmt: skip
    right = tl.make_tensor_descriptor(
        tl.load(rights + layer).to(tl.pointer_type(tl.bfloat16)),
        [examples, positions, columns], [right_each, right_step, 1], [1, deep, broad],
    )  # fmt: skip
    total = tl.zeros([tall, broad], tl.float32)
    for example in range(share * each, tl.minimum(share * each + each, examples)):
        weight = tl.load(weights + layer * examples + example)
        past = tl.where(weight != 0, 0, positions)
        found = tl.zeros([tall, broad], tl.float32)
        for start in range(0, positions, deep):
            near = left.load([example, past + start, row]).reshape(deep, tall)
            far = right.load([example, past + start, column]).reshape(deep, broad)
            found = tl.dot(tl.trans(near), far, found)
        total += found * weight
    m, n = row + tl.arange(0, tall), column + tl.arange(0, broad)
    out = tl.load(outs + layer).to(tl.pointer_type(tl.float32)) + share.to(tl.int64) * rows * columns
    places = out + m[:, None].to(tl.int64) * columns + n[None, :]
    inside = (m < rows)[:, None] & (n < columns)[None, :]
    if keep:
        total += tl.load(places, mask=inside, other=0.0)
    tl.store(places, total, mask=inside)


def fit(left: Tensor, right: Tensor) -> bool:
    """Whether tiles of such factors can be fetched, and are worth it."""
    both = (left, right)
    there = all(one.dtype == torch.bfloat16 and one.shape[2] >= LEAST for one in both)
    steps = all(step % STEP == 0 and step > 0 for one in both for step in one.stride()[:2])
    return there and steps and all(one.data_ptr() % START == 0 for one in both)


def _room(size: int, _align: int, _stream: int | None) -> Tensor:
    """For descriptions of matrices, which kernels write themselves."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def launch(kernel: Any, grid: tuple[int, ...], like: Tensor, *given: Any, **sizes: Any) -> None:
    """A kernel that describes its matrices, on the device of a tensor."""
    with on(like):
        triton.set_allocator(_room)
        kernel[grid](*given, **sizes)


def add(
    pointers: Sequence[Tensor], weights: Tensor, like: Sequence[Tensor], *, each: int, keep: bool
) -> None:
    """Onto or in place of totals: `pointers` say where left factors, right factors and totals begin.

    Every program takes `each` examples; where these are not all, totals have a part for each share of them.
    """
    left, right = like
    (examples, positions, rows), columns = left.shape, right.shape[2]
    tiles = triton.cdiv(rows, SIZES["tall"]) * triton.cdiv(columns, SIZES["broad"])
    steps = (*left.stride()[:2], *right.stride()[:2])
    grid = (tiles, triton.cdiv(examples, each), len(pointers[0]))
    sizes = examples, each, positions, rows, columns
    launch(_sum, grid, left, *pointers, weights, *sizes, *steps, keep=keep, **SIZES)
