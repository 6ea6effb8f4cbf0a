"""Packed sequences in a private pass: `pack_padded_sequence`, a recurrent network, `pad_packed_sequence`.

Packing sorts the rows of a batch by length and puts their words together, so that a packed tensor is mixed.
Torch does it in steps that are functions of its own: sort the lengths, select rows in that order, pack, run,
pad, select rows in the inverse order. What a step did is noted on its result (`row_order`), with the tensor
in its own order. A recurrent network over packed data whose origin is known runs on the padded rows and their
lengths (`dataflow.unequal_rows`), where every example has its own entries. Selecting by the inverse order
gives the tensor in its own order back. In any other use a packed or sorted tensor is mixed.

Whether examples are kept apart does not rest on what was noted: all that is given back is computed from
tensors in their own order by functions that are watched, and has the state that follows from theirs.

Two things differ from torch, so that nothing follows from the longest row of a batch. Rows are padded again
to the length that they had before they were packed, or to `total_length`. Lengths below 1 count as 1 and
lengths beyond the padded one as that, where torch raises an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import (
    BatchSize,
    PrivateArray,
    PrivateInteger,
    PrivateNumber,
    private,
)
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.dataflow.states import (
    COPIES,
    MIXED,
    SELECTED,
    TOTAL,
    UNIFORM,
    VIRTUAL,
    State,
    mixed,
)
from dalenius.learn.dataflow.unequal_rows import NAMES, UNEQUAL, inside, pack
from dalenius.learn.row_order import ORDERED, Fact, Handler, Order, Permuted, fact_of, note
from dalenius.learn.tape import Function, Tape

_REMEDY = (
    "Pack padded rows by pack_padded_sequence(x, lengths, enforce_sorted=False), pass what it returns on to "
    "the recurrent network as it is, and make all other changes before packing or after pad_packed_sequence."
)


@dataclass(frozen=True, eq=False)
class Packed(Fact):
    """The tensor holds padded rows, packed by an order; `lengths` are those in use, in the rows' order."""

    source: Tensor
    lengths: Tensor
    order: Order
    batch_first: bool

    def about(self) -> tuple[Tensor, ...]:
        """Return the padded rows, their lengths, and the tensors of the order."""
        return self.source, self.lengths, *self.order.about()


@dataclass(frozen=True, eq=False)
class Sizes(Fact):
    """The tensor says how many rows, of those in an order, reach each time."""

    order: Order

    def about(self) -> tuple[Tensor, ...]:
        """Return the tensors of the order."""
        return self.order.about()


# Lengths as lists.


