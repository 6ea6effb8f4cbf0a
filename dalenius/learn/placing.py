"""Where the results of a function hold examples, by where its arguments do.

    moves      entries go elsewhere: the numbers of examples are sent after them (`marks.moved`)
    reshapes   leave `outer` as it is
    spreads    broadcast their arguments, aligned from the right
    einsum     names its dimensions
    all else   keeps the dimension of its first argument with examples, if the result has it in that size

Where entries go must not depend on data, or it would depend on data what is refused: what is picked along the
batch by an index that was computed from data is `MIXED`. So is what is put end to end along the batch, and
what is sorted, scattered or normalized along it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.learn.indexing import picked
from dalenius.learn.marks import MIXED, batch_dimension, made, moved, outer_of, tensors_in

Function = Callable[..., Any]
_MOVES = (
    "transpose permute movedim moveaxis swapaxes swapdims t select narrow unbind chunk split index_select "
    "__getitem__ flip roll squeeze unsqueeze tensor_split expand expand_as broadcast_to repeat tile "
    "repeat_interleave diagonal rot90"
)
_RESHAPES = "view reshape flatten unflatten ravel view_as reshape_as contiguous clone"
_SPREADS = (
    "add sub mul div true_divide subtract multiply divide pow maximum minimum where lerp addcmul addcdiv "
    "rsub fmax fmin atan2 remainder fmod hypot logaddexp xlogy copysign eq ne lt le gt ge logical_and "
    "logical_or logical_xor bitwise_and bitwise_or masked_fill matmul floor_divide"
)
_DUNDERS = "add radd sub rsub mul rmul truediv rtruediv pow rpow eq ne lt le gt ge and or xor matmul rmatmul"
_ALONG = (
    "softmax log_softmax cumsum cumprod logcumsumexp cummax cummin sort argsort gather scatter scatter_add "
    "scatter_reduce index_add index_copy index_fill take_along_dim topk kthvalue"
)


def named(names: str) -> list[Function]:
    """Functions of torch, and methods of tensors, of these names."""
    homes = (torch, torch.Tensor, functional)
    found = [getattr(home, name) for name in names.split() for home in homes if hasattr(home, name)]
    return list(dict.fromkeys(found))


MOVES = frozenset((*named(_MOVES), *(getattr(torch.Tensor, name).__get__ for name in ("T", "mT", "H", "mH"))))
REDUCTIONS = dict.fromkeys(named("mean sum amax amin max min prod std var logsumexp median any all"), 1)
REDUCTIONS |= dict.fromkeys(named("norm"), 2)
"""Functions that take a dimension away, and which of their arguments that is."""
RESHAPES = frozenset(named(_RESHAPES))
SPREADS = frozenset((*named(_SPREADS), *named(" ".join(f"__{name}__" for name in _DUNDERS.split()))))
ALONG = {func: 2 if func.__name__ in ("take_along_dim", "topk", "kthvalue") else 1 for func in named(_ALONG)}
"""Functions that mix what lies along a dimension, and which of their arguments that is."""
SCRAMBLES = frozenset(named("masked_select masked_scatter nonzero unique unique_consecutive take put"))
BESIDE = {func: func.__name__ == "stack" for func in named("cat concat concatenate stack")}


SPECIAL = frozenset((*MOVES, *REDUCTIONS, *ALONG, *SCRAMBLES, *BESIDE))
"""Functions whose result may hold examples elsewhere, though it has the shape of an argument."""


def unmoved(func: Function, result: Any, marked: Sequence[Tensor]) -> int | None:
    """The mark of a result that has the shape of all arguments with examples, as most have: theirs."""
    if not isinstance(result, Tensor) or func in SPECIAL or getattr(func, "__name__", "") == "einsum":
        return None
    outers = {outer_of(one) if one.shape == result.shape else None for one in marked}
    return outers.pop() if len(outers) == 1 else None


def placed(
    func: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    results: Sequence[Tensor],
    marked: Sequence[Tensor],
    examples: int,
) -> list[int]:
    """The mark of every result, by those arguments that are `marked`."""
    if not args and "input" in kwargs:
        args, kwargs = (kwargs["input"],), {key: one for key, one in kwargs.items() if key != "input"}
    if examples < 2:
        return [1] * len(results)
    held = [one for one in marked if outer_of(one)]
    if not held or func in SCRAMBLES:
        return [MIXED] * len(results)
    if func in BESIDE:
        return [_beside(func, args, kwargs, held, one, examples) for one in results]
    if getattr(func, "__name__", "") == "einsum":
        return [_einsum(args, one, examples) for one in results]
    source = args[0] if args and isinstance(args[0], Tensor) and outer_of(args[0]) else None
    if source is not None and _is_move(func, args, source):
        if func in MOVES and picked(func, args, kwargs, _place(source, examples)):
            return [MIXED] * len(results)
        if func in REDUCTIONS:
            func, args, kwargs = _largest(func, args, kwargs)
            return moved(func, args, kwargs, outer_of(source) or 1, examples) * len(results)
        return moved(func, args, kwargs, outer_of(source) or 1, examples)
    if source is not None and func in ALONG:
        dim = args[ALONG[func]] if len(args) > ALONG[func] else kwargs.get("dim", -1)
        if dim is None or dim % source.dim() == _place(source, examples):
            return [MIXED] * len(results)
    spreads = func in SPREADS
    lead = max(held, key=lambda one: one.dim()) if spreads else held[0]
    return [_kept(lead, one, examples, spreads=spreads, reshapes=func in RESHAPES) for one in results]


def described(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], results: Sequence[Tensor]
) -> Hashable | None:
    """Of a move: all that `placed` looks at, to be kept in mind, unless it is the content of a tensor."""
    if func not in MOVES or any(True for _ in tensors_in((args[1:], kwargs))):
        return None
    try:
        return func, _described(args), _described(kwargs), _described(results)
    except TypeError:
        return None


def _described(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return value.shape, outer_of(value), made(value)
    if isinstance(value, tuple | list):
        return tuple(map(_described, value))
    if isinstance(value, dict):
        return tuple((key, _described(one)) for key, one in value.items())
    if isinstance(value, slice):
        return slice, _described((value.start, value.stop, value.step))
    hash(value)
    return type(value), value


def _place(tensor: Tensor, examples: int) -> int | None:
    return batch_dimension(tuple(tensor.shape), outer_of(tensor) or 1, examples)


def _is_move(func: Function, args: tuple[Any, ...], source: Tensor) -> bool:
    if func in REDUCTIONS:
        return outer_of(source) != 1 and not any(True for _ in tensors_in(args[1:]))
    return func in MOVES


def _largest(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The largest entry along the same dimension: of equal numbers, that number."""
    place = REDUCTIONS[func]
    dim = args[place] if len(args) > place else kwargs.get("dim")
    keep = args[place + 1] if len(args) > place + 1 else kwargs.get("keepdim", False)
    return torch.amax, (args[0], () if dim is None or isinstance(dim, bool) else dim, bool(keep)), {}


