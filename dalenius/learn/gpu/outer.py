"""Sums of outer products on a GPU: the norm of each example's, never written, and their weighted sum.

`squares` accumulates a tile of Σ_t l_t r_tᵀ for one example, squares it and adds it up: one number of a tile
leaves. `add` accumulates a tile for each example in turn, multiplies it by the example's weight in single
precision, and adds. Products of bfloat16 are exact in single precision; those of single precision are made of
three of TF32, with errors of about 2⁻²¹. Both read the same factors, so what is summed is what was measured.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LONG = 256
"""Of fewer positions an example is too short for a tile of its own."""
FILLED = 264
"""Programs that fill a GPU; with fewer tiles the examples are shared among several."""


@triton.jit
def _tile(
    left, right, row, column, positions, rows, columns, left_step, right_step,
    tall: tl.constexpr, broad: tl.constexpr, deep: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Σ_t l_t r_tᵀ of one example, at some rows and columns."""
    m, n, k = row + tl.arange(0, tall), column + tl.arange(0, broad), tl.arange(0, deep)
    lefts, rights = left + k[:, None] * left_step + m[None, :], right + k[:, None] * right_step + n[None, :]
    found = tl.zeros([tall, broad], tl.float32)
    for start in range(0, positions, deep):
        inside = (start + k < positions)[:, None]
        near = tl.load(lefts, mask=inside & (m < rows)[None, :], other=0.0)
        far = tl.load(rights, mask=inside & (n < columns)[None, :], other=0.0)
        found = tl.dot(tl.trans(near), far, found, input_precision=precision)
        lefts += deep * left_step
        rights += deep * right_step
    return found


@triton.jit
def _squares(
    left, right, out, positions, rows, columns, left_each, left_step, right_each, right_step,
    tall: tl.constexpr, broad: tl.constexpr, deep: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, broad)
    tile, example = tl.program_id(0), tl.program_id(1).to(tl.int64)
    left += example * left_each
    right += example * right_each
    found = _tile(
        left, right, tile // across * tall, tile % across * broad, positions, rows, columns,
        left_step, right_step, tall, broad, deep, precision,
    )  # fmt: skip
    tl.store(out + example * tl.num_programs(0) + tile, tl.sum(found * found))


@triton.jit
def _sum(
    left, right, weights, out, examples, each, positions, rows, columns,
    left_each, left_step, right_each, right_step,
    keep: tl.constexpr, tall: tl.constexpr, broad: tl.constexpr, deep: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, broad)
    tile, share = tl.program_id(0), tl.program_id(1)
    row, column = tile // across * tall, tile % across * broad
    total = tl.zeros([tall, broad], tl.float32)
    first = share.to(tl.int64) * each
    left += first * left_each
    right += first * right_each
    weights += first
    for _ in range(tl.minimum(each, examples - share * each)):
        found = _tile(
            left,
            right,
            row,
            column,
            positions,
            rows,
            columns,
            left_step,
            right_step,
            tall,
            broad,
            deep,
            precision,
        )
        total += found * tl.load(weights)
        left += left_each
        right += right_each
        weights += 1
    m, n = row + tl.arange(0, tall), column + tl.arange(0, broad)
    places = out + share.to(tl.int64) * rows * columns + m[:, None].to(tl.int64) * columns + n[None, :]
    inside = (m < rows)[:, None] & (n < columns)[None, :]
    if keep:
        total += tl.load(places, mask=inside, other=0.0)
    tl.store(places, total, mask=inside)


def _sizes(left: Tensor, right: Tensor) -> dict[str, object]:
    """Of tiles, by what is multiplied."""
    if left.dtype == torch.float32:
        return {"tall": 64, "broad": 64, "deep": 32, "precision": "tf32x3", "num_warps": 4, "num_stages": 3}
    small = min(left.shape[2], right.shape[2]) <= 64
    size = 64 if small else 128
    return {
        "tall": size,
        "broad": size,
        "deep": 64,
        "precision": "tf32",
        "num_warps": 4 if small else 8,
        "num_stages": 4,
    }


def _steps(tensor: Tensor) -> tuple[Tensor, int, int]:
    """With neighbouring numbers side by side, and the steps between examples and positions."""
    tensor = tensor if tensor.stride(2) == 1 or tensor.shape[2] == 1 else tensor.contiguous()
    return tensor, tensor.stride(0), tensor.stride(1)


def squares(left: Tensor, right: Tensor) -> Tensor:
    """‖Σ_t l_t r_tᵀ‖² of each example: left (examples, T, p), right (examples, T, d), of one type."""
    (examples, positions, rows), columns = left.shape, right.shape[2]
    (left, *lefts), (right, *rights) = _steps(left), _steps(right)
    sizes = _sizes(left, right)
    tiles = triton.cdiv(rows, sizes["tall"]) * triton.cdiv(columns, sizes["broad"])
    out = torch.empty(examples, tiles, device=left.device, dtype=torch.float32)
    _squares[(tiles, examples)](left, right, out, positions, rows, columns, *lefts, *rights, **sizes)
    return out.double().sum(1).float()


def add(left: Tensor, right: Tensor, weights: Tensor, total: Tensor, *, keep: bool) -> None:
    """Σ_b w_b Σ_t l_t r_tᵀ into a contiguous total of single precision, or onto it, for half factors."""
    if left.shape[1] < LONG:
        found = _split(left, right, weights)
        total.add_(found) if keep else total.copy_(found)
        return
    (examples, positions, rows), columns = left.shape, right.shape[2]
    (left, *lefts), (right, *rights) = _steps(left), _steps(right)
    sizes = _sizes(left, right)
    tiles = triton.cdiv(rows, sizes["tall"]) * triton.cdiv(columns, sizes["broad"])
    shared = max(1, min(examples, FILLED // tiles))
    each = -(-examples // shared)
    shared = -(-examples // each)
    out = total if shared == 1 else torch.empty(shared, rows, columns, device=left.device)
    _sum[(tiles, shared)](
        left, right, weights.float(), out, examples, each, positions, rows, columns, *lefts, *rights,
        keep=keep and shared == 1, **sizes,
    )  # fmt: skip
    if shared > 1:
        found = out.sum(0)
        total.add_(found) if keep else total.copy_(found)


def _split(left: Tensor, right: Tensor, weights: Tensor) -> Tensor:
    """As two products: weighted factors are the sum of two half ones, but for 2⁻¹⁷ of them."""
    if right.shape[2] < left.shape[2]:
        return _split(right, left, weights).t()
    weighted = (left * weights.float().view(-1, 1, 1)).flatten(0, 1)
    high = weighted.to(left.dtype)
    low = weighted.sub_(high).to(left.dtype)
    right = right.flatten(0, 1)
    found = torch.mm(high.t(), right, out_dtype=torch.float32)
    return found.add_(torch.mm(low.t(), right, out_dtype=torch.float32))
