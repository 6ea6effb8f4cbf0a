"""`Tape`: watches a forward pass, and keeps what each example adds to each parameter's gradient.

Every torch function that the model calls passes through here. Where no parameter is among its arguments it
runs as it is, and its results are marked with where they hold examples (`marks`). Where only parameters and
constants are, its result is *derived*: a parameter itself, as far as examples are concerned. Where a
parameter meets examples, a rule takes over: it computes the same, and on the way back it hands the gradient
on to the examples' side, gives none to the parameter, and puts a part (`parts`) on the tape. What has no rule
is differentiated example by example (`anything`). So a use of a parameter is either on the tape or has given
the parameter an ordinary gradient, which is refused: no third case exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from dalenius.errors import NotSound
from dalenius.learn.marks import (
    MIXED,
    Rows,
    batch_dimension,
    derive,
    derived,
    mark,
    moved,
    outer_of,
    replaced,
    tensors_in,
)
from dalenius.learn.parts import Part, Whole, united

Function = Callable[..., Any]
Rule = Callable[["Tape", Function, tuple[Any, ...], dict[str, Any]], Any]
"""Computes what the function would, and puts parts on the tape on the way back."""

_SHAPE, _SIZE = vars(torch._C.TensorBase)["shape"].__get__, torch.Tensor.size
_UNSEEN = {"has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"}


class Tape(TorchFunctionMode):
    """One forward pass over so many examples, by the names of the parameters that are trained."""

    def __init__(self, names: Mapping[Tensor, str]) -> None:
        from dalenius.learn.rules import BAGS, MOVES, REDUCTIONS, RULES

        super().__init__()
        self.names, self._rules, self._bags = names, RULES, BAGS
        self._moves, self._reductions = MOVES, REDUCTIONS
        self.examples = self.rows = 0
        self._parts: dict[Tensor, list[Part]] = {}
        self._stands: dict[Tensor, Tensor] = {}

    # What the model calls.

    def open(self, examples: int, rows: int) -> None:
        """Before a forward pass: how many examples its inputs hold, in how many rows."""
        self.examples, self.rows = examples, rows

    def __torch_function__(
        self, func: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run a function of torch, by a rule where a parameter meets examples."""
        kwargs = kwargs or {}
        tensors = [*tensors_in(args), *tensors_in(kwargs)]
        outers = [outer for outer in map(outer_of, tensors) if outer is not None]
        if func is _SIZE or func == _SHAPE:
            return self._size(func, args, kwargs, outers)
        weights = (
            [one for one in tensors if one in self.names or derived(one)] if torch.is_grad_enabled() else []
        )
        if not weights or not outers:
            rule = self._rules.get(func) if weights and self._sized(args, kwargs) else None
            if rule is not None:
                return self._by(rule, func, args, kwargs)
            result = func(*args, **kwargs)
            self._mark(func, args, kwargs, result, outers)
            if not weights and not outers:
                self._mark_sized(args, result)
            return self._derive(result) if weights and not outers else result
        result = self._meet(func, args, kwargs, weights, outers)
        self._mark(func, args, kwargs, result, outers)
        return result

    def _meet(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        weights: list[Tensor],
        outers: list[int],
    ) -> Any:
        """A parameter meets examples."""
        if _saved_elsewhere():
            raise NotSound(
                "Under checkpointing a forward pass is made twice, and the second one is not watched.",
                remedy="Train without checkpointing, in smaller physical batches.",
            )
        from dalenius.learn.anything import anything

        if func not in self._rules and isinstance(func, FunctionType) and _UNSEEN & set(func.__globals__):
            return self._open(func)(*args, **kwargs)
        if MIXED in outers and func not in self._bags:
            raise self.refused(weights, func)
        return self._by(self._rules.get(func, anything), func, args, kwargs)

    def _by(self, rule: Rule, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return rule(self, func, replaced(args, self._stand_in), replaced(kwargs, self._stand_in))

    def _stand_in(self, tensor: Tensor) -> Tensor:
        """For what is derived, a parameter of the same values: a backward pass leaves its own graph whole."""
        if not derived(tensor) or tensor in self._stands:
            return tensor
        found = next((new for new, old in self._stands.items() if old is tensor), None)
        if found is None:
            found = tensor.detach().requires_grad_()
            derive(found)
            self._stands[found] = tensor
        return found

    def _open(self, func: FunctionType) -> Function:
        """A function of torch that is written in torch, so that what it calls passes through here."""
        unseen = dict.fromkeys(_UNSEEN, lambda *_: False)
        copy = FunctionType(
            func.__code__, func.__globals__ | unseen, func.__name__, func.__defaults__, func.__closure__
        )
        copy.__kwdefaults__ = func.__kwdefaults__

        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return copy(*args, **kwargs)

        return run

    # Marks.

    def _size(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], outers: list[int]) -> Any:
        size = func(*args, **kwargs)
        if not outers or outers[0] == MIXED:
            return size
        shape = tuple(size) if isinstance(size, tuple) else tuple(args[0].shape)
        place = batch_dimension(shape, outers[0], self.examples or 1)
        if place is None or shape[place] != self.rows:
            return size
        if isinstance(size, tuple):
            return torch.Size((*shape[:place], Rows(self.rows), *shape[place + 1 :]))
        asked = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        return Rows(size) if asked % len(shape) == place else size

    @staticmethod
    def _sized(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether sizes among the arguments are those of a batch."""
        flat = [*args, *kwargs.values()]
        nested = [two for one in flat if isinstance(one, tuple | list) for two in one]
        return any(isinstance(one, Rows) for one in (*flat, *nested))

    def _mark_sized(self, args: tuple[Any, ...], result: Any) -> None:
        """A constant that was made as large as the batch has a part for every example."""
        given = [one for one in args if isinstance(one, int | tuple | list)]
        sizes = given[0] if given and not isinstance(given[0], int) else given
        place = next((i for i, size in enumerate(sizes) if isinstance(size, Rows)), None)
        if place is not None and isinstance(result, Tensor) and result.dim() == len(sizes):
            mark(result, math.prod(result.shape[:place]))

    def _mark(
        self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, outers: list[int]
    ) -> None:
        if not outers:
            return
        name = getattr(func, "__name__", "")
        if result is None or (name.endswith("_") and not name.endswith("__")):
            mark(args[0], self._kept(args[0], outers))
            return
        found = [one for one in tensors_in(result) if outer_of(one) is None]
        source = args[0] if args and isinstance(args[0], Tensor) else None
        outer = None if source is None else outer_of(source)
        moves = func in self._moves or (outer is not None and outer > 1 and func in self._reductions)
        if source is not None and outer and moves and self.examples > 1:
            for tensor, place in zip(found, moved(func, args, kwargs, outer, self.examples), strict=True):
                mark(tensor, place)
            return
        for tensor in found:
            mark(tensor, self._kept(tensor, outers))

    def _kept(self, tensor: Tensor, outers: list[int]) -> int:
        """The place of the arguments that have one, as long as it is one of the result."""
        outer = next((one for one in outers if one != MIXED), MIXED)
        even = outer != MIXED and tensor.numel() % (outer * self.examples or 1) == 0
        return outer if even else MIXED

    def _derive(self, result: Any) -> Any:
        for tensor in tensors_in(result):
            if tensor.requires_grad and tensor not in self.names:
                derive(tensor)
        return result

    # Parts.

    def put(self, weight: Tensor, part: Part) -> None:
        """A part of a parameter, or of what is derived from parameters."""
        self._parts.setdefault(weight, []).append(part)

    def parts(self) -> dict[Tensor, Part]:
        """All that is on the tape, by parameter; the tape is blank afterwards."""
        found, self._parts = self._parts, {}
        while derived_ones := [one for one in found if one not in self.names]:
            for weight in derived_ones:
                for source, part in self._carried(weight, united(found.pop(weight))):
                    found.setdefault(source, []).append(part)
        self._stands = {}
        return {parameter: united(parts) for parameter, parts in found.items()}

    def _carried(self, weight: Tensor, part: Part) -> list[tuple[Tensor, Part]]:
        """The shares of what is derived, as shares of what it is derived from."""
        sources = [one for one in (*self.names, *self._stands) if one is not weight]
        shares = part.whole().view(part.examples, *weight.shape).to(weight.dtype)
        root = self._stands.get(weight, weight)
        found = torch.autograd.grad(
            root, sources, shares, retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        return [(one, Whole(share)) for one, share in zip(sources, found, strict=True) if share is not None]

    def refused(self, weights: list[Tensor], func: Function) -> NotSound:
        """Where it cannot be told whose examples a parameter meets."""
        names = sorted(self.names.get(one, "what is derived from parameters") for one in weights)
        return NotSound(
            f"{getattr(func, '__name__', 'A function')} uses {' and '.join(names)} on data of which it is "
            "not known whose they are, so that no example's gradient can be clipped by itself.",
            remedy="Keep the batch as the first dimension up to there, or freeze these parameters.",
        )


def _saved_elsewhere() -> bool:
    """Whether what a function saves for its backward pass is made again later instead."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None
