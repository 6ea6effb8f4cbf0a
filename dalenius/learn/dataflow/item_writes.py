"""The state of a tensor after `tensor[index] = value`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    PLACED,
    POSITION,
    PRIVATE,
    UNIFORM,
    VARIED,
    VIRTUAL,
    State,
    locate,
    mixed,
    outer_at,
)

Reader = Callable[[Tensor], State | None]
Getter = Callable[[State, Any], State | None]
"""From the state of a tensor and an index to the state of what is picked."""
_NAME = "__setitem__"


def after_write(target: Tensor, index: Any, value: Any, state: Reader, picked: Getter) -> State | None:
    """Return the state of `target` after a write.

    Args:
        target: The tensor that is written to.
        index: Where.
        value: What is written: a tensor or a number.
        state: Returns the state of a tensor.
        picked: Returns the state of `target[index]`, if `target` had a given state.
    """
    old, new = state(target), state(value) if isinstance(value, Tensor) else None
    if any(known is not None and known.power for known in (old, new)):
        return mixed(_NAME, "writes values that the size of the batch has scaled")
    mask = _mask(index)
    if mask is not None:
        return _masked(old, state(mask), mask, value, new)
    private = [
        known for part in _parts(index) if isinstance(part, Tensor) and (known := state(part)) is not None
    ]
    if old is None and new is None and not any(known.kind in PRIVATE for known in private):
        return None
    if new is not None and new.kind in PRIVATE and new.kind != AXIS:
        return new if new.origin else mixed(_NAME, "writes a sum over examples into a tensor")
    for whole in _candidates(old, target):
        view = picked(whole, index)
        if view is None or view.kind not in PLACED or view.shape is None:
            continue
        if _fits(view, value, new):
            public = whole.kind == COPIES and (new is None or new.kind != AXIS) and not private
            return whole._replace(kind=COPIES if public else AXIS)
    public = new is None or new.kind not in PRIVATE
    if old is not None and old.kind in (UNIFORM, VARIED, POSITION) and public and not private:
        return State(VARIED, shape=old.shape)
    return mixed(_NAME, "writes along the batch, or to some examples only")


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _mask(index: Any) -> Tensor | None:
    """Return the index, where it is one tensor of truth values."""
    (first, *rest) = _parts(index) or (None,)
    if rest or not isinstance(first, Tensor) or first.dtype not in (torch.bool, torch.uint8):
        return None
    return first


def _masked(
    old: State | None, known: State | None, mask: Tensor, value: Any, new: State | None
) -> State | None:
    """Return the state after a number was written where a mask of the same batch says so."""
    single = not isinstance(value, Tensor) or (value.numel() == 1 and new is None)
    private = known is not None and known.kind in PRIVATE
    if old is None and not private and new is None:
        return None
    if single and known is not None and known.kind == AXIS and old is not None:
        if old.kind == AXIS and old.outer == known.outer:
            return old
        lead = None if old.shape is None or known.shape is None else old.shape[: len(known.shape)]
        if old.kind in (COPIES, UNIFORM) and lead is not None and lead == known.shape:
            return State(AXIS, known.outer, old.shape)
    if single and old is not None and not private and known is not None and known.kind in (UNIFORM, COPIES):
        return old
    return mixed(
        _NAME,
        "writes through another mask than the one that selected the values, or one value after the other",
    )


def _candidates(old: State | None, target: Tensor) -> list[State]:
    """Return the states with a batch axis that the target may have."""
    if old is None or old.shape is None:
        return []
    if old.kind in PLACED:
        # Positions are alike for no two examples, also where a write leaves some.
        return [old] if old.kind != POSITION else []
    if old.kind != UNIFORM:
        return []
    long = [i for i, size in enumerate(old.shape) if size and size % VIRTUAL == 0]
    return [State(COPIES, outer_at(old.shape, i, 1), old.shape) for i in long]


def _fits(view: State, value: Any, new: State | None) -> bool:
    """Return whether a value varies along the batch only where the examples it is written to do."""
    assert view.shape is not None
    if not isinstance(value, Tensor) or new is None:
        if not isinstance(value, Tensor) or value.numel() == 1:
            return True
        place = locate(view.shape, view.outer, VIRTUAL)
        if place is None:
            return False
        dimension = place[0] - (len(view.shape) - value.dim())
        return dimension < 0 or value.shape[dimension] == 1 or value.stride(dimension) == 0
    if new.kind == UNIFORM:
        return True
    if new.shape is None or new.kind not in (AXIS, COPIES):
        return False
    ours, theirs = locate(view.shape, view.outer, VIRTUAL), locate(new.shape, new.outer, VIRTUAL)
    if ours is None or theirs is None:
        return False
    return (ours[0] - len(view.shape), ours[1]) == (theirs[0] - len(new.shape), theirs[1])
