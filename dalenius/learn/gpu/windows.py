"""Norms of the gradients of filters on a GPU, example by example, without windows laid out.

A tile of Σ_t g_t x_tᵀ for one example has some filters as rows and some of channels·kernel as columns;
entries of windows are read where they lie in the input, or are zero beyond its edge. One number of a tile
leaves.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _squares(
    x, g, out, channels, height, width, filters, out_height, out_width,
    stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w,
    kernel_h: tl.constexpr, kernel_w: tl.constexpr,
    tall: tl.constexpr, broad: tl.constexpr, deep: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    columns, places = channels * kernel_h * kernel_w, out_height * out_width
    across = tl.cdiv(columns, broad)
    tile, example = tl.program_id(0), tl.program_id(1).to(tl.int64)
    x += example * channels * height * width
    g += example * filters * places
    m, n = tile // across * tall + tl.arange(0, tall), tile % across * broad + tl.arange(0, broad)
    channel, down, right = n // (kernel_h * kernel_w), n // kernel_w % kernel_h, n % kernel_w
    top, left = down * dilation_h - pad_h, right * dilation_w - pad_w
    found = tl.zeros([tall, broad], tl.float32)
    for start in range(0, places, deep):
        place = start + tl.arange(0, deep)
        inside = place < places
        h = (place // out_width * stride_h)[:, None] + top[None, :]
        w = (place % out_width * stride_w)[:, None] + left[None, :]
        seen = (h >= 0) & (h < height) & (w >= 0) & (w < width) & inside[:, None] & (n < columns)[None, :]
        entries = tl.load(x + (channel[None, :] * height + h) * width + w, mask=seen, other=0.0)
        mask = (m < filters)[:, None] & inside[None, :]
        grads = tl.load(g + m[:, None] * places + place[None, :], mask=mask, other=0.0)
        found = tl.dot(grads, entries, found, input_precision=precision)
    tl.store(out + example * tl.num_programs(0) + tile, tl.sum(found * found))


def squares(
    x: Tensor, g: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Tensor:  # fmt: skip
    """‖Σ_t g_t x_tᵀ‖² of each example: of inputs (examples, channels, h, w) and gradients of outputs."""
    x, g = x.contiguous(), g.contiguous()
    columns = x.shape[1] * kernel[0] * kernel[1]
    single = x.dtype == torch.float32
    rows_of, columns_of = (min(64, max(16, triton.next_power_of_2(one))) for one in (g.shape[1], columns))
    tiles = triton.cdiv(g.shape[1], rows_of) * triton.cdiv(columns, columns_of)
    out = torch.empty(x.shape[0], tiles, device=x.device, dtype=torch.float32)
    _squares[(tiles, x.shape[0])](
        x, g, out, *x.shape[1:], *g.shape[1:], *stride, *padding, *dilation, *kernel,
        rows_of, columns_of, 32, "tf32x3" if single else "tf32", num_warps=4, num_stages=3,
    )  # fmt: skip
    return out.double().sum(1).float()
