"""Which tensors of a pass hold examples, and where in them, as the rules for layers ask for it.

What is known of a tensor is its state (`dataflow.states`). A rule sees `outer`: read in row-major order, a
tensor that holds B examples is an array of shape (outer, B, inner). `outer` is 1 where the batch leads;
reshaping leaves it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dalenius.learn.dataflow import states
from dalenius.learn.dataflow.states import AXIS, PLACED, TOTAL, State, Tag, put_tag, tag_of

MIXED = 0
"""In place of `outer`: the tensor depends on private data, but not on one identifiable example per entry."""
_DERIVED = "_dalenius_derived"
_RAGGED = "_dalenius_ragged"
TOKEN = "_dalenius_example"
"""The attribute of a tensor that follows from the example of one call of a loss of one example."""


class Pass:
    """The number of the pass that tensors are being marked for; numbers are never used twice."""

    number = 0


def mark(tensor: Tensor, outer: int) -> None:
    """Say where a tensor of the present pass holds examples."""
    known = tag_of(tensor)
    current = None if known is None or known.number != Pass.number else known.state
    if current is not None and outer and current.kind in PLACED and current.outer == outer:
        return
    state = State(AXIS, outer) if outer else State(states.MIXED)
    put_tag(tensor, Tag(state, Pass.number, 1 << 62))


def outer_of(tensor: Tensor) -> int | None:
    """Return where a tensor holds examples, `MIXED`, or None for a public one without a batch axis."""
    tag = tag_of(tensor)
    if tag is None:
        return None
    kind = tag.state.kind
    return tag.state.outer if kind in PLACED else MIXED if kind in (TOTAL, states.MIXED) else None


def marks(tensor: Tensor) -> dict[str, Any]:
    """Return all that is known of a tensor."""
    known: dict[str, Any] = {"tag": tag_of(tensor)}
    return known | ({_DERIVED: True} if derived(tensor) else {})


def put_marks(tensor: Tensor, known: Mapping[str, Any]) -> None:
    """Say the same of another tensor."""
    put_tag(tensor, known["tag"])
    if _DERIVED in known:
        derive(tensor)


def derive(tensor: Tensor) -> None:
    """Say that a tensor follows from parameters alone."""
    setattr(tensor, _DERIVED, True)


def derived(tensor: Tensor) -> bool:
    """Return whether a tensor was said to follow from parameters alone."""
    return hasattr(tensor, _DERIVED)


def is_of_example(tensor: Tensor) -> bool:
    """Return whether a tensor follows from the example of a loss of one example, now or earlier."""
    return getattr(tensor, TOKEN, None) is not None


def note_ragged(tensor: Tensor, source: Tensor, mask: Tensor) -> None:
    """Say that a tensor holds those entries of `source` that `mask` picks, example after example.

    That counts until one of the three is written to.
    """
    setattr(tensor, _RAGGED, (source, mask, _versions(tensor, source, mask)))


def _versions(*tensors: Tensor) -> tuple[int, ...]:
    """Return how often tensors were written to."""
    return tuple(0 if tensor.is_inference() else tensor._version for tensor in tensors)


def ragged(tensor: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the padded tensor and the mask that a tensor was picked by, if that was noted."""
    known: tuple[Tensor, Tensor, tuple[int, ...]] | None = getattr(tensor, _RAGGED, None)
    if known is None or known[2] != _versions(tensor, *known[:2]):
        return None
    return known[:2]


def own(tensor: Tensor) -> Tensor:
    """The same memory as a tensor that is no view: nobody may write into a view made by a custom function."""
    found: Tensor = torch.ops.aten._unsafe_view(tensor, tensor.shape) if tensor._is_view() else tensor
    return found


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors among arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from tensors_in(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_in(one)
    elif type(value) is slice:
        yield from tensors_in((value.start, value.stop, value.step))


def found_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The same of a call, quickly where arguments are not nested."""
    found: list[Tensor] = []
    for one in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, tuple | list | dict | slice):
            found.extend(tensors_in(one))
    return found


_PLAIN = str | bytes | bytearray | memoryview | range | np.ndarray | np.generic
"""Sequences that hold no tensors."""


def other_sequence(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the type of an argument that torch reads as a list, and whose entries are not seen; else "".

    torch takes any object with a length and entries for a list, such as a deque or a class of the user's.
    """
    for value in (*args, *kwargs.values()) if kwargs else args:
        name = _other_sequence(value)
        if name:
            return name
    return ""


def _other_sequence(value: Any) -> str:
    kind = type(value)
    if value is None or kind in (int, float, bool, str, Tensor, torch.dtype, torch.device):
        return ""
    if isinstance(value, tuple | list):
        return next((name for entry in value if (name := _other_sequence(entry))), "")
    if isinstance(value, dict):
        return next((name for entry in value.values() if (name := _other_sequence(entry))), "")
    if isinstance(value, Tensor | _PLAIN | type | torch.nn.Module) or kind.__module__.startswith("torch"):
        return ""
    entries = hasattr(kind, "__getitem__") or hasattr(kind, "__iter__")
    return kind.__name__ if entries else ""


def replaced(value: Any, new: Callable[[Tensor], Any]) -> Any:
    """The same arguments with other tensors."""
    if isinstance(value, Tensor):
        return new(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(one, new) for one in value))
    if isinstance(value, tuple | list):
        return type(value)(replaced(one, new) for one in value)
    if type(value) is dict:
        return {key: replaced(one, new) for key, one in value.items()}
    if isinstance(value, dict):
        # Outputs with named fields are such, and stay so.
        found = copy(value)
        for key, one in value.items():
            found[key] = replaced(one, new)
        return found
    return value


def batch_dimension(shape: tuple[int, ...], outer: int, examples: int) -> int | None:
    """The dimension that starts with a new example, where there is one."""
    before = 1
    for place, size in enumerate(shape):
        if before == outer and size % examples == 0 and (size > 1 or examples == 1):
            return place
        before *= size
    return None


def by_example(tensor: Tensor, outer: int, examples: int, trailing: int) -> Tensor:
    """As (examples, positions, …), the last `trailing` dimensions kept."""
    last = tensor.shape[tensor.dim() - trailing :]
    if not examples:
        return tensor.reshape(0, 1, *last)
    if outer == 1 or examples == 1:
        return tensor.reshape(examples, -1, *last)
    inner = math.prod(tensor.shape[: tensor.dim() - trailing]) // (outer * examples)
    return (
        tensor.reshape(outer, examples, inner, *last).transpose(0, 1).reshape(examples, outer * inner, *last)
    )
