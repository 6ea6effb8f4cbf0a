"""Rules for operators that pick entries by index, or write to picked entries.

Which examples are picked must be the same for every batch: along the batch axis the only index is
`torch.arange(n)`, which pairs every example with itself. Along other dimensions an index may be private, if
its own batch axis coincides with that of what it picks from.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dalenius.learn.dataflow.operations import APART, VARIES, Operation, Place
from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    POSITION,
    PRIVATE,
    TOTAL,
    UNIFORM,
    State,
    is_long,
    mixed,
    times_batch,
)

_PAIRED = "pairs examples with indices of other examples"
_PICKED = "picks along the batch"
_COUNTED = "writes as often as there are examples"


def index(op: Operation) -> None:
    """Pick by one index for each of some dimensions, broadcast against each other."""
    if op.name == "index_select":
        chosen = {op.dimension("dim", op["self"]): op["index"]}
    else:
        chosen = {i: entry for i, entry in enumerate(op["indices"]) if entry is not None}
    place = _picked(op, op["self"], chosen)
    if isinstance(place, tuple):
        private = any(op.kind(tensor) == AXIS for tensor in (op["self"], *chosen.values()))
        op.put_placed(op.results[0], AXIS if private else op.joint(op["self"]), place)
    elif op.private:
        op.put_all(mixed(op.name, place or _PICKED))
    else:
        op.put_all(None)


def _picked(op: Operation, source: Tensor, chosen: dict[int, Tensor]) -> Place | str | None:
    """Return the place of the batch in what is picked, a text that says why there is none, or None."""
    kinds = {op.kind(tensor) for tensor in chosen.values()}
    if TOTAL in kinds or op.kind(source) == TOTAL:
        return "picks by, or from, a sum over examples"
    dims = sorted(chosen)
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in chosen.values()))
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    start = dims[0] if adjacent else 0
    own = op.place(source)
    known = op.state(source)
    paired = own is not None and op.kind(chosen.get(own[0])) == POSITION
    if known is not None and known.drawn and is_long(known) and not paired:
        return "gives examples random numbers of others"
    if any(op.kind(tensor) in PRIVATE for tensor in chosen.values()) and not (
        known is None or known.kind in (AXIS, COPIES, UNIFORM)
    ):
        return "picks from public values that depend on the size of the batch"
    if known is not None and known.kind in (AXIS, COPIES) and own is None:
        # The batch spans dimensions: what is at an index depends on its size.
        return _PICKED
    if op.kind(source) == UNIFORM and not paired:
        own = None
    if own is not None and own[0] in chosen:
        return _identity(op, source, own, chosen, len(shape), start)
    inside = op.common(list(chosen.values()), len(shape))
    if isinstance(inside, str):
        return inside
    if inside is not None:
        return _PAIRED if own is not None else (start + inside[0], inside[1])
    if own is None:
        copied = op.copied(list(chosen.values()), len(shape))
        return None if copied is None else (start + copied[0], copied[1])
    gone = sum(number < own[0] for number in dims)
    ahead = len(shape) if (not adjacent or start < own[0]) else 0
    return own[0] - gone + ahead, own[1]


def _identity(
    op: Operation, source: Tensor, own: Place, chosen: dict[int, Tensor], dims: int, start: int
) -> Place | str | None:
    """Pick along the batch by the positions of examples, each from its own."""
    positions = chosen[own[0]]
    state, at = op.state(positions), op.place(positions)
    if state is None or state.kind != POSITION or at is None or own[1] != 1 or at[1] != 1:
        return _PICKED
    if positions.shape[at[0]] != source.shape[own[0]] or positions.numel() != positions.shape[at[0]]:
        return _PICKED
    place = at[0] + dims - positions.dim(), 1
    for tensor in chosen.values():
        if tensor is positions:
            continue
        if op.kind(tensor) == AXIS:
            there = op.place(tensor)
            if there is None or (there[0] + dims - tensor.dim(), there[1]) != place:
                return APART
        elif op.varies(tensor, place, dims):
            return VARIES
    return start + place[0], 1


def gather(op: Operation) -> None:
    """Pick along one dimension, by an index for every other."""
    source, positions = op["self"], op["index"]
    if source.dim() == 1 and not op.kind(source):
        # A look-up in a public table.
        op.follow([positions])
        if op.kind(positions) == UNIFORM:
            op.put_all(None if op.place(positions) is None else State(COPIES, 1))
        return
    place = op.common([source, positions], source.dim())
    kind, dimension = AXIS, op.dimension("dim", source)
    if place is None:
        kind, place = COPIES, op.copied([source, positions], source.dim())
    if isinstance(place, tuple) and place[0] != dimension:
        result = op.results[0]
        if result.shape[place[0]] == max(source.shape[place[0]], positions.shape[place[0]]):
            op.put_placed(result, kind, place)
            return
    op.mix(place if isinstance(place, str) else _PICKED)


def scatter(op: Operation) -> None:
    """Write along one dimension, at an index for every other."""
    source = op["self"]
    tensors = [tensor for name in ("self", "index", "src", "value") if isinstance(tensor := op[name], Tensor)]
    place = op.common([tensor for tensor in tensors if tensor.dim()], source.dim())
    if any(op.kind(tensor) in PRIVATE for tensor in tensors if not tensor.dim()):
        op.mix("writes a sum over examples into each of them")
    elif any(times_batch(tuple(tensor.shape)) > 1 for tensor in tensors):
        op.mix(_COUNTED)
    elif isinstance(place, tuple) and place[0] != op.dimension("dim", source):
        if all(tensor.shape[place[0]] == source.shape[place[0]] for tensor in tensors if tensor.dim()):
            op.put_placed(op.results[0], AXIS, place)
        else:
            op.mix("writes to some examples only")
    else:
        op.mix(place if isinstance(place, str) else "writes along the batch")


def index_write(op: Operation) -> None:
    """Write whole slices along one dimension, at public indices."""
    source, more = op["self"], op["source"] if isinstance(op["source"], Tensor) else None
    tensors = [source] if more is None else [source, more]
    place = op.common(tensors, source.dim())
    private = op.kind(op["index"]) in PRIVATE or op.kind(op["value"]) in PRIVATE
    if times_batch(tuple(op["index"].shape)) or any(times_batch(tuple(t.shape)) > 1 for t in tensors):
        # Where the index runs along the batch, `arange(n)` writes to as many slices as there are examples.
        op.mix(_COUNTED)
    elif isinstance(place, tuple) and place[0] != op.dimension("dim", source) and not private:
        op.put_placed(op.results[0], AXIS, place)
    else:
        op.mix(place if isinstance(place, str) else "writes along the batch")


RULES = (
    dict.fromkeys(("index", "_unsafe_index", "index_select"), index)
    | dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), scatter)
    | dict.fromkeys(("index_add", "index_copy", "index_fill"), index_write)
    | {"gather": gather}
)
