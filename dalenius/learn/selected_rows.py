"""Rows of a batch that a mask selects, and that are written back to their places, as in a routed mixture.

`x[mask]` mixes examples: which row stands where, and how many rows there are, depends on all of them. Writing
the rows back under the same mask undoes it. What was selected is noted on each result as a fact, with a
*dense* tensor that has all rows, in their own order. A function that treats rows independently runs on the
dense rows, and the selected ones are picked from its result. `out[mask] = rows`, `out.index_add(0, positions,
rows)` and `rows.sum(0)` are computed from the dense rows, with the mask in place of the selection. In any
other use selected rows are mixed; so are their sizes.

Whether examples are kept apart does not rest on facts: all that is given back is computed from dense rows by
functions that are watched, and has the state that follows from theirs. Facts make results exact. Rows that
are not selected are zeros in every dense tensor, so that no infinite value of theirs meets a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.interpreter import Analysis
from dalenius.learn.dataflow.private_numbers import PrivateInteger, PrivateNumber
from dalenius.learn.dataflow.provenance import SELECTED_ROWS, user_line
from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    SELECTED,
    TOTAL,
    UNIFORM,
    VIRTUAL,
    State,
    is_long,
    mixed,
    times_batch,
)
from dalenius.learn.marks import found_in, note_ragged, replaced
from dalenius.learn.row_order import Fact, Handler, fact_of, note
from dalenius.learn.tape import Function, Tape, in_place, version_of

_ROWS = Analysis()
"""What functions do with selected rows, taken for the examples of a batch."""


@dataclass(frozen=True, eq=False)
class Selection:
    """A mask over the rows of a batch.

    Args:
        mask: The mask.
        shape: Its shape with `VIRTUAL` examples.
        state: The mixed state of what it selects, which names the operation and the line.
    """

    mask: Tensor
    shape: tuple[int, ...]
    state: State

    @property
    def flat(self) -> Tensor:
        """Return the mask with all rows in one dimension."""
        return self.mask.reshape(-1)


@dataclass(frozen=True, eq=False)
class Selecting(Fact):
    """The tensor is not zero where the selection's mask is true."""

    selection: Selection

    def about(self) -> tuple[Tensor, ...]:
        """Return the mask."""
        return (self.selection.mask,)


@dataclass(frozen=True, eq=False)
class Positions(Fact):
    """The tensor holds the positions of selected rows along dimensions of the mask.

    It has one column for each of them if it is a `matrix`, and one dimension if it is not.
    """

    selection: Selection
    dimensions: tuple[int, ...]
    matrix: bool = False

    def about(self) -> tuple[Tensor, ...]:
        """Return the mask."""
        return (self.selection.mask,)


class Memory:
    """What selected rows share with views of them in torch, and do not share here."""

    def __init__(self) -> None:
        self.writes = 0
        """How often it was written to."""


@dataclass(frozen=True, eq=False)
class Rows(Fact):
    """The tensor is `dense[mask]`, for dense rows in one dimension.

    Args:
        selection: The mask.
        dense: The dense rows.
        memory: That of the tensor and of its views.
        writes: How often it had been written to, with what is in the tensor.
    """

    selection: Selection
    dense: Tensor
    memory: Memory
    writes: int

    def about(self) -> tuple[Tensor, ...]:
        """Return the mask and the dense rows."""
        return self.selection.mask, self.dense


# Masks and positions.


def _selection_of(tape: Tape, mask: Tensor, name: str = "__getitem__") -> Selection | None:
    """Return the selection by a mask, if each entry follows from one example or is public."""
    fact, state = fact_of(mask), tape.state(mask)
    if isinstance(fact, Selecting):
        return fact.selection if _is_current(tape, fact.selection) else None
    if fact is not None or state is None or state.shape is None or not is_long(state):
        return None
    if state.kind not in (AXIS, COPIES, UNIFORM):
        return None
    with tape:
        own = mask.clone() if mask.dtype == torch.bool else mask.detach() != 0
    selection = Selection(own, state.shape, mixed(name, SELECTED_ROWS))
    note(mask, Selecting(selection))
    return selection


def _is_current(tape: Tape, selection: Selection) -> bool:
    """Return whether a selection is one of the batch at hand."""
    state = tape.state(selection.mask)
    return state is not None and state.kind in (AXIS, COPIES, UNIFORM)


