"""Functions of tensors that return plain Python values, and which of these are public.

A tensor that a function returns has a state. A number has none, so that only values that no example changes
may be plain: what kind of tensor it is, and how many dimensions it has. Sizes and values that are read out in
the ways people do have rules of their own (`reads`); whatever else returns a number is refused.
"""

from __future__ import annotations

import sys
from typing import Any

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import LIBRARIES
from dalenius.learn.dataflow.provenance import user_line

_KINDS = "dtype device layout requires_grad is_leaf names has_names retains_grad output_nr type itemsize"
_IS = (
    "is_cuda is_cpu is_sparse is_sparse_csr is_quantized is_mkldnn is_meta is_mps is_xla is_xpu is_nested "
    "is_floating_point is_complex is_signed is_pinned is_shared is_inference is_conj is_neg "
    "is_coalesced is_tensor is_distributed _is_zerotensor is_vulkan is_ipu is_mtia is_maia"
)
_OTHER = (
    "dim ndim ndimension dense_dim sparse_dim element_size get_device result_type can_cast promote_types "
    "__repr__ __str__ __format__ __hash__ __dir__ _backward_hooks layer_norm "
    "_nested_tensor_size type_as finfo iinfo"
)
METADATA = frozenset(f"{_KINDS} {_IS} {_OTHER}".split())
"""Functions and attributes whose value is the same whatever the examples are, and however many."""
_LAYOUT = frozenset(("is_contiguous", "_version", "_is_view", "_base"))
"""What depends on sizes, and is asked for by libraries that choose how to compute the same."""
_IDENTITIES = frozenset(("_base",))
"""What tells sizes by being None or a tensor."""
_HANDING_ON = frozenset(("torch.overrides", "torch._tensor"))
"""Modules between a caller and the tape: methods of tensors that are written in Python."""
_VALUES = int, float, complex, bytes


def check_result(name: str, result: Any) -> None:
    """Refuse a plain value that a function has computed from private examples, or from how many they are.

    Args:
        name: What the function that was called is called.
        result: What it returned.
    """
    if name not in _IDENTITIES and (result is None or name in METADATA or not _is_plain(result)):
        return
    if name in _LAYOUT and _is_asked_by_libraries():
        return
    raise NotSound(
        f"{name} gives a plain value that depends on private examples{user_line()}.",
        remedy="Use item() to print a value, and operations of tensors to compute with it.",
    )


def _is_asked_by_libraries() -> bool:
    """Return whether the functions of a library, and not the user's code, asked for a value."""
    frame: Any = sys._getframe(1)
    while frame is not None and _hands_on(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in LIBRARIES


def _hands_on(module: str) -> bool:
    return module in _HANDING_ON or module.startswith("dalenius.learn")


def _is_plain(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(map(_is_plain, value))
    return isinstance(value, _VALUES) and type(value).__module__ == "builtins"
