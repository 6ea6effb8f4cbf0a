"""Rows of a batch in the order of their lengths: which tensors are in it, and what they are in their own.

Sorting lengths and selecting rows by the result mixes examples, and selecting by the inverse permutation
undoes it. What was done is noted on each result as a fact, so that the last step can give back the tensor in
its own order. Facts make gradients exact, and privacy does not rest on them: what is given back is a copy of
a tensor in its own order, and has the state of that tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.dataflow.private_numbers import whole_sizes
from dalenius.learn.dataflow.states import AXIS, COPIES, MIXED, POSITION, UNIFORM, VIRTUAL, mixed
from dalenius.learn.tape import Function, Tape

Handler = Callable[[Tape, Function, tuple[Any, ...], dict[str, Any]], Any]
"""Computes what a function would where facts are known of its arguments; returns None where they are not."""
_FACT = "_dalenius_row_order"


class Fact:
    """Something that holds of a tensor, by how it was computed from others."""

    def about(self) -> tuple[Tensor, ...]:
        """Return the tensors that the fact is about, beside the one that it is noted on."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Order(Fact):
    """The tensor holds the positions of rows by falling `lengths`; `indices` is another view of it."""

    lengths: Tensor
    indices: Tensor

    def about(self) -> tuple[Tensor, ...]:
        """Return the lengths and the positions."""
        return self.lengths, self.indices


@dataclass(frozen=True, eq=False)
class Inverse(Fact):
    """The tensor holds the inverse permutation of an order."""

    order: Order

    def about(self) -> tuple[Tensor, ...]:
        """Return the tensors of the order."""
        return self.order.about()


@dataclass(frozen=True, eq=False)
class Permuted(Fact):
    """The tensor is `source`, permuted by an order along a dimension."""

    source: Tensor
    dimension: int
    order: Order

    def about(self) -> tuple[Tensor, ...]:
        """Return the tensor in its own order, and those of the order."""
        return self.source, *self.order.about()


def _versions(tensor: Tensor, fact: Fact) -> tuple[int, ...]:
    """Return counters that change when the tensor, or one that the fact is about, is written to."""
    return tuple(0 if entry.is_inference() else entry._version for entry in (tensor, *fact.about()))


def note(tensor: Tensor, fact: Fact) -> Tensor:
    """Note a fact on a tensor; it counts until one of the tensors that it is about is written to."""
    setattr(tensor, _FACT, (fact, _versions(tensor, fact)))
    return tensor


def fact_of(tensor: Any) -> Fact | None:
    """Return the fact that was noted on a tensor, if it still holds."""
    known: tuple[Fact, tuple[int, ...]] | None = getattr(tensor, _FACT, None)
    if known is None or known[1] != _versions(tensor, known[0]):
        return None
    return known[0]


def _sort(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Sort lengths, one for each row, or sort an order, which inverts it."""
    given = dict(zip(("input", "dim", "descending"), args, strict=False)) | kwargs
    values = given.pop("input", None)
    falls = given.pop("descending", False)
    given.pop("stable", None)
    if not isinstance(values, Tensor) or values.dim() != 1 or given.pop("dim", -1) not in (0, -1) or given:
        return None
    known = fact_of(values)
    inverts = isinstance(known, Order) and not falls
    if not inverts and not (falls is True and _counts_rows(tape, values)):
        return None
    result = func(*whole_sizes(args), **whole_sizes(kwargs))
    state = mixed(func.__name__, "puts examples in an order that depends on all of them")
    indices = result if isinstance(result, Tensor) else result[1]
    for tensor in (result,) if isinstance(result, Tensor) else result:
        tape.give_state(tensor, state._replace(shape=(VIRTUAL * (tape.rows // max(tape.examples, 1) or 1),)))
    if isinstance(known, Order) and inverts:
        note(indices, Inverse(known))
        return result
    order = Order(values, indices.detach())
    note(indices, order)
    if indices is not result:
        note(result[0], Permuted(values, 0, order))
    return result


def _counts_rows(tape: Tape, values: Tensor) -> bool:
    """Return whether a tensor has one whole number for each row, that follows from this row alone."""
    state = tape.state(values)
    if state is None or values.dtype.is_floating_point or values.dtype == torch.bool or state.power:
        return False
    if state.kind == UNIFORM:
        return state.shape is not None and state.shape[0] % VIRTUAL == 0
    return state.kind in (AXIS, COPIES) and tape.leads(values)


def _invert(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write the position of every entry of an order at that entry: `output.scatter_(0, order, positions)`."""
    if kwargs or len(args) != 4 or args[1] != 0 or not all(isinstance(args[i], Tensor) for i in (0, 2, 3)):
        return None
    target, _, index, positions = args
    order, state, before = fact_of(index), tape.state(positions), tape.state(target)
    if not isinstance(order, Order) or state is None or state.kind != POSITION:
        return None
    if before is None or before.kind != MIXED or not target.shape == index.shape == positions.shape:
        return None
    func(*whole_sizes(args))
    return note(target, Inverse(order))


def _moved(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Copy an order, or its inverse, to another device."""
    known = fact_of(args[0])
    if not isinstance(known, Order | Inverse):
        return None
    result: Tensor = func(*whole_sizes(args), **whole_sizes(kwargs))
    if result is args[0]:
        return result
    tape.follow_copy(args[0], result)
    return note(result, known) if result.dtype == args[0].dtype else result


def _selected(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Select rows by an order or by its inverse: `x.index_select(dim, order)`."""
    given = dict(zip(("input", "dim", "index"), args, strict=False)) | kwargs
    if given.keys() != {"input", "dim", "index"}:
        return None
    return _permuted(tape, func, args, kwargs, given["input"], given["dim"], given["index"])


def _picked(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Pick rows by an order or by its inverse: `x[order]`."""
    source, index = args
    return _permuted(tape, func, args, kwargs, source, 0, index) if isinstance(index, Tensor) else None


def _permuted(
    tape: Tape, func: Function, args: Any, kwargs: Any, source: Tensor, dimension: int, index: Tensor
) -> Any:
    """Permute a tensor by an order, or give back what was permuted by it."""
    by, state = fact_of(index), tape.state(index)
    if state is None or state.kind != MIXED or not isinstance(dimension, int):
        return None
    if isinstance(by, Order):
        before = tape.state(source)
        if before is None or not before.shape or not state.shape:
            return None
        if before.shape[dimension] != state.shape[0]:
            return None
        result = func(*whole_sizes(args), **whole_sizes(kwargs))
        tape.give_state(result, state._replace(shape=before.shape))
        return note(result, Permuted(source, dimension % source.dim(), by))
    known = fact_of(source)
    if not isinstance(by, Inverse) or not isinstance(known, Permuted) or known.order is not by.order:
        return None
    if dimension % source.dim() != known.dimension:
        return None
    with tape:
        return known.source.clone()


ORDERED: dict[Function, Handler] = {
    torch.sort: _sort,
    Tensor.sort: _sort,
    torch.argsort: _sort,
    Tensor.argsort: _sort,
    Tensor.scatter_: _invert,
    Tensor.to: _moved,
    Tensor.cpu: _moved,
    Tensor.cuda: _moved,
    torch.index_select: _selected,
    Tensor.index_select: _selected,
    Tensor.__getitem__: _picked,
}
"""Functions by which rows are put in order, and put back."""
