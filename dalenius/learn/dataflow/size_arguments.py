"""Which arguments of which functions may be the size of a batch.

The number of examples n is private. A function that computes with it gives values that depend on n, in a way
that may not be seen from the operators that it is made of: some compute in C++ before any operator runs, and
some stand-ins (`equivalents`) leave arguments out. So n is admitted here, and nowhere else: as a size of a
result, as an end of a slice, as a number of draws, and as a factor or divisor, whose power of n is counted.
Whatever else is given a size of the batch has mixed results. Rules of operators look at sizes once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dalenius.learn.dataflow.private_numbers import BatchSize
from dalenius.learn.dataflow.states import State, multiplicity

REASON = "computes with the size of the batch, which is private"
_MOST = 1 << 10


class _Slots(NamedTuple):
    """Arguments of a function: those from `first` to `last`, by position, and those of some names."""

    first: int
    last: int
    names: frozenset[str]
    grouped: bool = False
    """Whether a size stands in a tuple: a number by itself at one of these positions is another argument."""


def _slots(first: int, last: int, names: str, *, grouped: bool = False) -> _Slots:
    return _Slots(first, last, frozenset(names.split()), grouped)


_TABLE: dict[str, _Slots] = {
    "zeros ones empty rand randn": _slots(0, _MOST, "size"),
    "full empty_strided empty_permuted": _slots(0, 0, "size"),
    "randint": _slots(1, 2, "size", grouped=True),
    "normal": _slots(2, 2, "size"),
    "arange": _slots(0, 1, "start end"),
    "linspace logspace": _slots(2, 2, "steps"),
    "randperm": _slots(0, 0, "n"),
    "eye": _slots(0, 1, "n m"),
    "new_zeros new_ones new_empty new": _slots(1, _MOST, "size"),
    "new_full new_empty_strided": _slots(1, 1, "size"),
    "view _unsafe_view reshape expand broadcast_to sum_to_size": _slots(1, _MOST, "size shape"),
    "repeat tile": _slots(1, _MOST, "repeats dims"),
    "unflatten": _slots(2, 2, "sizes"),
    "repeat_interleave": _slots(1, 1, "repeats output_size"),
    "narrow narrow_copy": _slots(2, 3, "start length"),
    "slice": _slots(2, 3, "start end"),
    "split unsafe_split split_with_sizes unsafe_split_with_sizes": _slots(
        1, 1, "split_size split_size_or_sections split_sizes"
    ),
    "multinomial": _slots(1, 1, "num_samples"),
    "mul multiply mul_ multiply_ __mul__ __rmul__ __imul__": _slots(0, 1, "input other"),
    "div divide true_divide div_ divide_ true_divide_ __truediv__ __itruediv__ __div__ __idiv__": _slots(
        1, 1, "other"
    ),
    # n / x is n times 1 / x.
    "__rtruediv__ __rdiv__": _slots(1, 1, "other"),
}
_ADMITTED = {name: slots for names, slots in _TABLE.items() for name in names.split()}
"""Sizes, products and quotients, by the name of a function; positions count `self`."""
_GRIDS = frozenset(("affine_grid", "affine_grid_generator"))


def admits_sizes(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], states: Mapping[int, State]
) -> bool:
    """Return whether all sizes of the batch among the arguments of a call are in a place for sizes.

    Args:
        func: A function of torch, a method of tensors or an operator of torch.ops.
        args: Its positional arguments.
        kwargs: Its named arguments.
        states: The states of tensors among them that are not public, by identity.
    """
    # An operator of torch.ops has the name of its overload after a dot.
    name = getattr(func, "__name__", "").split(".")[0]
    given = [(i, value) for i, value in enumerate(args) if _has_size(value)]
    named = [(key, value) for key, value in kwargs.items() if _has_size(value)]
    if not given and not named:
        return True
    if name == "__getitem__":
        state = states.get(id(args[0]))
        shape = None if state is None else state.shape
        return shape is not None and not named and all(i == 1 and _cuts(shape, value) for i, value in given)
    if name in _GRIDS:
        return all(i == 1 and _leads(value) for i, value in given) and all(
            key == "size" and _leads(value) for key, value in named
        )
    slots = _ADMITTED.get(name)
    if slots is None:
        return False
    ordered = all(slots.first <= i <= slots.last for i, _ in given)
    if slots.grouped and any(isinstance(value, BatchSize) for _, value in given):
        return False
    return ordered and all(key in slots.names for key, _ in named)


def _has_size(value: Any) -> bool:
    if isinstance(value, BatchSize):
        return True
    if isinstance(value, slice):
        return any(map(_has_size, (value.start, value.stop, value.step)))
    if isinstance(value, tuple | list):
        return any(map(_has_size, value))
    return isinstance(value, dict) and any(map(_has_size, value.values()))


def _cuts(shape: tuple[int, ...], index: Any) -> bool:
    """Return whether sizes of the batch in an index begin and end slices of dimensions as long as the batch.

    `x[:, :n]` has as many columns as there are examples, and its last one is that at n.

    Args:
        shape: The shape of what is indexed, with `VIRTUAL` examples.
        index: The index.
    """
    parts = index if isinstance(index, tuple) else (index,)
    widths = [_width(part) for part in parts]
    dimension = 0
    for part, width in zip(parts, widths, strict=True):
        if part is Ellipsis:
            dimension += len(shape) - sum(widths)
        elif isinstance(part, slice) and _has_size(part):
            long = dimension < len(shape) and multiplicity(shape[dimension]) > 0
            if not long or _has_size(part.step):
                return False
        elif _has_size(part):
            return False
        dimension += width
    return True


def _width(part: Any) -> int:
    """Return how many dimensions a part of an index is about."""
    if isinstance(part, Tensor) and part.dtype in (torch.bool, torch.uint8):
        return part.dim()
    return 0 if part is None or part is Ellipsis or isinstance(part, bool) else 1


def _leads(size: Any) -> bool:
    """Return whether only the first entry of a size is that of the batch."""
    return isinstance(size, tuple | list | torch.Size) and not any(map(_has_size, size[1:]))
