"""What a GPU does by kernels of its own, in Triton; each has a twin in plain code, that is used elsewhere."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

from torch import Tensor


@lru_cache(1)
def _triton() -> bool:
    return find_spec("triton") is not None


def at_hand(*tensors: Tensor) -> bool:
    """Whether kernels can work on these."""
    return all(one.is_cuda for one in tensors) and _triton()
