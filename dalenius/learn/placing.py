"""Functions of torch that move entries and compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

Function = Callable[..., Any]
_MOVES = (
    "transpose permute movedim moveaxis swapaxes swapdims t select narrow unbind chunk split index_select "
    "__getitem__ flip roll squeeze unsqueeze tensor_split expand expand_as broadcast_to repeat tile "
    "repeat_interleave diagonal rot90 view reshape flatten unflatten ravel view_as reshape_as contiguous "
    "clone"
)


def named(names: str) -> list[Function]:
    """Return the functions of torch, and methods of tensors, of these names."""
    homes = (torch, torch.Tensor, functional)
    functions = [getattr(home, name) for name in names.split() for home in homes if hasattr(home, name)]
    return list(dict.fromkeys(functions))


MOVES = frozenset((*named(_MOVES), *(getattr(torch.Tensor, name).__get__ for name in ("T", "mT", "H", "mH"))))
