"""Rules for operators that make tensors: what they fill them with is public."""

from __future__ import annotations

from dalenius.learn.dataflow.operations import WIDE, Operation
from dalenius.learn.dataflow.pointwise import pointwise
from dalenius.learn.dataflow.states import COPIES, POSITION, UNIFORM, State, mixed

_UNIFORM = (
    "zeros ones full empty empty_strided empty_permuted rand randn randint zeros_like ones_like full_like "
    "empty_like rand_like randn_like randint_like new_zeros new_ones new_full new_empty new_empty_strided "
    "scalar_tensor"
)

_DRAWN_LIKE = frozenset(("rand_like", "randn_like", "randint_like"))


def uniform(op: Operation) -> None:
    """Mark a tensor of equal, or of independent and identically distributed random entries."""
    if op.kind(op["fill_value"]) or op.batch_factor():
        op.put_all(mixed(op.name, "fills a tensor with a private value"))
    elif op.name in _DRAWN_LIKE and (place := op.place(op["self"])) is not None and place[1] > 1:
        # Every number is drawn for the example that has the entry at its place.
        for tensor in op.results:
            op.put_placed(tensor, COPIES, place)
    else:
        op.put_all(State(UNIFORM))


def normal(op: Operation) -> None:
    """Draw Gaussian numbers: of a size, by plain numbers, or with a mean or a deviation for every entry."""
    if "size" in op.given:
        scaled = op.kind(op["mean"]) or op.kind(op["std"]) or op.batch_factor()
        op.put_all(mixed(op.name, "draws by a private value") if scaled else State(UNIFORM))
    else:
        pointwise(op)


def arange(op: Operation) -> None:
    """Mark the positions of examples, where there is one number for each row of a batch."""
    end, start, step = op["end"], op["start"] or 0, op["step"] or 1
    rows = start == 0 and step == 1 and isinstance(end, int) and end > 0 and end % op.examples == 0
    # Other types begin anew after 128 or 256 numbers, or round them.
    rows = rows and all(tensor.dtype in WIDE for tensor in op.results)
    op.put_all(State(POSITION, 1) if rows else None)


RULES = dict.fromkeys(_UNIFORM.split(), uniform) | {"arange": arange, "normal": normal}