def _kept(lead: Tensor, result: Tensor, examples: int, *, spreads: bool, reshapes: bool) -> int:
    outer = outer_of(lead) or 1
    if reshapes:
        return outer if result.numel() == lead.numel() else MIXED
    place = _place(lead, examples)
    if place is None:
        return outer if _front(lead, result) % (outer * examples) == 0 else MIXED
    there = place + (max(0, result.dim() - lead.dim()) if spreads else 0)
    same = result.dim() > there and result.shape[there] == lead.shape[place]
    return math.prod(result.shape[:there]) if same else MIXED


def _front(lead: Tensor, result: Tensor) -> int:
    """How many entries of the leading dimensions the two have in common."""
    pairs = zip(lead.shape, result.shape, strict=False)
    return math.prod(size for size, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _beside(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], held: list[Tensor], result: Tensor, n: int
) -> int:
    """Of tensors with examples at one dimension."""
    dim = (args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))) % result.dim()
    places = {(_place(one, n), one.dim()) for one in held}
    place = places.pop()[0] if len(places) == 1 else None
    if place is None:
        return MIXED
    if BESIDE[func]:
        return math.prod(result.shape[: place + (dim <= place)])
    if dim != place:
        return math.prod(result.shape[:place])
    # End to end along the batch, one batch of the same examples after the other.
    count, sizes = sum(1 for _ in tensors_in((args, kwargs))), {one.shape[place] for one in held}
    return math.prod(result.shape[:place]) * count if count == len(held) and len(sizes) == 1 else MIXED


def _einsum(args: tuple[Any, ...], result: Tensor, examples: int) -> int:
    """The letter of the batch, in the result."""
    equation, *rest = args
    if not isinstance(equation, str):
        return MIXED
    operands = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple | list) else rest
    terms, output = _letters(equation.replace(" ", ""), [one.dim() for one in operands])
    pairs = [
        (term, _place(one, examples)) for term, one in zip(terms, operands, strict=True) if outer_of(one)
    ]
    found = {None if place is None else term[place] for term, place in pairs}
    letter = found.pop() if len(found) == 1 else None
    return math.prod(result.shape[: output.index(letter)]) if letter and letter in output else MIXED


def _letters(equation: str, dims: list[int]) -> tuple[list[str], str]:
    """The letters of the operands and of the result, with digits for what `...` stands for."""
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    hidden = [
        size - len(term.replace("...", "")) if "." in term else 0
        for term, size in zip(terms, dims, strict=True)
    ]
    digits = "0123456789"[: max(hidden)]
    if not arrow:
        plain = inputs.replace("...", "").replace(",", "")
        output = "..." + "".join(sorted(one for one in set(plain) if plain.count(one) == 1))
    filled = [
        term.replace("...", digits[len(digits) - size :]) for term, size in zip(terms, hidden, strict=True)
    ]
    return filled, output.replace("...", digits)