def _positions(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return where a tensor is not zero: `mask.nonzero()`, `torch.where(mask)`."""
    given = dict(zip(("input",), args, strict=False)) | kwargs
    several = given.pop("as_tuple", func in _WHERE)
    mask = given.pop("input", given.pop("condition", None))
    if given or len(args) > 1 or not isinstance(mask, Tensor) or type(several) is not bool:
        return None
    selection = _selection_of(tape, mask, func.__name__)
    if selection is None:
        return None
    state = selection.state
    places = tuple(range(mask.dim()))
    if not several:
        result = mask.nonzero()
        tape.give_state(result, state._replace(shape=(SELECTED, mask.dim())))
        return note(result, Positions(selection, places, matrix=True))
    columns = mask.nonzero(as_tuple=True)
    for place, column in zip(places, columns, strict=True):
        tape.give_state(column, state._replace(shape=(SELECTED,)))
        note(column, Positions(selection, (place,)))
    return columns


def _column(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Take a column of positions, or the only one: `positions[:, 0]`, `positions.squeeze(1)`, `.view(-1)`."""
    fact = fact_of(args[0]) if args else None
    if not isinstance(fact, Positions) or kwargs:
        return None
    if not fact.matrix:
        return _kept(tape, func, args, fact)
    columns = len(fact.dimensions)
    if func is Tensor.__getitem__:
        key = args[1]
        if type(key) is not tuple or len(key) != 2 or key[0] != slice(None) or type(key[1]) is not int:
            return None
        place = key[1]
    else:
        place = 0
        if columns > 1 or args[1:] not in _SINGLE.get(func.__name__, ()):
            return None
    if not -columns <= place < columns:
        return None
    result = args[0][:, place].clone()
    tape.give_state(result, fact.selection.state._replace(shape=(SELECTED,)))
    return note(result, Positions(fact.selection, (fact.dimensions[place],)))


_SINGLE: dict[str, tuple[tuple[Any, ...], ...]] = {
    "squeeze": ((1,), (-1,)),
    "flatten": ((),),
    "view": ((-1,),),
    "reshape": ((-1,),),
}
"""Arguments by which methods make a matrix of one column a vector."""


def _kept(tape: Tape, func: Function, args: tuple[Any, ...], fact: Positions) -> Any:
    """Copy a vector of positions."""
    if func.__name__ not in ("to", "long", "clone", "detach", "contiguous", "cpu", "cuda", "flatten"):
        return None
    if any(isinstance(value, Tensor) for value in args[1:]):
        return None
    result: Tensor = func(*args)
    if result.dtype != args[0].dtype or result is args[0]:
        return result if result is args[0] else None
    tape.give_state(result, fact.selection.state._replace(shape=(SELECTED,)))
    return note(result, fact)


@dataclass(frozen=True)
class _Key:
    """An index that selects rows, by all dimensions of a mask or by some, and what is indexed of each."""

    selection: Selection
    dimensions: tuple[int, ...]
    rest: tuple[Any, ...]

    def fits(self, tape: Tape, tensor: Tensor) -> bool:
        """Return whether the leading dimensions of a tensor are those of the mask."""
        state = tape.state(tensor)
        shape = tuple(tensor.shape) if state is None else state.shape
        if shape is None or (state is not None and state.kind not in (AXIS, COPIES, UNIFORM)):
            return False
        sizes = tuple(self.selection.shape[place] for place in self.dimensions)
        return shape[: len(sizes)] == sizes and not times_batch(shape[len(sizes) :])


def _key_of(tape: Tape, index: Any) -> _Key | None:
    """Return what is known of an index that selects rows."""
    parts = index if isinstance(index, tuple) else (index,)
    leading = list(takewhile(lambda part: isinstance(part, Tensor), parts))
    rest = parts[len(leading) :]
    if not leading or not all(map(_is_plain, rest)):
        return None
    if leading[0].dtype == torch.bool:
        selection = _selection_of(tape, leading[0]) if len(leading) == 1 else None
        return None if selection is None else _Key(selection, tuple(range(leading[0].dim())), rest)
    facts = [fact for part in leading if isinstance(fact := fact_of(part), Positions) and not fact.matrix]
    if len(facts) < len(leading) or any(fact.selection is not facts[0].selection for fact in facts):
        return None
    dimensions = tuple(fact.dimensions[0] for fact in facts)
    if list(dimensions) != sorted(set(dimensions)) or not _is_current(tape, facts[0].selection):
        return None
    return _Key(facts[0].selection, dimensions, rest)


def _is_plain(part: Any) -> bool:
    """Return whether a part of an index is made of public numbers."""
    if type(part) is slice:
        return all(entry is None or type(entry) is int for entry in (part.start, part.stop, part.step))
    return part is None or part is Ellipsis or type(part) is int


# Selected rows.


def _selected(tape: Tape, dense: Tensor, selection: Selection, memory: Memory | None = None) -> Tensor:
    """Return the selected rows of a dense tensor, in memory of their own if none is given."""
    memory = memory or Memory()
    with tape:
        dense = _blanked(dense, selection)
    result = dense[selection.flat]
    known = tape.state(dense)
    shape = tuple(dense.shape) if known is None else known.shape
    if shape is None or shape[:1] != (math.prod(selection.shape),) or times_batch(shape[1:]):
        tape.give_state(result, selection.state)
        return result
    tape.give_state(result, selection.state._replace(shape=(SELECTED, *shape[1:])))
    return note(result, Rows(selection, dense, memory, memory.writes))


def _blanked(dense: Tensor, selection: Selection) -> Tensor:
    """Return dense rows with zeros in place of those that are not selected, also on the way back."""
    others = ~selection.flat.to(dense.device)
    return dense.masked_fill(others.view(-1, *(1,) * (dense.dim() - 1)), 0)


def _picked(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Select rows: `x[mask]`, `x[positions]`, `x[positions, :3]`."""
    if kwargs or len(args) != 2:
        return None
    source, index = args
    column = _column(tape, func, args, kwargs)
    if column is not None:
        return column
    key = _key_of(tape, index)
    if key is None or not key.fits(tape, source):
        return None
    result = _rows_of(tape, source, key)
    one, two = tape.state(source), tape.state(index) if isinstance(index, Tensor) else None
    whole = isinstance(index, Tensor) and index.dtype == torch.bool
    if whole and one and two and one.kind == two.kind == AXIS and one.outer == two.outer == 1:
        note_ragged(result, source, index)
    return result


def _taken(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Select rows by positions: `x.index_select(0, positions)`."""
    given = dict(zip(("input", "dim", "index"), args, strict=False)) | kwargs
    if given.keys() != {"input", "dim", "index"} or type(given["dim"]) is not int:
        return None
    source, key = given["input"], _key_of(tape, given["index"])
    if key is None or given["index"].dtype == torch.bool or len(key.dimensions) > 1:
        return None
    if given["dim"] not in (0, -source.dim()) or not key.fits(tape, source):
        return None
    return _rows_of(tape, source, key)


def _rows_of(tape: Tape, source: Tensor, key: _Key) -> Tensor:
    """Return the rows of a tensor that a key selects."""
    mask = key.selection.mask
    with tape:
        dense = source[(*(slice(None),) * len(key.dimensions), *key.rest)] if key.rest else source
        missing = [place for place in range(mask.dim()) if place not in key.dimensions]
        for place in missing:
            dense = dense.unsqueeze(place)
        if missing:
            dense = dense.expand(*mask.shape, *(-1,) * (dense.dim() - mask.dim()))
        if mask.dim() > 1:
            dense = dense.flatten(0, mask.dim() - 1)
    return _selected(tape, dense, key.selection)


def _by_row(
    tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], selection: Selection
) -> Any:
    """Run a function that treats selected rows independently, or adds them up, on dense rows."""
    states = {}
    for tensor in found_in(args, kwargs):
        fact = fact_of(tensor)
        if isinstance(fact, Rows):
            if fact.selection is not selection:
                return None
            states[id(tensor)] = State(AXIS, 1, (VIRTUAL, *tensor.shape[1:]))
            continue
        state = tape.state(tensor)
        if state is None:
            continue
        if state.kind != UNIFORM or is_long(state):
            return None
        states[id(tensor)] = state
    outcome = _ROWS.outcome(func, args, kwargs, states)
    after = outcome.results
    writes = in_place(func)
    facts = [fact for tensor in found_in(args, kwargs) if isinstance(fact := fact_of(tensor), Rows)]
    if outcome.written and not writes:
        for fact in facts:
            fact.memory.writes += 1
    if not after or (outcome.written and not writes) or outcome.reads or outcome.counts:
        return None
    adds = func in _SUMS and len(after) == 1 and after[0] is not None
    if adds and after[0] is not None and after[0].kind == TOTAL and not after[0].power:
        return _run(tape, func, args, kwargs)
    if not all(map(_is_by_row, after)):
        return None
    if writes:
        if len(after) > 1 or after[0] is None or after[0].shape != (VIRTUAL, *args[0].shape[1:]):
            return None
        return _changed(tape, func, args, kwargs, selection)
    versions = [version_of(fact.dense) for fact in facts]
    results = _run(tape, func, args, kwargs)
    for fact, version in zip(facts, versions, strict=True):
        if version_of(fact.dense) != version:
            # As by relu(rows, inplace=True).
            fact.memory.writes += 1
    shared = facts[0].memory if outcome.shares else None
    return _each(results, lambda dense: _selected(tape, dense, selection, shared))


def _run(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function on dense rows."""
    args, kwargs = replaced(args, _dense), replaced(kwargs, _dense)
    with tape:
        return func(*args, **kwargs)


def _dense(tensor: Tensor) -> Tensor:
    """Return the dense rows that a tensor was selected from, or the tensor itself."""
    fact = fact_of(tensor)
    return fact.dense if isinstance(fact, Rows) else tensor


def _is_by_row(state: State | None) -> bool:
    """Return whether each entry of the first dimension of a result follows from one selected row."""
    if state is None or not state.shape or state.power:
        return False
    if state.shape[0] != VIRTUAL or times_batch(state.shape) > 1:
        return False
    return state.kind == UNIFORM or (state.kind in (AXIS, COPIES) and state.outer == 1)


def _changed(
    tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], selection: Selection
) -> Any:
    """Change selected rows in place."""
    target = args[0]
    fact = fact_of(target)
    if not isinstance(fact, Rows):
        return None
    with tape:
        dense = fact.dense.clone()
    _run(tape, func, (dense, *args[1:]), kwargs)
    result = _selected(tape, dense, selection, fact.memory)
    target.copy_(result)
    tape.give_state(target, tape.state(result))
    known = fact_of(result)
    return target if known is None else note(target, known)


def _each(value: Any, new: Callable[[Tensor], Tensor]) -> Any:
    """Return results of a function with other tensors in them, also those that torch gives names."""
    if isinstance(value, Tensor):
        return new(value)
    entries = [_each(entry, new) for entry in value]
    return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)


# Writing back.


def _spread(fact: Rows, dimensions: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return rows in their places along dimensions of the mask, and where rows were selected."""
    mask = fact.selection.mask
    # Rows that are not selected are zeros.
    rows = fact.dense.reshape(*mask.shape, *fact.dense.shape[1:])
    for place in reversed(range(len(fact.selection.shape))):
        if place not in dimensions:
            rows, mask = rows.sum(place), mask.any(place)
    return rows, mask


def _put(tape: Tape, target: Tensor, index: Any, value: Any) -> Tensor | None:
    """Return a tensor with selected rows in their places: `target[index] = value`."""
    key = _key_of(tape, index)
    if key is None or key.rest or not key.fits(tape, target):
        return None
    trailing = target.dim() - len(key.dimensions)
    fact = fact_of(value)
    with tape:
        if isinstance(fact, Rows) and fact.selection is key.selection and value.dim() == 1 + trailing:
            rows, mask = _spread(fact, key.dimensions)
        elif type(value) in (int, float, bool) and not isinstance(_tensor(index), Tensor):
            mask = key.selection.mask
            for place in reversed(range(mask.dim())):
                mask = mask if place in key.dimensions else mask.any(place)
            rows = torch.as_tensor(value, dtype=target.dtype, device=target.device)
        else:
            return None
        mask = mask.to(target.device).view(*mask.shape, *(1,) * trailing)
        return torch.where(mask, rows.to(target.dtype), target)


def _tensor(index: Any) -> Tensor | None:
    """Return an index that is a mask."""
    return index if isinstance(index, Tensor) and index.dtype == torch.bool else None


def _written(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write rows back: `out[mask] = rows`."""
    if kwargs or len(args) != 3:
        return None
    target, index, value = args
    new = _put(tape, target, index, value)
    if new is None:
        return None
    with tape:
        return target.copy_(new)


def _index_put(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write rows back: `out.index_put((mask,), rows)`."""
    given = dict(zip(("input", "indices", "values", "accumulate"), args, strict=False)) | kwargs
    adds = given.pop("accumulate", False)
    if given.keys() != {"input", "indices", "values"} or type(adds) is not bool:
        return None
    target, indices, values = given["input"], given["indices"], given["values"]
    if not isinstance(indices, tuple | list):
        return None
    if adds:
        return _sum_into(tape, func, target, tuple(indices), values, 1)
    new = _put(tape, target, tuple(indices), values)
    if new is None or not func.__name__.endswith("_"):
        return new
    with tape:
        return target.copy_(new)


def _added(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Add rows at their places: `out.index_add(0, positions, rows)`."""
    given = dict(zip(("input", "dim", "index", "source"), args, strict=False)) | kwargs
    alpha = given.pop("alpha", 1)
    if given.keys() != {"input", "dim", "index", "source"} or type(alpha) not in (int, float):
        return None
    target, index = given["input"], given["index"]
    if given["dim"] not in (0, -target.dim()) or index.dtype == torch.bool:
        return None
    return _sum_into(tape, func, target, (index,), given["source"], alpha)


def _sum_into(
    tape: Tape, func: Function, target: Tensor, index: tuple[Any, ...], source: Any, alpha: float
) -> Any:
    """Add selected rows to a tensor, at their places."""
    key, fact = _key_of(tape, index), fact_of(source)
    if key is None or key.rest or not key.fits(tape, target) or not isinstance(fact, Rows):
        return None
    alike = source.dim() == 1 + target.dim() - len(key.dimensions) and source.dtype == target.dtype
    if fact.selection is not key.selection or not alike:
        return None
    with tape:
        rows, _ = _spread(fact, key.dimensions)
        rows = rows if alpha == 1 else rows * alpha
        return target.add_(rows) if func.__name__.endswith("_") else target + rows


# All of them.


def follow(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function that selects rows, or that takes selected ones; return None if it is another one.

    Args:
        tape: The tape that watches.
        func: A function of torch, private tensors among its arguments.
        args: Its positional arguments.
        kwargs: Its named arguments.
    """
    facts = [fact_of(tensor) for tensor in found_in(args, kwargs)]
    rows = [fact for fact in facts if isinstance(fact, Rows)]
    if any(fact.writes != fact.memory.writes for fact in rows):
        raise NotSound(
            f"{func.__name__} takes selected rows{user_line()} that were written to by another view of them, "
            "which is not followed.",
            remedy="Write to the selected rows themselves, or compute new ones.",
        )
    handler = _HANDLERS.get(func)
    result = None if handler is None else handler(tape, func, args, kwargs)
    if result is not None:
        return result
    for target in found_in(args[:1] if in_place(func) else (), {"out": kwargs.get("out")}):
        if isinstance(fact := fact_of(target), Rows):
            fact.memory.writes += 1
    selection = rows[0].selection if rows else None
    if selection is None or func is functional.embedding_bag or "out" in kwargs:
        return None
    if not _is_current(tape, selection):
        return None
    if func.__name__.split(".")[0] in ("squeeze", "squeeze_", "squeeze_copy") and not _keeps_rows(
        args, kwargs
    ):
        # The number of dimensions of what torch returns depends on how many rows were selected.
        return None
    if any(map(_is_private, (*args, *kwargs.values()))):
        return None
    return _by_row(tape, func, args, kwargs, selection)


def _keeps_rows(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether squeeze(x, dim) leaves the first dimension as it is."""
    given = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    places = given if isinstance(given, tuple | list) else (given,)
    return all(type(place) is int and place % args[0].dim() for place in places)


def _is_private(value: Any) -> bool:
    """Return whether an argument is a private number, or has one in it."""
    if isinstance(value, tuple | list):
        return any(map(_is_private, value))
    if isinstance(value, slice):
        return any(map(_is_private, (value.start, value.stop, value.step)))
    return isinstance(value, PrivateInteger | PrivateNumber)


def _both(names: str) -> list[Function]:
    """Return functions of torch, and methods of tensors, of these names."""
    homes = torch, Tensor
    return [getattr(home, name) for name in names.split() for home in homes if hasattr(home, name)]


_SUMS = frozenset(_both("sum"))
_WHERE = frozenset(_both("where"))
_COLUMNS = _both("squeeze flatten reshape") + [
    getattr(Tensor, name) for name in ("view", "to", "long", "clone", "detach", "contiguous", "cpu", "cuda")
]
_HANDLERS: dict[Function, Handler] = (
    dict.fromkeys(_both("nonzero argwhere where"), _positions)
    | dict.fromkeys(_COLUMNS, _column)
    | dict.fromkeys(_both("index_select"), _taken)
    | dict.fromkeys(_both("index_add index_add_"), _added)
    | dict.fromkeys(_both("index_put index_put_"), _index_put)
    | {Tensor.__getitem__: _picked, Tensor.__setitem__: _written}
)
"""Functions that select rows or write them back."""
