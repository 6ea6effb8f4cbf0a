"""Functions whose results are as many, or have as many dimensions, as private values say: they are refused.

Values and sizes that depend on private examples are hidden in tensors and in private numbers. How many
tensors a function returns, and how many dimensions they have, is seen by Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalenius.errors import NotSound
from dalenius.learn.dataflow import reads
from dalenius.learn.dataflow.private_numbers import BatchSize
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.dataflow.states import MIXED, SELECTED, VIRTUAL, State
from dalenius.learn.marks import found_in

CUTS = dict.fromkeys(
    ("unbind", "split", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk", "__iter__"), 0
)
CUTS |= {"hsplit": 1, "vsplit": 0, "dsplit": 2}
"""Functions that cut a tensor into a number of pieces that depends on its size, and along which dimension."""
_SPLITS = frozenset(("split", "unsafe_split", "split_with_sizes"))
_RANKED = frozenset(
    ("squeeze", "squeeze_", "flatten", "tensordot", "tensorinv", "tensorsolve", "einsum", "to_sparse")
)
"""Functions whose results have a number of dimensions that depends on numbers they are given."""
_RESHAPED = frozenset(("squeeze", "squeeze_", "flatten"))
"""Functions whose results have a number of dimensions that depends on further tensors they are given."""
_SQUEEZED = frozenset(("squeeze", "squeeze_", "squeeze_copy", "cov", "corrcoef"))
"""Functions whose results lose dimensions of size 1."""


def check_structure(name: str, args: Any, kwargs: Any, states: Mapping[int, State]) -> None:
    """Refuse private numbers that decide how many tensors, or how many dimensions, a function returns.

    Args:
        name: What the function is called.
        args: Its positional arguments, a private number or size among them.
        kwargs: Its named arguments.
        states: The states of tensors among them that are not public, by identity.
    """
    # An operator of torch.ops has the name of its overload after a dot.
    name = name.split(".")[0]
    if name not in CUTS and name not in _RANKED:
        return
    given = args[1] if len(args) > 1 else next(iter(kwargs.values()), None)
    if name in _SPLITS:
        if isinstance(given, tuple | list):
            # As many pieces as there are entries.
            return
        state = states.get(id(args[0])) if args else None
        dimension = kwargs.get("dim", args[2] if len(args) > 2 else 0)
        if isinstance(given, BatchSize) and state is not None and state.shape and isinstance(dimension, int):
            size = state.shape[dimension % len(state.shape)]
            if size % VIRTUAL == 0:
                # A multiple of the batch in pieces of another multiple.
                return
    raise NotSound(
        f"{name} takes a number that depends on private examples{user_line()}: how many pieces, or how many "
        "dimensions, it returns would tell that number.",
        remedy="Use public numbers for sizes and dimensions, and work on the batch as a whole.",
    )


def check_count(name: str, args: Any, kwargs: Any, state: State) -> None:
    """Refuse to cut a mixed tensor into a number of pieces that depends on private values."""
    name = name.split(".")[0]
    if name not in CUTS:
        return
    # unbind(x, dim), split(x, size, dim), hsplit(x, sections), iter(x)
    place = 1 if name == "unbind" else 2
    dimension = kwargs.get("dim", args[place] if len(args) > place else CUTS[name])
    if not isinstance(dimension, int) or not reads.is_countable(state, dimension):
        raise NotSound(
            f"{name} cuts a tensor into a number of pieces that depends on private examples{user_line()}: "
            f"{state.origin or 'its length is private'}.",
            remedy="Work on the batch as a whole, with a mask in place of a selection.",
        )


def check_rank(name: str, args: Any, kwargs: Any, known: Mapping[int, State], reads_values: bool) -> None:
    """Refuse a function whose results have a number of dimensions that depends on private values.

    Args:
        name: What the function is called.
        args: Its positional arguments.
        kwargs: Its named arguments.
        known: The states of tensors among them that are not public, by identity.
        reads_values: Whether it reads values of a tensor for a size, a dimension or an index.
    """
    squeezed = name.split(".")[0] in _SQUEEZED and any(map(_has_private_size, known.values()))
    beside = args[2:] if name == "tensordot" else args[1:]
    options = {key: value for key, value in kwargs.items() if name != "tensordot" or key == "dims"}
    taken = name in _RESHAPED | {"tensordot"} and any(
        id(tensor) in known for tensor in found_in(beside, options)
    )
    if reads_values or squeezed or taken:
        source = next((f": {state.origin}" for state in known.values() if state.origin is not None), "")
        raise NotSound(
            f"{name} takes a size, a dimension or an index from private examples{user_line()}{source}.",
            remedy="Use public numbers for sizes and dimensions, and masks in place of selections.",
        )


def _has_private_size(state: State) -> bool:
    """Return whether a size of a mixed tensor may be any, also 1."""
    return state.kind == MIXED and (state.shape is None or SELECTED in state.shape)
