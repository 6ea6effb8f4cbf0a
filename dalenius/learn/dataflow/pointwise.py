"""Rules for operators that compute every entry of a broadcast result by itself, and for random draws."""

from __future__ import annotations

from torch import Tensor

from dalenius.learn.dataflow.operations import Operation
from dalenius.learn.dataflow.states import AXIS, PRIVATE, TOTAL, UNIFORM, State, mixed

_FACTORS = ("mul", "div")
_LINEAR = frozenset(["neg", "clone", "alias", "detach", "lift", "lift_fresh", "_to_copy", "positive"])


def pointwise(op: Operation) -> None:
    """Keep the batch axis that all private arguments share; public ones must not differ along it."""
    by = op.batch_factor()
    # n / x is not linear in x, and has another power than x / n.
    above = op.name == "div" and not isinstance(op["self"], Tensor)
    if by and (op.name not in _FACTORS or not op.private or above or op["rounding_mode"] is not None):
        op.put_all(mixed(op.name, "computes with the size of the batch, which is private"))
    elif TOTAL in op.kinds:
        _total(op, by)
    elif by:
        op.follow(op.tensors)
        op.raise_power(by if op.name == "mul" else -by)
    else:
        op.follow(op.tensors)


def _total(op: Operation, by: int) -> None:
    """Keep a total under the operations that are linear in it: c·t, t/c, t ± public, t ± t.

    Args:
        op: The operation.
        by: How often the size of the batch is a factor of the numbers among its arguments.
    """
    powers = {op.total_power(tensor) for tensor in op.tensors if op.kind(tensor) == TOTAL}
    others = [tensor for tensor in op.tensors if op.kind(tensor) != TOTAL]
    reason = "is not linear in a sum over examples"
    power = powers.pop()
    if powers:
        reason = "adds a mean over examples to a sum over examples"
    elif power is not None and all(op.kind(tensor) != AXIS for tensor in others):
        if op.name in _LINEAR or op.name in ("add", "sub", "rsub"):
            op.keep_total(power)
            return
        if op.name == "mul" and len(others) == len(op.tensors) - 1:
            op.keep_total(power + by)
            return
        if op.name == "div" and op.kind(op["other"]) != TOTAL and op["rounding_mode"] is None:
            op.keep_total(power - by)
            return
    op.put_all(mixed(op.name, reason))


def same(op: Operation) -> None:
    """Keep the state of the first argument: the result has the same entries in the same order."""
    op.put_all(op.state(op.tensors[0]))


def fill(op: Operation) -> None:
    """Overwrite with one public value, or with independent random numbers."""
    if any(op.kind(tensor) for tensor in op.tensors[1:]) or op.batch_factor():
        op.put_all(mixed(op.name, "writes a private value into every example"))
    else:
        op.put_all(State(UNIFORM))


def copy(op: Operation) -> None:
    """Overwrite with the broadcast values of another tensor."""
    source = op["src"]
    if op.kind(source) == TOTAL:
        op.put_all(op.state(source) if source.shape == op["self"].shape else mixed("copy", "spreads a total"))
        return
    op.private = op.kind(source) in PRIVATE
    op.follow([source])


POINTWISE = (
    "bernoulli poisson binomial _standard_gamma native_dropout rrelu_with_noise _prelu_kernel glu_jvp "
    "log_sigmoid_forward hardswish complex polar isclose masked_fill nan_to_num floor_divide where "
    "_safe_softplus special_log_ndtr absolute fake_quantize_per_tensor_affine_cachemask special_expit "
    "special_logit special_gammaln bitwise_not"
)
SAME = (
    "clone alias detach lift lift_fresh _to_copy contiguous _conj conj _neg_view resolve_conj resolve_neg "
    "positive to pin_memory"
)
FILLS = "fill zero uniform random exponential geometric cauchy log_normal"
RULES = (
    dict.fromkeys(POINTWISE.split(), pointwise)
    | dict.fromkeys(SAME.split(), same)
    | dict.fromkeys(FILLS.split(), fill)
    | {"copy": copy}
)
