"""Keep private values within the range that functions of torch accept: indices, labels, probabilities.

torch raises an error for a token that its table does not hold, for a label that is not a class, or for
a probability that is not a number. Whether a run ends with an error would tell whether somebody's row holds
such a value. In private passes these functions are total:

    a token, or another index              is clamped to the table
    a label of a cross entropy             is ignored, as `ignore_index` is
    a label of a margin loss, or one-hot   is clamped to the classes
    a probability                          is clamped to [0, 1]; 0.5 for one that is not a number
    weights of a multinomial               are all equal in a row where they are no weights
    a rate, or a standard deviation        is clamped to 0 from below
    a matrix of numbers that are not       is 0, where its singular or eigenvalues are asked for
    a divisor of whole numbers             is 1 in place of 0
    an entry of a histogram                is clamped to finite numbers; 0 for one that is not a number

Values in range are not changed, and neither are the gradients of rows that hold no others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Function = Callable[..., Any]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
IsPrivate = Callable[[Tensor], bool]

LOOKUPS: frozenset[Function] = frozenset((functional.embedding, functional.embedding_bag, torch.embedding))
"""The functions that look up the rows of a table."""
CRITERIA: frozenset[Function] = frozenset((functional.cross_entropy, functional.nll_loss))
"""The functions that take the numbers of classes."""
PICK = Tensor.__getitem__
_ALONG = (
    *("gather", "index_select", "scatter", "scatter_add", "scatter_reduce"),
    *("index_add", "index_copy", "index_fill", "index_reduce"),
)
"""Methods that take a tensor, a dimension and an index into it."""
_IGNORED = -100
_MOST_RATE = 2.0**31


def with_valid_indices(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate = lambda _: True
) -> Arguments:
    """Return the arguments of a call with every private value in range.

    Args:
        func: One of `GUARDED`.
        args: Its positional arguments.
        kwargs: Its named arguments.
        private: Returns whether a tensor depends on private examples. Public ones are left alone, so that a
            mistake in the loop's own code raises its error.
    """
    return GUARDED[func](func, args, kwargs, private)


def _criterion(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], _: IsPrivate) -> Arguments:
    return _replaced(args, kwargs, 1, "target", _valid_labels(func, args, kwargs))


def _lookup(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], _: IsPrivate) -> Arguments:
    first = 1 if func is torch.embedding else 0
    tokens = _argument(args, kwargs, first, "indices" if first else "input")
    table = _argument(args, kwargs, 1 - first, "weight")
    if not isinstance(tokens, Tensor) or not isinstance(table, Tensor) or not table.shape[0]:
        return args, kwargs
    valid = tokens.clamp(0, table.shape[0] - 1)
    return _replaced(args, kwargs, first, "indices" if first else "input", valid)


def _along(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    """Clamp the index of `gather(x, dim, index)` and its like."""
    x = _argument(args, kwargs, 0, "input")
    dimension, index = _argument(args, kwargs, 1, "dim"), _argument(args, kwargs, 2, "index")
    if type(dimension) is not int or not isinstance(index, Tensor) or not private(index):
        return args, kwargs
    if x.dim() and not -x.dim() <= dimension < x.dim():
        return args, kwargs
    size = x.shape[dimension] if x.dim() else 1
    return _replaced(args, kwargs, 2, "index", index.clamp(0, size - 1) if size else index)


def _taken(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    """Clamp the index of `take(x, index)`, which may count from the end."""
    x, index = _argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "index")
    if not isinstance(index, Tensor) or not private(index) or not x.numel():
        return args, kwargs
    return _replaced(args, kwargs, 1, "index", index.clamp(-x.numel(), x.numel() - 1))


def _picked(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    """Clamp the indices of `x[…]`, which may count from the end."""
    if len(args) < 2 or not isinstance(args[0], Tensor):
        return args, kwargs
    x, at = args[0], args[1]
    parts = list(at) if isinstance(at, tuple | list) else [at]
    counted = sum(_dimensions(part) for part in parts if part is not Ellipsis)
    dimension = 0
    for place, part in enumerate(parts):
        if part is Ellipsis:
            dimension += max(x.dim() - counted, 0)
            continue
        if isinstance(part, Tensor) and _is_index(part) and dimension < x.dim():
            size = x.shape[dimension]
            if size and private(part):
                parts[place] = part.clamp(-size, size - 1)
        dimension += _dimensions(part)
    at = type(at)(parts) if isinstance(at, tuple | list) else parts[0]
    return (x, at, *args[2:]), kwargs


def _is_index(tensor: Tensor) -> bool:
    kind = tensor.dtype
    return not (kind.is_floating_point or kind.is_complex or kind in (torch.bool, torch.uint8))


def _dimensions(part: Any) -> int:
    """Return how many dimensions a part of an index is for."""
    if part is None or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype in (torch.bool, torch.uint8):
        return part.dim()
    return 1


def _one_hot(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    classes = _argument(args, kwargs, 1, "num_classes")
    if type(classes) is not int or classes < 1:
        return args, kwargs
    name = "tensor" if "tensor" in kwargs else "input"
    return _changed(args, kwargs, 0, name, private, partial(torch.clamp, min=0, max=classes - 1))


def _margin(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    """Clamp labels to classes; in lists of labels, −1 ends a list."""
    scores, labels = _argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "target")
    if not isinstance(labels, Tensor) or not scores.dim() or not scores.shape[-1] or not private(labels):
        return args, kwargs
    least = -1 if "multilabel" in func.__name__ else 0
    return _replaced(args, kwargs, 1, "target", labels.clamp(least, scores.shape[-1] - 1))


def _cross_entropy(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate
) -> Arguments:
    for place, name in enumerate(("input", "target")):
        args, kwargs = _changed(args, kwargs, place, name, private, _probability)
    return args, kwargs


def _bernoulli(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate
) -> Arguments:
    if getattr(func, "__name__", "") == "bernoulli_":
        return _changed(args, kwargs, 1, "p", private, _probability)
    return _changed(args, kwargs, 0, "input", private, _probability)


def _binomial(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    args, kwargs = _changed(args, kwargs, 0, "count", private, _rate)
    return _changed(args, kwargs, 1, "prob", private, _probability)


def _multinomial(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate
) -> Arguments:
    return _changed(args, kwargs, 0, "input", private, _law)


def _poisson(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    return _changed(args, kwargs, 0, "input", private, _rate)


def _normal(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    return _changed(args, kwargs, 1, "std", private, _deviation)


def _decomposed(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate
) -> Arguments:
    name = "A" if args or "A" in kwargs else "input"
    return _changed(args, kwargs, 0, name, private, _finite_matrix)


def _divided(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    """Divide whole numbers by 1 in place of 0, and of −1 where the quotient is out of range."""
    if func in _ROUNDED and _argument(args[2:], kwargs, 0, "rounding_mode") is None:
        return args, kwargs
    place, name = (0, "self") if func.__name__ in _REVERSED else (1, "other")
    divisor, other = _argument(args, kwargs, place, name), _argument(args, kwargs, 1 - place, "input")
    numbers = [value for value in (divisor, other) if isinstance(value, Tensor)]
    if not numbers or not any(map(private, numbers)) or not all(map(_is_whole, (divisor, other))):
        return args, kwargs
    if not isinstance(divisor, Tensor):
        # Zero is a mistake in the loop's own code. The least number by −1 is out of range.
        if divisor != -1:
            return args, kwargs
        divisor = torch.full((), -1, dtype=numbers[0].dtype, device=numbers[0].device)
    least = torch.iinfo(torch.int64 if divisor.dtype is torch.bool else divisor.dtype).min
    undefined = divisor == 0
    if least:
        undefined = undefined | ((divisor == -1) & torch.as_tensor(other == least, device=divisor.device))
    return _replaced(args, kwargs, place, name, torch.where(undefined, 1, divisor))


def _is_whole(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not (value.is_floating_point() or value.is_complex())
    return isinstance(value, int)


def _spectral(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    """Take norms of singular values of finite entries."""
    if _argument(args, kwargs, 1, "ord") not in ("nuc", 2, -2):
        return args, kwargs
    return _changed(args, kwargs, 0, "A", private, lambda x: torch.where(x.isfinite(), x, 0.0))


def _counted(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    return _changed(args, kwargs, 0, "input", private, _finite)


def _quantile(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    return _changed(args, kwargs, 1, "q", private, _probability)


def _finite(x: Tensor) -> Tensor:
    """Return numbers of which any two have a finite difference."""
    if not x.is_floating_point():
        return x
    most = torch.finfo(x.dtype).max / 4
    return x.nan_to_num(0.0).clamp(-most, most)


def _ctc(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], private: IsPrivate) -> Arguments:
    """Clamp labels to classes, and lengths to those of the tensors."""
    scores, targets = _argument(args, kwargs, 0, "log_probs"), _argument(args, kwargs, 1, "targets")
    if not isinstance(scores, Tensor) or not isinstance(targets, Tensor) or scores.dim() < 2:
        return args, kwargs
    limits = scores.shape[-1] - 1, scores.shape[0], targets.shape[-1] if targets.dim() else 0
    for place, name in enumerate(("targets", "input_lengths", "target_lengths")):
        most = limits[place]
        if place == 2 and targets.dim() < scores.dim() - 1:
            continue
        limited = partial(torch.clamp, min=0, max=most)
        args, kwargs = _changed(args, kwargs, place + 1, name, private, limited)
    return args, kwargs


def _probability(x: Tensor) -> Tensor:
    return x.clamp(0, 1).nan_to_num(0.5) if x.is_floating_point() else x


def _rate(x: Tensor) -> Tensor:
    return x.clamp(min=0).nan_to_num(0.0, posinf=_MOST_RATE) if x.is_floating_point() else x


def _deviation(x: Tensor) -> Tensor:
    return torch.where(x >= 0, x, 0.0) if x.is_floating_point() else x


def _law(weights: Tensor) -> Tensor:
    """Return weights of a law along the last dimension; equal ones in rows that are none."""
    total = weights.sum(-1, keepdim=True)
    valid = (weights >= 0).all(-1, keepdim=True) & (total > 0) & total.isfinite()
    return torch.where(valid, weights, 1.0)


def _finite_matrix(x: Tensor) -> Tensor:
    if x.dim() < 2 or not (x.is_floating_point() or x.is_complex()):
        return x
    return torch.where(x.isfinite().all(-1, keepdim=True).all(-2, keepdim=True), x, 0.0)


def _valid_labels(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the labels, with `ignore_index` in place of those that are not a class."""
    scores, labels = (_argument(args, kwargs, place, name) for place, name in enumerate(("input", "target")))
    if not isinstance(labels, Tensor) or labels.is_floating_point() or not scores.dim():
        return labels
    ignored = _argument(args, kwargs, 4, "ignore_index")
    ignored = _IGNORED if ignored is None else ignored
    classes = scores.shape[0 if scores.dim() == 1 else 1]
    return torch.where((labels >= 0) & (labels < classes), labels.long(), ignored)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    return args[place] if place < len(args) else kwargs.get(name)


