"""Rules for operators that take dimensions away.

Over the batch, `sum` and `mean` give a total; every other reduction over the batch mixes examples.
"""

from __future__ import annotations

from torch import Tensor

from dalenius.learn.dataflow.operations import Operation
from dalenius.learn.dataflow.states import AXIS, COPIES, PLACED, TOTAL, UNIFORM, State, mixed, times_batch

NAMES = (
    "sum mean nansum amax amin max min argmax argmin prod any all std var std_mean var_mean logsumexp norm "
    "linalg_vector_norm median nanmedian mode count_nonzero aminmax kthvalue"
)
POWERS = {"sum": 0, "mean": -1}
_SUMMED = (AXIS, COPIES, UNIFORM)
"""What a sum over examples is a total of: of copies it depends on how many examples there are."""


def reduction(op: Operation) -> None:
    """Keep the batch axis unless it is reduced."""
    source: Tensor = op["self"]
    state = op.state(source)
    dims = op.dimensions("dim", source)
    if state is None or state.kind not in (*PLACED, TOTAL, UNIFORM):
        op.put_all(None)
    elif state.kind == TOTAL:
        _of_total(op, source, state, dims)
    else:
        _of_axis(op, source, state, dims)


def _of_total(op: Operation, source: Tensor, state: State, dims: set[int]) -> None:
    if op.name in POWERS and not op["mask"]:
        op.keep_total(state.power)
    else:
        op.put_all(mixed(op.name, "is not linear in a sum over examples"))


def _of_axis(op: Operation, source: Tensor, state: State, dims: set[int]) -> None:
    place = op.place(source)
    if place is None:
        spanned = len(dims) == source.dim() and op.name in POWERS and state.kind in _SUMMED
        long = times_batch(tuple(source.shape)) == 1 or state.kind == AXIS
        op.put_all(State(TOTAL, power=POWERS[op.name]) if spanned and long else _lost(op, state))
    elif place[0] in dims:
        total = op.name in POWERS and state.kind in _SUMMED and times_batch(tuple(source.shape)) == 1
        op.put_all(State(TOTAL, power=POWERS[op.name]) if total else _lost(op, state))
    else:
        kept = bool(op["keepdim"])
        dimension = place[0] - (0 if kept else sum(number < place[0] for number in dims))
        for tensor in op.results:
            op.put_placed(tensor, COPIES if state.kind == UNIFORM else state.kind, (dimension, place[1]))


def _lost(op: Operation, state: State) -> State | None:
    return mixed(op.name, "is taken over the batch") if state.kind == AXIS else None


RULES = dict.fromkeys(NAMES.split(), reduction)