def _listed(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Read a vector of whole numbers in a way that `torch.as_tensor` can take back."""
    tensor = args[0]
    if kwargs or tensor.dim() != 1 or tensor.dtype.is_floating_point or tape.is_public(tensor):
        return None
    array = private(tensor.detach().tolist(), f"{func.__name__}()")
    array.tensor = tape.follow_copy(tensor, tensor.detach().clone())
    return array


def _taken_back(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make values that were read from private examples a tensor: `torch.as_tensor(lengths.tolist())`."""
    if len(args) != 1 or not isinstance(args[0], PrivateArray) or args[0].tensor is None:
        return None
    with tape:
        return args[0].tensor.clone().to(**kwargs) if kwargs.keys() <= {"dtype", "device"} else None


# Packing.


def _pack(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Pack rows that were sorted by their lengths: `torch._pack_padded_sequence(x, lengths, batch_first)`."""
    x, lengths, batch_first = args
    rows, counts = fact_of(x), fact_of(lengths)
    if tape.is_public(x) and tape.is_public(lengths):
        return None
    sorted_alike = (
        isinstance(rows, Permuted)
        and isinstance(counts, Permuted)
        and rows.order is counts.order
        and counts.source is counts.order.lengths
        and rows.dimension == (0 if batch_first else 1)
    )
    if not sorted_alike or not isinstance(rows, Permuted):
        raise NotSound(
            f"pack_padded_sequence{user_line()} takes rows that are not known to be in the order of their "
            "lengths; to check it would show the lengths.",
            remedy="Pass enforce_sorted=False and the rows in the order of the batch: packing sorts them, "
            "and pad_packed_sequence puts them back.",
        )
    known = tape.state(rows.source)
    if known is not None and known.kind in (MIXED, TOTAL):
        # The padded length may be private.
        return None
    time = rows.source.shape[1 if batch_first else 0]
    with tape:
        own = rows.order.lengths.clamp(1, time)
    return _packed(tape, Packed(rows.source, own, rows.order, batch_first))


def _packed(tape: Tape, fact: Packed) -> tuple[Tensor, Tensor]:
    """Return packed data and batch sizes, which have an entry for every time before the padded length."""
    data, sizes = pack(fact.source, fact.lengths, fact.order.indices, fact.batch_first)
    time = fact.source.shape[1 if fact.batch_first else 0]
    sizes = functional.pad(sizes, (0, time - sizes.shape[0]))
    state = mixed("pack_padded_sequence", "puts the words of all examples together")
    source = tape.state(fact.source)
    features = None if source is None or source.shape is None else (SELECTED, *source.shape[2:])
    tape.give_state(data, state._replace(shape=features))
    tape.give_state(sizes, state._replace(shape=(time,)))
    return note(data, fact), note(sizes, Sizes(fact.order))


def _first(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Read how many rows there are from batch sizes: `batch_sizes[0]`."""
    if type(args[1]) is not int or args[1] != 0 or not isinstance(fact_of(args[0]), Sizes):
        return ORDERED[func](tape, func, args, kwargs)
    # Every row has at least one word. Torch compares its size as an int, which no size of a batch is taken to
    # equal if it is below 2; a private loop has no such batch.
    each = tape.rows // max(tape.examples, 1) or 1
    return BatchSize(tape.rows, each, number=tape.number) if tape.rows > 1 else tape.rows


def _recurrent(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a recurrent network on packed data: `torch.lstm(data, batch_sizes, start, weights, …)`."""
    if kwargs or len(args) != 9 or not isinstance(args[1], Tensor) or not isinstance(args[3], list | tuple):
        return None
    data, sizes, start, *rest = args
    fact = _origin(tape, func, data, sizes)
    if fact is None:
        return None
    pair = func.__name__ == "lstm"
    begun = tuple(_unsorted(tape, func, state, fact.order) for state in (start if pair else (start,)))
    out, *ends = tape.call(
        UNEQUAL[func.__name__],
        (fact.source, fact.lengths, begun if pair else begun[0], *rest, fact.batch_first),
    )
    results = [_packed(tape, Packed(out, fact.lengths, fact.order, fact.batch_first))[0]]
    for end in ends:
        result = end.index_select(1, fact.order.indices.to(end.device))
        tape.give_state(result, mixed(func.__name__, "gives states in the order of lengths"))
        results.append(note(result, Permuted(end, 1, fact.order)))
    return tuple(results)


def _origin(tape: Tape, func: Function, data: Tensor, sizes: Tensor) -> Packed | None:
    """Return where packed data come from; None where all is public."""
    fact, by = fact_of(data), fact_of(sizes)
    if isinstance(fact, Packed) and isinstance(by, Sizes) and by.order is fact.order:
        return fact
    if tape.is_public(data) and tape.is_public(sizes):
        return None
    raise NotSound(
        f"{func.__name__}{user_line()} takes packed data that are not as they were packed, so that it is not "
        "known which of them belong to which example.",
        remedy=_REMEDY,
    )


def _unsorted(tape: Tape, func: Function, start: Tensor, order: Order) -> Tensor:
    """Return first states in the rows' own order."""
    fact, state = fact_of(start), tape.state(start)
    if isinstance(fact, Permuted) and fact.order is order and fact.dimension == 1:
        return fact.source
    equal = state is not None and state.kind == UNIFORM
    if equal and tape.rows > 1:
        return start
    if (equal or state is None) and tape.rows < 2:
        same = start.view_as(start)
        tape.give_state(same, State(COPIES, start.shape[0], (start.shape[0], VIRTUAL, start.shape[2])))
        return same
    raise NotSound(
        f"{func.__name__}{user_line()} takes packed data in the order of their lengths and first states in "
        "another one.",
        remedy="Call the module, as in self.lstm(packed, (h, c)), with states in the order of the batch.",
    )


def _pad(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Pad packed rows again: `torch._pad_packed_sequence(data, sizes, batch_first, value, length)`."""
    data, sizes, batch_first, value, length = args
    fact = _origin(tape, func, data, sizes)
    if fact is None:
        return None
    if any(isinstance(number, PrivateInteger | PrivateNumber | Tensor) for number in (length, value)):
        raise NotSound(
            f"pad_packed_sequence{user_line()} takes a total_length or padding_value that depends on private "
            "examples.",
            remedy="Pass public numbers.",
        )
    with tape:
        padded = _padded(fact, batch_first, value, length)
    batch, indices = 0 if batch_first else 1, fact.order.indices
    result = padded.index_select(batch, indices.to(padded.device))
    lengths = fact.lengths.index_select(0, indices.to(fact.lengths.device))
    state = mixed("pad_packed_sequence", "gives rows in the order of their lengths")
    for tensor in (result, lengths):
        tape.give_state(tensor, state)
    note(result, Permuted(padded, batch, fact.order))
    note(lengths, Permuted(fact.lengths, 0, fact.order))
    return result, lengths


def _padded(fact: Packed, batch_first: bool, value: float, length: int) -> Tensor:
    """Return the rows in their own order, with a value after the end of each, up to a length."""
    rows = fact.source if fact.batch_first else fact.source.transpose(0, 1)
    time = rows.shape[1]
    beyond = ~inside(fact.lengths, time, rows.device)
    rows = rows.masked_fill(beyond.view(*beyond.shape, *(1,) * (rows.dim() - 2)), value)
    if length > time:
        rows = functional.pad(rows, (*(0, 0) * (rows.dim() - 2), 0, length - time), value=value)
    return rows if batch_first else rows.transpose(0, 1)


FOLLOWED: dict[Function, Handler] = (
    ORDERED
    | {
        Tensor.__getitem__: _first,
        Tensor.tolist: _listed,
        Tensor.numpy: _listed,
        torch.as_tensor: _taken_back,
        torch.tensor: _taken_back,
        torch._VF._pack_padded_sequence: _pack,
        torch._VF._pad_packed_sequence: _pad,
    }
    | {getattr(torch, name): _recurrent for name in NAMES}
)
"""Functions by which rows are packed and unpacked."""
