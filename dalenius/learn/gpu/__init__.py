"""What a GPU does by kernels of its own, in Triton; each has a twin in plain code, that is used elsewhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional

ALIGNED, MANY = 16, 1024
"""Rows of a multiple of so many numbers are read quickly; others, as of 50,257 symbols, are not, which
matters where rows are long."""

_ROOM = "_dalenius_room"


@lru_cache(1)
def _triton() -> bool:
    return find_spec("triton") is not None


def at_hand(*tensors: Tensor) -> bool:
    """Whether kernels can work on these."""
    return all(one.is_cuda for one in tensors) and _triton()


def room(shape: torch.Size, like: Tensor, dtype: torch.dtype) -> Tensor:
    """For a tensor whose rows begin where a GPU reads quickly, with zeros between them."""
    odd = shape[-1] % ALIGNED if like.is_cuda and shape else 0
    if not odd or shape[-1] < MANY:
        return torch.empty(shape, dtype=dtype, device=like.device)
    longer = torch.empty(*shape[:-1], shape[-1] + ALIGNED - odd, dtype=dtype, device=like.device)
    longer[..., shape[-1] :].zero_()
    found = longer[..., : shape[-1]]
    setattr(found, _ROOM, True)
    return found


def aligned(tensor: Tensor) -> Tensor:
    """The same numbers, in such rows."""
    if not tensor.is_cuda or tensor.dim() < 2 or tensor.shape[-1] < MANY or not tensor.shape[-1] % ALIGNED:
        return tensor
    if hasattr(tensor, _ROOM):
        return tensor
    found = room(tensor.shape, tensor, tensor.dtype)
    found.copy_(tensor)
    return found


def on(tensor: Tensor) -> AbstractContextManager[object]:
    """Kernels are run by the device that is current: here, that of the tensor."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def precise(tensor: Tensor) -> AbstractContextManager[object]:
    """Convolutions as precise as norms are, whatever a GPU does elsewhere."""
    cudnn = torch.backends.cudnn
    if not tensor.is_cuda or not cudnn.allow_tf32:
        return nullcontext()
    return cudnn.flags(cudnn.enabled, cudnn.benchmark, cudnn.benchmark_limit, cudnn.deterministic, False)


def products(left: Tensor, right: Tensor) -> Tensor:
    """For each example a product of matrices, in single precision at least; that of half numbers is exact."""
    if left.dtype in (torch.float16, torch.bfloat16):
        return torch.bmm(left, right, out_dtype=torch.float32)
    return torch.bmm(left, right)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b, in rows that are `aligned`."""
    odd = weight.shape[0] % ALIGNED
    if not x.is_cuda or not odd or weight.shape[0] < MANY or bias is not None:
        return functional.linear(x, weight, bias)
    longer = functional.linear(x, functional.pad(weight.to(x.dtype), (0, 0, 0, ALIGNED - odd)))
    return longer[..., : weight.shape[0]]


def times(rows: Tensor, matrix: Tensor) -> Tensor:
    """A product of rows that are `aligned`, with the zeros between them where there are some."""
    # Nothing else has zeros there, though its rows may lie as far apart.
    if not hasattr(rows, _ROOM) or traced(rows):
        return rows.matmul(matrix)
    length, step = rows.shape[-1], rows.stride(-2)
    longer = rows.as_strided((*rows.shape[:-1], step), rows.stride())
    return longer.matmul(functional.pad(matrix, (0, 0, 0, step - length)))


def traced(tensor: Tensor) -> bool:
    """Whether a pass is being traced for torch's compiler, which aligns rows by itself."""
    return isinstance(tensor, FakeTensor)
