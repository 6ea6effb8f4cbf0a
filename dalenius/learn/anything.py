"""The rule for whatever has no rule: differentiate example by example.

The function is run once as it is. On the way back it is run again for every example as a batch of one, by
`torch.vmap` where its parts allow, one after the other where not, in single precision at least; what comes
back to its parameters is the example's share. This takes the function to treat every example by itself,
which the analysis of its data flow (`dataflow`) establishes first.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.dataflow.private_numbers import whole_sizes
from dalenius.learn.marks import batch_dimension, mark, outer_of, replaced, tensors_in
from dalenius.learn.parts import Whole, full
from dalenius.learn.spreading import is_weight, spread
from dalenius.learn.tape import Function, Tape, in_place


@dataclass(frozen=True, eq=False)
class Call:
    """A function and its arguments: which are learned, where the others hold examples, where results do."""

    func: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: tuple[Tensor, ...]
    learned: tuple[bool, ...]
    places: tuple[int | None, ...]
    outs: list[int] = field(default_factory=list)

    def run(self, tensors: list[Tensor]) -> Any:
        """With other tensors in the same places."""
        new = {id(old): one for old, one in zip(self.tensors, tensors, strict=True)}
        args, kwargs = replaced((self.args, self.kwargs), lambda one: new[id(one)])
        return self.func(*whole_sizes(args), **whole_sizes(kwargs))


def anything(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Any function at all of parameters and examples."""
    args, kwargs = _spread(tape, args, kwargs)
    tensors = tuple({id(one): one for one in (*tensors_in(args), *tensors_in(kwargs))}.values())
    learned = tuple(is_weight(tape, one) for one in tensors)
    weights = [one for one, is_learned in zip(tensors, learned, strict=True) if is_learned]
    places = []
    for one in tensors:
        outer = outer_of(one)
        place = batch_dimension(tuple(one.shape), outer, tape.examples or 1) if outer else None
        if (outer is not None and place is None) or in_place(func):
            raise tape.refused(weights, func)
        places.append(place)
    call = Call(func, args, kwargs, tensors, learned, tuple(places))
    inside = [one.detach() for one in tensors]
    with torch.enable_grad():
        for one, old, is_learned in zip(inside, tensors, learned, strict=True):
            one.requires_grad_(old.requires_grad and not is_learned)
        result = call.run(inside)
    flat = list(tensors_in(result))
    for one, outer in zip(flat, tape.outers(func, args, kwargs, len(flat)), strict=True):
        place = batch_dimension(tuple(one.shape), outer, tape.examples or 1) if outer else None
        if place is None:
            raise tape.refused(weights, func)
        call.outs.append(place)
    outs = Anything.apply(tape, call, inside, flat, *tensors)
    new = {id(old): one for old, one in zip(flat, outs, strict=True)}
    return replaced(result, lambda one: new[id(one)])


class Anything(torch.autograd.Function):
    """Hands results on; on the way back, ordinary gradients to examples and shares onto the tape."""

    @staticmethod
    def forward(ctx: Any, tape: Tape, call: Call, inside: Any, flat: Any, *tensors: Tensor) -> Any:
        """The results, as they were computed."""
        ctx.tape, ctx.call, ctx.inside, ctx.flat = tape, call, inside, flat
        ctx.examples = tape.examples
        ctx.versions = [one._version for one in call.tensors]
        ctx.set_materialize_grads(False)
        return tuple(one.detach() for one in flat)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Example by example."""
        weights = [one for one, learned in zip(ctx.call.tensors, ctx.call.learned, strict=True) if learned]
        if ctx.versions != [one._version for one in ctx.call.tensors]:
            raise ctx.tape.refused(weights, ctx.call.func)
        wanted = [one for one in ctx.inside if one.requires_grad]
        live = [
            (out, g)
            for out, g in zip(ctx.flat, gradients, strict=True)
            if g is not None and out.requires_grad
        ]
        found = (
            torch.autograd.grad([out for out, _ in live], wanted, [g for _, g in live], allow_unused=True)
            if wanted and live
            else ()
        )
        back = dict(zip(map(id, wanted), found, strict=False))
        for weight, share in zip(weights, _shares(ctx, gradients, weights), strict=True):
            ctx.tape.put(weight, Whole(share))
        return (None,) * 4 + tuple(back.get(id(one)) for one in ctx.inside)


def _shares(ctx: Any, gradients: tuple[Tensor | None, ...], weights: list[Tensor]) -> tuple[Tensor, ...]:
    """For every parameter, the share of every example."""
    call, examples = ctx.call, ctx.examples
    if not examples:
        return tuple(one.new_zeros(0, *one.shape) for one in weights)
    kept = [i for i, g in enumerate(gradients) if g is not None]
    back = [_split(full(g), call.outs[i], examples) for i, g in enumerate(gradients) if g is not None]
    pairs = zip(call.tensors, call.places, strict=True)
    held = [_split(full(one), place, examples) for one, place in pairs if place is not None]

    def share(values: list[Tensor], own: list[Tensor]) -> Any:
        def of(*learned: Tensor) -> tuple[Tensor, ...]:
            ours, theirs = iter(learned), iter(values)
            given = [
                next(ours) if is_learned else full(one) if place is None else next(theirs)
                for one, is_learned, place in zip(call.tensors, call.learned, call.places, strict=True)
            ]
            with torch.autocast(given[0].device.type, enabled=False):
                results = list(tensors_in(call.run(given)))
            return tuple(results[i] for i in kept)

        pulled = torch.func.vjp(of, *map(full, weights))
        return pulled[1](tuple(own))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tuple(torch.vmap(share)(held, back))
    except RuntimeError:
        pass
    try:
        each = [share([one[i] for one in held], [one[i] for one in back]) for i in range(examples)]
    except RuntimeError:
        # What torch says of it has the sizes of the batch in it.
        raise ctx.tape.refused(weights, call.func) from None
    return tuple(torch.stack(shares) for shares in zip(*each, strict=True))


def _split(tensor: Tensor, place: int, examples: int) -> Tensor:
    """(examples, …, its part, …): every example as a batch of one."""
    return tensor.unflatten(place, (examples, tensor.shape[place] // examples)).movedim(place, 0)


def _spread(tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Parameters that were expanded along the batch have a copy for every example."""
    held = next((one for one in (*tensors_in(args), *tensors_in(kwargs)) if outer_of(one)), None)
    if held is None:
        return args, kwargs
    place = batch_dimension(tuple(held.shape), outer_of(held) or 1, tape.examples or 1)

    def over(one: Tensor) -> Tensor:
        if place is None or not is_weight(tape, one) or one.dim() != held.dim():
            return one
        if one.stride(place) or one.shape[place] != held.shape[place]:
            return one
        found = spread(tape, one, tuple(one.shape), place)
        assert found is not None
        mark(found, math.prod(found.shape[:place]))
        return found

    return replaced(args, over), replaced(kwargs, over)
