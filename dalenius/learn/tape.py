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
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from dalenius.errors import NotSound
from dalenius.learn.indexing import written
from dalenius.learn.layers import Layers
from dalenius.learn.lookups import united
from dalenius.learn.marks import (
    MIXED,
    Rows,
    batch_dimension,
    derive,
    derived,
    found_in,
    made,
    make,
    mark,
    outer_of,
    replaced,
    tensors_in,
)
from dalenius.learn.parts import Part, Whole
from dalenius.learn.placing import described, placed, unmoved

Function = Callable[..., Any]
Rule = Callable[["Tape", Function, tuple[Any, ...], dict[str, Any]], Any]
"""Computes what the function would, and puts parts on the tape on the way back."""

_SHAPE, _SIZE = vars(torch._C.TensorBase)["shape"].__get__, torch.Tensor.size
KNOWN = 10_000
"""Functions with shapes of arguments whose places are kept in mind."""
_UNSEEN = {"has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"}


class Tape(TorchFunctionMode):
    """One forward pass over so many examples, by the names of the parameters that are trained."""

    def __init__(self, names: Mapping[Tensor, str]) -> None:
        from dalenius.learn.rules import BAGS, RULES

        super().__init__()
        self._rules, self._bags = RULES, BAGS
        self.know(names)
        self.examples = self.rows = 0
        self.paused = False
        self._sizes: set[int] = set()
        self._parts: dict[Tensor, list[Part]] = {}
        self._stands: dict[Tensor, Tensor] = {}
        self._known: dict[Hashable, list[int]] = {}
        self.layers: Layers | None = None
        """Where layers are clipped by themselves."""

    def of(self, names: Mapping[Tensor, str]) -> Tape:
        """Another tape for the same model, with other tensors for its parameters."""
        found = Tape(names)
        found._known = self._known
        return found

    def know(self, names: Mapping[Tensor, str]) -> None:
        """What parameters are in a forward pass."""
        self.names = names
        # To look a tensor up by its hash is slow; those in `names` stay alive.
        self._ids = frozenset(map(id, names))

    # What the model calls.

    def open(self, examples: int, rows: int) -> None:
        """Before a forward pass: how many examples its inputs hold, in how many rows."""
        if self._parts or (self.layers is not None and self.layers.holding):
            self._parts, self._sizes = {}, set()
            if self.layers is not None:
                self.layers.drop()
            raise NotSound(
                "A backward pass was made and not taken in before the next forward pass: examples of both "
                "would be clipped together.",
                remedy="Step, or accumulate, after every backward pass; call the model under torch.no_grad() "
                "for anything else.",
            )
        self.examples, self.rows, self.paused = examples, rows, False
        self._sizes.add(examples)

    def __torch_function__(
        self, func: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run a function of torch, by a rule where a parameter meets examples."""
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        tensors = found_in(args, kwargs)
        marked = [one for one in tensors if outer_of(one) is not None]
        outers = [outer_of(one) for one in marked]
        if func is _SIZE or func == _SHAPE:
            return self._size(func, args, kwargs, outers)
        weights = (
            [one for one in tensors if id(one) in self._ids or derived(one)]
            if torch.is_grad_enabled()
            else []
        )
        if not weights or not outers:
            rule = self._rules.get(func) if weights and self._sized(args, kwargs) else None
            if rule is not None:
                self._note(weights)
                return self._by(rule, func, args, kwargs)
            result = func(*args, **kwargs)
            self._mark(func, args, kwargs, result, marked)
            if not weights and not outers:
                self._mark_sized(args, result)
            return self._derive(result) if weights and not outers else result
        result = self._meet(func, args, kwargs, weights, outers)
        self._mark(func, args, kwargs, result, marked)
        return result

    def _meet(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        weights: list[Tensor],
        outers: list[int | None],
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
        rule = self._rules.get(func, anything)
        if MIXED in outers and func not in self._bags:
            raise self.refused(weights, func)
        self._note(weights)
        if not any(map(derived, weights)):
            return rule(self, func, args, kwargs)
        return self._by(rule, func, args, kwargs)

    def _note(self, weights: list[Tensor]) -> None:
        if self.layers is not None:
            self.layers.meet(weights)

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

    def _size(
        self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], outers: list[int | None]
    ) -> Any:
        size = func(*args, **kwargs)
        if not outers or not outers[0]:
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
            make(result)

    def _mark(
        self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, marked: list[Tensor]
    ) -> None:
        if not marked:
            return
        if in_place(func):
            self._mark_written(func, args, kwargs, marked)
            return
        results = [result] if isinstance(result, Tensor) else list(tensors_in(result))
        if all(outer_of(one) is not None for one in results):
            return
        constant = all(map(made, marked))
        same = unmoved(func, result, marked) if self.examples > 1 else None
        outers = [same] if same else self._places(func, args, kwargs, results, marked)
        for tensor, outer in zip(results, outers, strict=True):
            if outer_of(tensor) is None:
                mark(tensor, outer)
                if constant:
                    make(tensor)

    def _places(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        results: list[Tensor],
        marked: list[Tensor],
    ) -> list[int]:
        """Where results hold examples: the same for the same function of the same shapes and marks."""
        said = described(func, args, kwargs, results)
        found = None if said is None else self._known.get((self.examples, said))
        if found is None:
            found = placed(func, args, kwargs, results, marked, self.examples)
            if said is not None and len(self._known) < KNOWN:
                self._known[self.examples, said] = found
        return found

    def _mark_written(
        self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], marked: list[Tensor]
    ) -> None:
        """What was written into."""
        into = args[0]
        if getattr(func, "__name__", "") == "__setitem__":
            outer = written(into, args[1], args[2], self.examples)
        else:
            outer = outer_of(into)
            if outer is None:
                outer = placed(torch.add, args, kwargs, [into], marked, self.examples)[0]
        if outer is not None:
            mark(into, outer)

    def _derive(self, result: Any) -> Any:
        for tensor in tensors_in(result):
            if tensor.requires_grad and id(tensor) not in self._ids:
                derive(tensor)
        return result

    @property
    def seen(self) -> frozenset[int]:
        """How many examples the forward passes since the last parts were taken had."""
        return frozenset(self._sizes)

    @property
    def derives(self) -> bool:
        """Whether parts of what is derived from parameters wait to be carried on to these."""
        return any(one not in self.names for one in self._parts)

    # Parts.

    def put(self, weight: Tensor, part: Part) -> None:
        """A part of a parameter, or of what is derived from parameters."""
        found = None if self.layers is None else self.layers.put(weight, part)
        for one, new in {weight: part}.items() if found is None else found.items():
            self._parts.setdefault(one, []).append(new)

    def parts(self) -> dict[Tensor, Part]:
        """All that is on the tape, by parameter; the tape is blank afterwards."""
        found, self._parts = self._parts if self.examples else {}, {}
        sizes, self._sizes = self._sizes, set()
        if len(sizes) > 1:
            raise NotSound(
                "The model was called on batches of different sizes before one step.",
                remedy="Call it once for every step, and under torch.no_grad() for anything else.",
            )
        for weight, parts in () if self.layers is None else self.layers.rest().items():
            found.setdefault(weight, []).extend(parts)
        carried = set()
        while derived_ones := [one for one in found if one not in self.names]:
            for weight in derived_ones:
                for source, part in self._carried(weight, united(found.pop(weight))):
                    found.setdefault(source, []).append(part)
                    carried.add(source)
        self._stands = {}
        if self.layers is not None:
            self.layers.learn(carried & self.names.keys())
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


@lru_cache(4096)
def in_place(func: Function) -> bool:
    """Whether it changes its first argument."""
    name = getattr(func, "__name__", "")
    return name in ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__") or (
        name.endswith("_") and not name.endswith("__")
    )


def _saved_elsewhere() -> bool:
    """Whether what a function saves for its backward pass is made again later instead."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None
