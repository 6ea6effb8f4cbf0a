"""What each example adds to the scale and the shift of a normalization, in one pass over its inputs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dalenius.learn.gpu import on

BROAD, TALL = 128, 32
"""Numbers of a row, and rows, that are worked on at a time."""
SHARED = 1024
"""Programs that fill a GPU: with fewer columns the rows are shared among several."""


@triton.jit
def _shares(
    x, g, mean, deviation, scales, shifts, positions, width, each,
    tall: tl.constexpr, broad: tl.constexpr,
):  # fmt: skip
    column, example, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n, m = column * broad + tl.arange(0, broad), tl.arange(0, tall)
    scale, shift = tl.zeros([tall, broad], tl.float32), tl.zeros([tall, broad], tl.float32)
    last = tl.minimum(positions, (share + 1) * each)
    for start in range(share * each, last, tall):
        inside = start + m < last
        row = example.to(tl.int64) * positions + start + m
        places = row[:, None] * width + n[None, :]
        both = inside[:, None] & (n < width)[None, :]
        middle = tl.load(mean + row, mask=inside, other=0.0).to(tl.float32)
        factor = tl.load(deviation + row, mask=inside, other=0.0).to(tl.float32)
        back = tl.load(g + places, mask=both, other=0.0).to(tl.float32)
        given = tl.load(x + places, mask=both, other=0.0).to(tl.float32)
        normal = (given - middle[:, None]) * factor[:, None]
        scale += tl.where(both, normal * back, 0.0)
        shift += back
    out = (example.to(tl.int64) * tl.num_programs(2) + share) * width + n
    tl.store(scales + out, tl.sum(scale, 0), mask=n < width)
    tl.store(shifts + out, tl.sum(shift, 0), mask=n < width)


def shares(x: Tensor, g: Tensor, mean: Tensor, deviation: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """For rows x (examples, positions, width) and their gradients: (examples, width) of scale and shift."""
    width = x.shape[-1]
    x, g = x.reshape(examples, -1, width).contiguous(), g.reshape(examples, -1, width).contiguous()
    positions, columns = x.shape[1], triton.cdiv(width, BROAD)
    share = max(1, min(triton.cdiv(positions, 2 * TALL), SHARED // (columns * examples)))
    each = triton.cdiv(triton.cdiv(positions, share), TALL) * TALL
    share = triton.cdiv(positions, each)
    found = torch.empty(2, examples, share, width, dtype=torch.float32, device=x.device)
    with on(x):
        _shares[(columns, examples, share)](
            x, g, mean.contiguous(), deviation.contiguous(), *found, positions, width, each,
            tall=TALL, broad=BROAD, num_warps=4,
        )  # fmt: skip
    scales, shifts = found.sum(2)
    return scales, shifts
