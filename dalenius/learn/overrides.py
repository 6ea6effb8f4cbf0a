"""Code of the user's that torch runs beneath its functions, where a private pass does not see it.

Tensor classes of the user's, and modes on the stacks of torch, are called by the functions that a tape runs.
What they do there is not followed, so that they are refused in a private loop.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from dalenius.errors import NotSound
from dalenius.learn.dataflow.provenance import user_line

_OWN = "torch.", "dalenius."
_CLASSES = "torch.nn.parameter.", "torch.distributed.", "torch._subclasses.", "dalenius."
"""Where classes of tensors come from that are followed."""
_KNOWN: set[type] = {Tensor, torch.nn.Parameter}


def is_own(kind: type) -> bool:
    """Return whether a class is one of torch or of this library."""
    return f"{kind.__module__}.".startswith(_OWN)


def check_anomalies() -> None:
    """Refuse torch's search for NaN in backward passes: it ends a run by the gradient of a single example."""
    if torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled():
        raise NotSound(
            f"torch.autograd.detect_anomaly ends a backward pass at the first NaN{user_line()}: whether it "
            "does depends on single examples.",
            remedy="Pass check_nan=False, or leave it out: gradients that are not finite count as zero.",
        )


def check_class(kind: type) -> None:
    """Refuse tensors of a class that is not followed: what it overrides would not be watched."""
    if kind in _KNOWN:
        return
    if not f"{kind.__module__}.".startswith(_CLASSES):
        raise NotSound(
            f"A tensor of the class {kind.__name__}{user_line()} runs code of its own inside of torch's "
            "functions, which is not watched.",
            remedy="Pass plain tensors: tensor.as_subclass(torch.Tensor).",
        )
    _KNOWN.add(kind)


def nested() -> NotSound:
    """Return the refusal of a nested tensor, which is made of others without a function that is seen."""
    return NotSound(
        f"A nested tensor{user_line()} may hold private examples, and is not followed.",
        remedy="Pad the entries to a public length, and use a mask.",
    )


def check_modes() -> None:
    """Refuse modes of the user's that torch calls beneath the functions that a private pass sees."""
    if torch._C._len_torch_dispatch_stack():
        for mode in _get_current_dispatch_mode_stack():
            _check_mode(mode)


def check_function_modes(tape: Any) -> None:
    """Refuse a stack of function modes that a tape is not on, or that has modes of the user's beneath it.

    Args:
        tape: The function mode that watches the loop.
    """
    stack = torch.overrides._get_current_function_mode_stack()
    if not any(mode is tape for mode in stack):
        raise NotSound(
            "The loop is not watched any more: private.loader was advanced inside of a context of torch, "
            "such as torch.device(...), that ended before the batch was used.",
            remedy="Put the context around the whole loop, or only around what is computed from the batch.",
        )
    for mode in stack:
        if mode is tape:
            return
        _check_mode(mode)


def _check_mode(mode: Any) -> None:
    kind = type(mode)
    if not is_own(kind):
        raise NotSound(
            f"The mode {kind.__name__} runs code inside of the functions of torch{user_line()}, which is not "
            "watched.",
            remedy="Leave the mode before the private loop begins.",
        )
