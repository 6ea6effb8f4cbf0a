"""`Lifted`: functions of one example that run on all examples of a batch at once.

Inside `torch.vmap` a tensor of one example stands for that of all. A lifted function takes the tensors of all
examples, runs once, and returns results that stand for those of all again. Only functions that treat rows
independently by definition are lifted, and the examples are their rows:

    linear, embedding, layer and RMS normalization   every leading dimension holds independent rows
    convolution, group normalization, attention      dimension 0 holds independent rows
    recurrent networks and cells                     the batch dimension holds independent rows

Functions with trained parameters run by the tape's rules (`rules`), which put each example's share of the
gradient on the tape (`tape`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.nn import functional

from dalenius.learn.marks import found_in, mark
from dalenius.learn.tape import Function, Tape

_NORMS = functional.layer_norm, functional.rms_norm, torch.layer_norm, torch.rms_norm
_LEADING = frozenset((functional.linear, functional.embedding, *_NORMS))
_CONVOLUTIONS = {torch.conv1d: 1, torch.conv2d: 2, torch.conv3d: 3}
"""Convolutions and the number of their spatial dimensions."""
_RECURRENT = frozenset([torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu])
_CELLS = frozenset([torch.lstm_cell, torch.gru_cell, torch.rnn_tanh_cell, torch.rnn_relu_cell])
_ATTENTION = functional.scaled_dot_product_attention


class Lifted:
    """Functions on all examples of one pass.

    Args:
        tape: the tape of the pass.
        rows: the number of examples.
        level: the nesting level of the transform that the examples are mapped by.
        parameters: the trained parameters, by `id`.
    """

    def __init__(self, tape: Tape, rows: int, level: int, parameters: Collection[int]) -> None:
        from dalenius.learn.rules import RULES

        self._rules, self._tape, self._rows, self._level = RULES, tape, rows, level
        self._parameters = parameters

    def run(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], *, trained: bool) -> Any:
        """Return the result of a function, or NotImplemented where it is not lifted.

        Args:
            func: a function of torch.
            args: its positional arguments.
            kwargs: its keyword arguments.
            trained: whether a trained parameter is among the arguments.
        """
        if functorch.maybe_current_level() != self._level or not torch.is_grad_enabled():
            return NotImplemented
        if func is _ATTENTION and not trained:
            return self._attention(args, kwargs)
        if not trained:
            return NotImplemented
        if func in _RECURRENT:
            return self._recurrent(func, args, kwargs)
        if func in _CELLS:
            return self._cell(func, args, kwargs)
        return self._rowwise(func, args, kwargs)

    def _rowwise(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function of an input and parameters."""
        kwargs = dict(kwargs)
        x = args[0] if args else kwargs.pop("input", None)
        rest = args[1:]
        if not self._is_input(func, x) or not self._outside(found_in(rest, kwargs)):
            return NotImplemented
        fold = _fold(func, x, kwargs.get("padding", rest[3] if len(rest) > 3 else 0))
        if fold is None:
            return NotImplemented
        with temporarily_clear_interpreter_stack():
            rows = self._all(x, 0, fold=fold)
            mark(rows, 1)
            output = self._rules[func](self._tape, func, (rows, *rest), kwargs)
        return self._shown(output, 0, x.shape[0] if fold else None)

    def _attention(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run attention of queries, keys and values, perhaps with a mask."""
        given = dict(zip(("query", "key", "value", "attn_mask"), args, strict=False)) | kwargs
        tensors = [given[name] for name in ("query", "key", "value")]
        dims, masked = tensors[0].dim(), given.get("attn_mask") is not None
        given |= dict(zip(("dropout_p", "is_causal"), args[4:], strict=False))
        if not any(map(self.holds, tensors)) or not all(map(self._known, found_in((), given))):
            return NotImplemented
        if dims not in (3, 4) or {item.dim() for item in tensors} != {dims}:
            return NotImplemented
        if dims == 4 and len({item.shape[0] for item in tensors}) != 1:
            return NotImplemented
        with temporarily_clear_interpreter_stack():
            query, key, value = (self._all(item, 0, fold=dims == 4) for item in tensors)
            if masked:
                mask = self._all(given["attn_mask"], 0)
                mask = mask.view(self._rows, *(1,) * (dims + 1 - mask.dim()), *mask.shape[1:])
                if dims == 4:
                    mask = mask.expand(-1, tensors[0].shape[0], -1, -1, -1).flatten(0, 1)
                given["attn_mask"] = mask
            output = _ATTENTION(**given | {"query": query, "key": key, "value": value})
        return self._shown(output, 0, tensors[0].shape[0] if dims == 4 else None)

    def _recurrent(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a recurrent network; its rows are dimension 0 of the input, or dimension 1 where time leads."""
        if kwargs or len(args) != 9 or not isinstance(args[2], list | tuple) or not self.holds(args[0]):
            return NotImplemented
        x, start, weights, *rest, batch_first = args
        states = list(start) if isinstance(start, list | tuple) else [start]
        if not self._outside(weights) or not self._are_states(states):
            return NotImplemented
        place = 0 if batch_first else 1
        with temporarily_clear_interpreter_stack():
            rows = self._all(x, place, fold=True)
            mark(rows, 1 if batch_first else len(rows))
            given = [self._all(item, 1, fold=True) for item in states]
            begun = given if isinstance(start, list | tuple) else given[0]
            output = self._rules[func](self._tape, func, (rows, begun, weights, *rest, batch_first), {})
        out, *ends = output
        size = x.shape[place]
        return (self._shown(out, place, size), *(self._shown(item, 1, size) for item in ends))

    def _cell(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one step of a recurrent network."""
        x, start, *weights = args
        states = list(start) if isinstance(start, list | tuple) else [start]
        if not self.holds(x) or not self._outside(found_in(tuple(weights), kwargs)):
            return NotImplemented
        if x.dim() != 2 or not self._are_states(states):
            return NotImplemented
        with temporarily_clear_interpreter_stack():
            rows = self._all(x, 0, fold=True)
            mark(rows, 1)
            given = [self._all(item, 0, fold=True) for item in states]
            begun = given if isinstance(start, list | tuple) else given[0]
            output = self._rules[func](self._tape, func, (rows, begun, *weights), kwargs)
        if isinstance(output, Tensor):
            return self._shown(output, 0, x.shape[0])
        return tuple(self._shown(item, 0, x.shape[0]) for item in output)

    # Tensors of one example, and those of all.

    def holds(self, value: Any) -> bool:
        """Return whether a value is a tensor that stands for those of all examples, in no other transform."""
        return (
            isinstance(value, Tensor)
            and functorch.is_batchedtensor(value)
            and functorch.maybe_get_level(value) == self._level
            and not functorch.is_functorch_wrapped_tensor(functorch.get_unwrapped(value))
        )

    def _is_input(self, func: Function, value: Any) -> bool:
        """Return whether a value is the input of an example, or a constant such as positions to look up."""
        constant = func in _LEADING and isinstance(value, Tensor) and id(value) not in self._parameters
        return self.holds(value) or (constant and self._known(value))

    def _known(self, tensor: Tensor) -> bool:
        return self.holds(tensor) or not functorch.is_functorch_wrapped_tensor(tensor)

    def _outside(self, tensors: Collection[Tensor]) -> bool:
        """Return whether none of the tensors depends on an example."""
        return not any(map(functorch.is_functorch_wrapped_tensor, tensors))

    def _are_states(self, tensors: Collection[Tensor]) -> bool:
        return all(self._known(item) and id(item) not in self._parameters for item in tensors)

    def _all(self, tensor: Tensor, place: int, *, fold: bool = False) -> Tensor:
        """Return the tensor of all examples, along dimension `place`; with `fold` that holds all rows."""
        if self.holds(tensor):
            output = functorch.get_unwrapped(tensor).movedim(functorch.maybe_get_bdim(tensor), place)
        else:
            sizes = *tensor.shape[:place], self._rows, *tensor.shape[place:]
            output = tensor.unsqueeze(place).expand(sizes)
        output = output.flatten(place, place + 1) if fold else output
        # Marks belong to this object, which nobody else has.
        view: Tensor = output.view(output.shape)
        return view

    def _shown(self, tensor: Tensor, place: int, size: int | None) -> Tensor:
        """Return a tensor that stands for those of all examples, each of which had `size` rows."""
        with temporarily_clear_interpreter_stack():
            unfolded = (
                tensor.view(tensor.shape) if size is None else tensor.unflatten(place, (self._rows, size))
            )
        return functorch._add_batch_dim(unfolded, place, self._level)


def _fold(func: Function, x: Tensor, padding: Any) -> bool | None:
    """Return whether dimension 0 of an example holds rows, too; None where the function is not lifted."""
    if func in _LEADING:
        return False
    if func in _CONVOLUTIONS and padding != "same":
        return {1: False, 2: True}.get(x.dim() - _CONVOLUTIONS[func])
    if func is functional.group_norm:
        return True if x.dim() > 1 else None
    return None
