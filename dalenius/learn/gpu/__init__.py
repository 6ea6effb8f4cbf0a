"""What a GPU does by kernels of its own, in Triton; each has a twin in plain code, that is used elsewhere."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn import functional

ALIGNED, MANY = 16, 1024
"""Rows of a multiple of so many numbers are read quickly; others, as of 50,257 symbols, are not, which
matters where rows are long."""


@lru_cache(1)
def _triton() -> bool:
    return find_spec("triton") is not None


def at_hand(*tensors: Tensor) -> bool:
    """Whether kernels can work on these."""
    return all(one.is_cuda for one in tensors) and _triton()


def room(shape: torch.Size, like: Tensor, dtype: torch.dtype) -> Tensor:
    """For a tensor whose rows begin where a GPU reads quickly; what lies between them is zero."""
    odd = shape[-1] % ALIGNED
    if not like.is_cuda or not odd or shape[-1] < MANY:
        return torch.empty(shape, dtype=dtype, device=like.device)
    longer = torch.empty(*shape[:-1], shape[-1] + ALIGNED - odd, dtype=dtype, device=like.device)
    longer[..., shape[-1] :] = 0
    return longer[..., : shape[-1]]


def aligned(tensor: Tensor) -> Tensor:
    """The same numbers, in such rows."""
    odd = tensor.shape[-1] % ALIGNED and tensor.shape[-1] >= MANY and tensor.is_cuda
    if not odd or (tensor.dim() > 1 and tensor.stride(-1) == 1 and tensor.stride(-2) % ALIGNED == 0):
        return tensor
    return room(tensor.shape, tensor, tensor.dtype).copy_(tensor)


def products(left: Tensor, right: Tensor) -> Tensor:
    """For each example a product of matrices, in single precision at least; that of half numbers is exact."""
    if left.dtype in (torch.float16, torch.bfloat16):
        return torch.bmm(left, right, out_dtype=torch.float32)
    return torch.bmm(left, right)


def times(rows: Tensor, matrix: Tensor) -> Tensor:
    """A product of matrices, of rows that may be `aligned`."""
    size = rows.shape[-1]
    if not rows.is_cuda or rows.dim() < 2 or rows.is_contiguous() or rows.stride(-2) % ALIGNED:
        return rows.matmul(matrix)
    length = rows.stride(-2)
    longer = rows.as_strided((*rows.shape[:-1], length), rows.stride())
    return longer.matmul(functional.pad(matrix, (0, 0, 0, length - size)))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b, in rows that are `aligned`."""
    odd = weight.shape[0] % ALIGNED
    if not x.is_cuda or not odd or weight.shape[0] < MANY or bias is not None:
        return functional.linear(x, weight, bias)
    longer = functional.linear(x, functional.pad(weight.to(x.dtype), (0, 0, 0, ALIGNED - odd)))
    return longer[..., : weight.shape[0]]
