"""Sums of outer products on a GPU: the norm of each example's, never written, and their weighted sum.

`squares` accumulates a tile of Σ_t l_t r_tᵀ for one example, squares it and adds it up: one number of a tile
leaves. Where pairs of positions are fewer than entries, they take their place (`pairs`). `add` accumulates a
tile for each example in turn, multiplies it by the example's weight in single precision, and adds. Products
of bfloat16 are exact in single precision; those of single precision are made of three of TF32, with errors of
about 2⁻²¹. Both read the same factors, so what is summed is what was measured.
An example of weight zero is left out, whatever its factors are.

All layers of one shape are done at once: a GPU is asked a few times in place of a hundred, and is filled.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dalenius.learn.gpu import on, pairs, tiles

FILLED = 264
"""Programs that fill a GPU; with fewer tiles the examples are shared among several."""

VAST = 1 << 14
"""Rows for which broader tiles are quicker."""
Factors = tuple[Tensor, Tensor]
"""Left (examples, T, p) and right (examples, T, d), of one type."""


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
    lefts, rights, out, positions, rows, columns, left_each, left_step, right_each, right_step,
    kind: tl.constexpr, tall: tl.constexpr, broad: tl.constexpr, deep: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, broad)
    tile, example, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    left = tl.multiple_of(tl.load(lefts + layer).to(tl.pointer_type(kind)), 16)
    right = tl.multiple_of(tl.load(rights + layer).to(tl.pointer_type(kind)), 16)
    left += example.to(tl.int64) * left_each
    right += example.to(tl.int64) * right_each
    found = _tile(
        left, right, tile // across * tall, tile % across * broad, positions, rows, columns,
        left_step, right_step, tall, broad, deep, precision,
    )  # fmt: skip
    place = (layer * tl.num_programs(1) + example) * tl.num_programs(0) + tile
    tl.store(out + place, tl.sum(found * found))


@triton.jit
def _sum(
    lefts, rights, outs, weights, examples, each, positions, rows, columns,
    left_each, left_step, right_each, right_step,
    kind: tl.constexpr, keep: tl.constexpr,
    tall: tl.constexpr, broad: tl.constexpr, deep: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, broad)
    tile, share, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row, column = tile // across * tall, tile % across * broad
    first = share.to(tl.int64) * each
    left = tl.multiple_of(tl.load(lefts + layer).to(tl.pointer_type(kind)), 16) + first * left_each
    right = tl.multiple_of(tl.load(rights + layer).to(tl.pointer_type(kind)), 16) + first * right_each
    weights += layer * examples + first
    total = tl.zeros([tall, broad], tl.float32)
    for _ in range(tl.minimum(each, examples - share * each)):
        weight = tl.load(weights)
        if weight != 0:
            found = _tile(
                left, right, row, column, positions, rows, columns, left_step, right_step,
                tall, broad, deep, precision,
            )  # fmt: skip
            total += found * weight
        left += left_each
        right += right_each
        weights += 1
    m, n = row + tl.arange(0, tall), column + tl.arange(0, broad)
    out = tl.load(outs + layer).to(tl.pointer_type(tl.float32)) + share.to(tl.int64) * rows * columns
    places = out + m[:, None].to(tl.int64) * columns + n[None, :]
    inside = (m < rows)[:, None] & (n < columns)[None, :]
    if keep:
        total += tl.load(places, mask=inside, other=0.0)
    tl.store(places, total, mask=inside)


def _sizes(left: Tensor, right: Tensor) -> dict[str, Any]:
    """Of tiles, by what is multiplied."""
    if left.dtype == torch.float32:
        sizes = {"tall": 64, "broad": 64, "deep": 32, "num_warps": 4, "num_stages": 3}
        return {"kind": tl.float32, "precision": "tf32x3", **sizes}
    size = 64 if min(left.shape[2], right.shape[2]) <= 64 else 128
    broad = 2 * size if left.shape[2] >= VAST else size
    sizes = {"tall": size, "broad": broad, "deep": 64, "num_warps": size // 16, "num_stages": 4}
    return {"kind": tl.bfloat16, "precision": "tf32", **sizes}


def ready(left: Tensor, right: Tensor) -> Factors:
    """With neighbouring numbers side by side, beginning where a GPU reads quickly."""
    return _ready(left), _ready(right)


def _ready(tensor: Tensor) -> Tensor:
    fits = tensor.stride(2) == 1 and tensor.data_ptr() % 16 == 0
    return tensor if fits else tensor.clone(memory_format=torch.contiguous_format)


def kind(layer: Factors) -> Hashable:
    """What layers have in common that are done at once."""
    left, right = layer
    return left.dtype, left.device, left.shape, right.shape, left.stride(), right.stride()


def _one_kind(layers: Sequence[Factors]) -> Factors:
    """The first: kernels read all layers by its sizes and steps."""
    if len(set(map(kind, layers))) != 1:
        raise ValueError("layers must be of one type, shape and memory layout")
    return layers[0]


def _fits(total: Tensor, left: Tensor, size: int) -> bool:
    there = total.device == left.device and total.dtype == torch.float32
    return there and total.is_contiguous() and total.numel() == size


def _addresses(*lists: Sequence[Tensor]) -> Tensor:
    """Where the tensors of some lists begin, a row for each list."""
    rows = [[one.data_ptr() for one in some] for some in lists]
    return torch.tensor(rows).pin_memory().to(lists[0][0].device, non_blocking=True)


def squares(layers: Sequence[Factors]) -> Tensor:
    """‖Σ_t l_t r_tᵀ‖² of each layer and example, for factors that are `ready`, and of one shape."""
    left, right = _one_kind(layers)
    (examples, positions, rows), columns = left.shape, right.shape[2]
    lefts, rights = pointers = _addresses([one for one, _ in layers], [one for _, one in layers])
    if all(tiles.fit(*one) for one in layers) and pairs.cheaper(positions, rows, columns):
        return pairs.squares(layers, pointers)
    sizes = _sizes(left, right)
    many = triton.cdiv(rows, sizes["tall"]) * triton.cdiv(columns, sizes["broad"])
    out = torch.empty(len(layers), examples, many, device=left.device, dtype=torch.float32)
    steps = (*left.stride()[:2], *right.stride()[:2])
    with on(left):
        _squares[(many, examples, len(layers))](lefts, rights, out, positions, rows, columns, *steps, **sizes)
    return out.sum(2, dtype=torch.float64)


def add(layers: Sequence[Factors], weights: Tensor, totals: Sequence[Tensor], *, keep: bool) -> None:
    """Σ_b w_b Σ_t l_t r_tᵀ into contiguous totals of single precision, or onto them.

    Weights are (layers, examples).
    """
    left, right = _one_kind(layers)
    (examples, positions, rows), columns = left.shape, right.shape[2]
    if not all(_fits(total, left, rows * columns) for total in totals):
        raise ValueError("totals must be contiguous, in single precision, and lie where the factors do")
    sizes, fast = _sizes(left, right), all(tiles.fit(*one) for one in layers)
    tall, broad = (tiles.SIZES if fast else sizes)["tall"], (tiles.SIZES if fast else sizes)["broad"]
    many = triton.cdiv(rows, tall) * triton.cdiv(columns, broad)
    shared = max(1, min(examples, FILLED // (many * len(layers))))
    each = -(-examples // shared)
    shared = -(-examples // each)
    partial = (len(layers), shared, rows, columns) if shared > 1 else (0,)
    parts = torch.empty(partial, dtype=torch.float32, device=left.device)
    outs = list(parts) if shared > 1 else totals
    pointers = _addresses([one for one, _ in layers], [one for _, one in layers], outs)
    weights, keeps = weights.float().contiguous(), keep and shared == 1
    if fast:
        tiles.add(list(pointers), weights, (left, right), each=each, keep=keeps)
    else:
        steps = (*left.stride()[:2], *right.stride()[:2])
        with on(left):
            _sum[(many, shared, len(layers))](
                *pointers, weights, examples, each, positions, rows, columns, *steps, keep=keeps, **sizes
            )
    if shared > 1:
        for total, part in zip(totals, parts, strict=True):
            found = part.sum(0).view(total.shape)
            total.add_(found) if keep else total.copy_(found)