def _changed(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    place: int,
    name: str,
    private: IsPrivate,
    change: Callable[[Tensor], Tensor],
) -> Arguments:
    """Return arguments with one of them changed, if it is a private tensor."""
    value = _argument(args, kwargs, place, name)
    if not isinstance(value, Tensor) or not private(value):
        return args, kwargs
    return _replaced(args, kwargs, place, name, change(value))


def _replaced(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str, value: Any) -> Arguments:
    if place < len(args):
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, kwargs | {name: value}


_Guard = Callable[[Function, tuple[Any, ...], dict[str, Any], IsPrivate], Arguments]
_nn: Any = torch._C._nn
_REVERSED = frozenset(("__rfloordiv__", "__rmod__"))
"""Operators whose divisor comes first."""
_ROUNDED = frozenset(
    getattr(home, name + ending)
    for name in ("div", "divide")
    for home in (torch, Tensor)
    for ending in ("", "_")
    if hasattr(home, name + ending)
)
"""Divisions that are of whole numbers where a rounding is asked for."""
_QUOTIENTS = (
    *("floor_divide", "remainder", "fmod", "div", "divide"),
    *("__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__ifloordiv__", "__imod__"),
)
"""Functions and operators that divide whole numbers by one another, or give what is left of them."""
_EITHER: dict[str, _Guard] = (
    dict.fromkeys(_ALONG, _along)
    | dict.fromkeys(_QUOTIENTS, _divided)
    | {
        "take": _taken,
        "put": _taken,
        "histc": _counted,
        "histogram": _counted,
        "quantile": _quantile,
        "nanquantile": _quantile,
        "index_put": _picked,
        "bernoulli": _bernoulli,
        "multinomial": _multinomial,
        "svd": _decomposed,
        "pinverse": _decomposed,
    }
)
"""Guards of functions of `torch` that are methods of tensors as well, some of them in place."""
GUARDED: dict[Function, _Guard] = {
    **dict.fromkeys(LOOKUPS, _lookup),
    **dict.fromkeys(CRITERIA, _criterion),
    **{
        getattr(home, name + ending): guard
        for name, guard in _EITHER.items()
        for home in (torch, Tensor)
        for ending in ("", "_")
        if hasattr(home, name + ending)
    },
    PICK: _picked,
    Tensor.__setitem__: _picked,
    functional.one_hot: _one_hot,
    functional.multi_margin_loss: _margin,
    _nn.multi_margin_loss: _margin,
    functional.multilabel_margin_loss: _margin,
    _nn.multilabel_margin_loss: _margin,
    functional.binary_cross_entropy: _cross_entropy,
    _nn.binary_cross_entropy: _cross_entropy,
    functional.ctc_loss: _ctc,
    torch.binomial: _binomial,
    torch.poisson: _poisson,
    torch.normal: _normal,
    **dict.fromkeys(
        (
            getattr(torch.linalg, name)
            for name in ("svd", "svdvals", "pinv", "eig", "eigvals", "eigvalsh", "cond", "matrix_rank")
        ),
        _decomposed,
    ),
    **dict.fromkeys((torch.linalg.matrix_norm, torch.linalg.norm), _spectral),
}
"""By function: what keeps its private arguments in range."""
