"""Rules for operators that move entries without changing them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from dalenius.learn.dataflow.operations import ALONG, Operation, Place
from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    MIXED,
    PLACED,
    TOTAL,
    UNIFORM,
    State,
    locate,
    mixed,
    multiplicity,
    outer_at,
)

_END = 1 << 62
Rule = Callable[[Operation], None]


def _plain(op: Operation) -> bool:
    """Settle tensors that have no batch axis: totals and uniform ones stay so, public ones too."""
    state = op.state(op.tensors[0])
    if state is None or state.kind in (TOTAL, UNIFORM):
        op.put_all(state)
        return True
    return False


def _cuts_draws(op: Operation, dimension: int) -> bool:
    """Return whether a dimension is the batch of random numbers, of which one example has one each.

    A part of them would give an example the number of another.
    """
    state, place = op.state(op.tensors[0]), op.place(op.tensors[0])
    if state is None or state.kind != UNIFORM or not state.drawn:
        return False
    return place is not None and place[0] == dimension


def _settled(op: Operation) -> bool:
    """Settle what has no batch axis where entries are computed along a dimension: only public tensors may."""
    kind = op.kind(op.tensors[0])
    if kind == TOTAL:
        op.mix("is not linear in a sum over examples")
        return True
    if kind in PLACED or (kind == UNIFORM and op.place(op.tensors[0]) is not None):
        return False
    op.put_all(None)
    return True


def _moved(op: Operation, tensor: Tensor, place: Place | None) -> None:
    """Give a result the batch axis of the first argument at a new place, or mix."""
    kind = op.kind(op.tensors[0])
    if place is None:
        op.put(tensor, mixed(op.name, ALONG) if kind == AXIS else None)
    else:
        op.put_placed(tensor, COPIES if kind == UNIFORM else kind, place)


def reshape(op: Operation) -> None:
    """Keep `outer`: it says where the axis is in row-major order, whatever the shape."""
    state, source = op.state(op.tensors[0]), op.tensors[0]
    kept = all(tensor.numel() == source.numel() for tensor in op.results)
    cut = state is not None and state.kind == AXIS and op.place(source) is not None
    shapes = [tuple(tensor.shape) for tensor in op.results]
    if kept and cut and state and any(locate(shape, state.outer, op.examples) is None for shape in shapes):
        op.mix("cuts the batch into pieces that are not examples")
        return
    drawn = op.place(source) if state is not None and state.kind == UNIFORM else None
    if kept and drawn is not None:
        # Random numbers stay with the examples that they were drawn for.
        outer = outer_at(tuple(source.shape), *drawn)
        for tensor, shape in zip(op.results, shapes, strict=True):
            place = locate(shape, outer, op.examples)
            lost = None if place is None else State(COPIES, outer)
            op.put(tensor, state if place is not None and place[1] == 1 else lost)
    elif kept or state is None or state.kind in (TOTAL, UNIFORM):
        op.put_all(state)
    else:
        op.mix("changes the number of entries")


def _permuted(order: list[int]) -> Callable[[Place], Place]:
    return lambda place: (order.index(place[0]), place[1])


def permute(op: Operation) -> None:
    """Move the axis with its dimension: permute, transpose, t."""
    source = op.tensors[0]
    dims = list(range(source.dim()))
    if op.name == "permute":
        order = [int(number) % source.dim() for number in op["dims"]]
    else:
        first, second = (op["dim0"], op["dim1"]) if op.name == "transpose" else (0, min(1, len(dims) - 1))
        order = dims
        if dims:
            first, second = first % len(dims), second % len(dims)
            order[first], order[second] = order[second], order[first]
    if _plain(op):
        return
    place = op.place(source)
    for tensor in op.results:
        _moved(op, tensor, None if place is None else _permuted(order)(place))


def expand(op: Operation) -> None:
    """Repeat along dimensions of size 1 or new ones; public tensors expanded by the batch are copies."""
    source, result = op.tensors[0], op.results[0]
    state, more = op.state(source), result.dim() - source.dim()
    drawn = state is not None and state.kind == UNIFORM and state.drawn and source.numel() > 1
    if state is not None and (state.kind in PLACED or (drawn and op.place(source) is not None)):
        place = op.place(source)
        _moved(op, result, None if place is None else (place[0] + more, place[1]))
        return
    # Random numbers that are repeated are not independent any more: they are constants like others.
    state = None if drawn else state
    new = [
        i
        for i, size in enumerate(result.shape)
        if size % op.examples == 0 and size and (i < more or source.shape[i - more] != size)
    ]
    if state is not None:
        op.put(result, state if state.kind == UNIFORM or (state.kind == TOTAL and not new) else None)
        if state.kind == TOTAL and new:
            op.put(result, mixed(op.name, "spreads a total over examples"))
    elif new:
        op.put_placed(result, COPIES, (new[0], 1))
    else:
        op.put(result, None)


def repeat(op: Operation) -> None:
    """Put copies of a tensor end to end along its dimensions."""
    source, result, times = op.tensors[0], op.results[0], [int(number) for number in op["repeats"]]
    state, more = op.state(source), result.dim() - source.dim()
    # Numbers that were drawn for each example stay with it.
    drawn = state is not None and state.kind == UNIFORM and op.place(source) is not None
    if state is None or (state.kind not in PLACED and not drawn):
        # Others that are repeated are not independent any more: they are constants.
        state = None if state is not None and state.drawn and source.numel() > 1 else state
        long = [i for i, number in enumerate(times) if number and number % op.examples == 0]
        if state is None and long:
            op.put(result, State(COPIES, outer_at(tuple(result.shape), long[0], 1)))
        elif state is not None and state.kind == TOTAL and long:
            op.put(result, mixed(op.name, "spreads a total over examples"))
        else:
            op.put(result, state)
        return
    place = op.place(source)
    if place is None:
        _moved(op, result, None)
    else:
        dimension = place[0] + more
        _moved(op, result, (dimension, place[1] * times[dimension]))


def select(op: Operation) -> None:
    """Take one index along a dimension, which is lost."""
    if _plain(op):
        return
    source, dimension = op.tensors[0], op.dimension("dim", op.tensors[0])
    place = op.place(source)
    if place is None or place[0] == dimension:
        op.mix("takes one example")
        return
    for tensor in op.results:
        _moved(op, tensor, (place[0] - (dimension < place[0]), place[1]))


def _blocks(op: Operation, place: Place, start: int, length: int, whole: int) -> Place | None:
    """Return the place of whole batches that lie end to end in a dimension and are cut between two."""
    block = whole // place[1]
    if place[1] == 1 or start % block or length % block or not length:
        return None
    return place[0], length // block


def slice_(op: Operation) -> None:
    """Cut a range out of a dimension; along the batch only all of it, or whole batches end to end."""
    source, dimension = op.tensors[0], op.dimension("dim", op.tensors[0])
    place, result = op.place(source), op.results[0]
    if _cuts_draws(op, dimension) and result.shape != source.shape:
        op.put(result, None)
        return
    if _plain(op):
        return
    if place is None:
        _moved(op, result, None)
    elif place[0] != dimension:
        _moved(op, result, place)
    else:
        start, end, step = op["start"] or 0, op["end"], op["step"] or 1
        size = source.shape[dimension]
        # x[:len(x)], and x[:], have all rows; x[:5] has five, or fewer.
        begins = start == 0 or (start < 0 and multiplicity(start) and start + size <= 0)
        ends = end is None or end >= _END or (end >= size and multiplicity(end))
        if begins and ends and step == 1:
            _moved(op, result, place)
            return
        start = start % size if start < 0 else start
        _moved(op, result, _blocks(op, place, start, result.shape[dimension], size) if step == 1 else None)
        state = op.state(result)
        if state is not None and state.kind == MIXED:
            # x[:5] has five rows, or fewer: without a shape, all of its sizes are private.
            op.states[id(result)] = state._replace(shape=None)


def split(op: Operation) -> None:
    """Cut a dimension into ranges, or take all its indices one by one (unbind)."""
    source, dimension = op.tensors[0], op.dimension("dim", op.tensors[0])
    if _cuts_draws(op, dimension):
        op.put_all(None)
        return
    if _plain(op):
        return
    place, start = op.place(source), 0
    for tensor in op.results:
        if place is None:
            _moved(op, tensor, None)
        elif op.name == "unbind":
            gone = place[0] == dimension
            _moved(op, tensor, None if gone else (place[0] - (dimension < place[0]), place[1]))
        elif place[0] != dimension:
            _moved(op, tensor, place)
        else:
            length = tensor.shape[dimension]
            _moved(op, tensor, _blocks(op, place, start, length, source.shape[dimension]))
            start += length


def flip(op: Operation) -> None:
    """Reverse given dimensions, of which the batch must not be one, nor of numbers drawn for each example."""
    if op.place(op.tensors[0]) is not None or not _plain(op):
        along(op)


def along(op: Operation) -> None:
    """Compute along given dimensions, of which the batch must not be one."""
    if op.name != "flip" and _settled(op):
        return
    source = op.tensors[0]
    names = [name for name in ("dims", "dim", "dim1", "dim2", "dimension") if op[name] is not None]
    touched = set().union(*(op.dimensions(name, source) for name in names))
    place = op.place(source)
    for tensor in op.results:
        _moved(op, tensor, None if place is None or place[0] in touched else place)


def roll(op: Operation) -> None:
    """Rotate along dimensions; without any, along all of them."""
    if not op["dims"] and op.place(op.tensors[0]) is not None:
        op.mix(ALONG)
    else:
        flip(op)


def diagonal(op: Operation) -> None:
    """Take a diagonal of two dimensions, which become the last one."""
    if _plain(op):
        return
    source = op.tensors[0]
    gone = {op["dim1"] % source.dim(), op["dim2"] % source.dim()}
    place = op.place(source)
    for tensor in op.results:
        if place is None or place[0] in gone:
            _moved(op, tensor, None)
        else:
            _moved(op, tensor, (place[0] - sum(number < place[0] for number in gone), place[1]))


def joined(op: Operation) -> None:
    """Put tensors beside each other (cat) or one behind the other in a new dimension (stack)."""
    tensors, result = list(op["tensors"]), op.results[0]
    if TOTAL in op.kinds:
        powers = {op.total_power(tensor) for tensor in tensors if op.kind(tensor) == TOTAL}
        alone = all(op.kind(tensor) in (0, TOTAL, UNIFORM) for tensor in tensors)
        kept = alone and len(powers) == 1
        op.put(
            result,
            State(TOTAL, power=powers.pop() or 0) if kept else mixed(op.name, "joins totals with others"),
        )
        return
    tensors = [tensor for tensor in tensors if tensor.dim() != 1 or tensor.numel()] or tensors
    dimension = op.dimension("dim", result)
    stacked = op.name == "stack"
    place = op.common(tensors, tensors[0].dim())
    if place is None:
        _joined_public(op, tensors, result)
    elif isinstance(place, str):
        op.put(result, mixed(op.name, place))
    elif stacked:
        op.put_placed(result, AXIS, (place[0] + (dimension <= place[0]), place[1]))
    elif dimension != place[0]:
        op.put_placed(result, AXIS, place)
    else:
        # Batches of the same examples, end to end.
        sizes = {tensor.shape[dimension] for tensor in tensors}
        whole = all(op.kind(tensor) == AXIS for tensor in tensors) and len(sizes) == 1
        if whole:
            op.put_placed(result, AXIS, (dimension, place[1] * len(tensors)))
        else:
            op.put(result, mixed(op.name, "joins examples with others along the batch"))


def _joined_public(op: Operation, tensors: list[Tensor], result: Tensor) -> None:
    places = {op.place(tensor) for tensor in tensors if op.kind(tensor) in (COPIES, UNIFORM)} - {None}
    place = places.pop() if len(places) == 1 else None
    dimension, stacked = op.dimension("dim", result), op.name == "stack"
    if (
        place is None
        or (dimension == place[0] and not stacked)
        or any(op.varies(tensor, place, tensor.dim()) for tensor in tensors)
    ):
        op.put(result, None)
    else:
        op.put_placed(result, COPIES, (place[0] + (stacked and dimension <= place[0]), place[1]))


def pad(op: Operation) -> None:
    """Pad trailing dimensions with a constant; the batch must not be one of them."""
    if _settled(op):
        return
    source, place = op.tensors[0], op.place(op.tensors[0])
    padded = {
        source.dim() - 1 - i // 2 for i, number in enumerate(op["pad"] or op["padding"] or []) if number
    }
    for tensor in op.results:
        _moved(op, tensor, None if place is None or place[0] in padded else place)


def triangle(op: Operation) -> None:
    """Zero a triangle of the last two dimensions."""
    if _settled(op):
        return
    source, place = op.tensors[0], op.place(op.tensors[0])
    kept = place is not None and place[0] < source.dim() - 2
    for tensor in op.results:
        _moved(op, tensor, place if kept else None)


def interleaved(op: Operation) -> None:
    """Repeat every index of a dimension a public number of times."""
    source, result = op.tensors[0], op.results[0]
    state, place = op.state(source), op.place(source)
    drawn = state is not None and state.kind == UNIFORM and state.drawn and source.numel() > 1
    if not drawn and _plain(op):
        return
    if place is None or op["dim"] is None or not isinstance(op["repeats"], int):
        _moved(op, result, None)
    else:
        _moved(op, result, place)


_TABLE: dict[Rule, str] = {
    reshape: "view _unsafe_view reshape _reshape_alias unsqueeze squeeze view_as_real view_as_complex "
    "flatten",
    permute: "permute transpose t",
    expand: "expand broadcast_to",
    repeat: "repeat tile",
    select: "select",
    slice_: "slice",
    split: "unbind split split_with_sizes unsafe_split unsafe_split_with_sizes",
    along: "sort cumsum cumprod logcumsumexp cummax cummin _softmax _log_softmax _safe_softmax topk glu "
    "_fft_r2c _fft_c2c _fft_c2r unfold",
    flip: "flip",
    roll: "roll",
    diagonal: "diagonal",
    joined: "cat stack",
    pad: "constant_pad_nd",
    triangle: "tril triu",
    interleaved: "repeat_interleave",
}
RULES = {name: rule for rule, names in _TABLE.items() for name in names.split()}
