"""Methods that take values out of private tensors, and what they give in a private pass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import BatchSize, PrivateInteger, private, refuse_steering
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.dataflow.states import PRIVATE, VIRTUAL, State, tag_of

Function = Callable[..., Any]
_BASE = torch._C.TensorBase
GRAPH = vars(_BASE)["grad_fn"].__get__


def _item(tensor: Tensor, *_: Any, **__: Any) -> Any:
    return private(tensor.detach().item(), "item()")


def _listed(tensor: Tensor, *_: Any, **__: Any) -> Any:
    return private(tensor.detach().tolist(), "tolist()", countable=_countable(tensor))


def _arrayed(tensor: Tensor, *_: Any, **__: Any) -> Any:
    return private(tensor.detach().tolist(), "numpy()", countable=_countable(tensor))


def _countable(tensor: Tensor) -> tuple[bool, ...]:
    """Return of each size of a tensor whether it is public."""
    tag = tag_of(tensor)
    shape = () if tag is None else tag.state.shape or ()
    return tuple(size < VIRTUAL // 2 for size in shape)


def is_countable(state: State, dimension: int) -> bool:
    """Return whether it is public how many entries a private tensor has along a dimension."""
    shape = state.shape
    return shape is not None and bool(shape) and shape[dimension % len(shape)] < VIRTUAL // 2


def _steering(action: str) -> Function:
    def refuse(tensor: Any, *_: Any, **__: Any) -> NoReturn:
        tag = tag_of(tensor) if isinstance(tensor, Tensor) else None
        known = None if tag is None else tag.state.origin
        refuse_steering(action, after="" if known is None else f" ({known})")

    return refuse


def _truth(tensor: Tensor) -> bool:
    """Refuse a branch, but for checks of arguments in libraries, which are answered without looking."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("dalenius.learn"):
        previous = frame.f_back
        if previous is None:
            break
        frame = previous
    package = frame.f_globals.get("__name__", "")
    if package.startswith("torch.distributions"):
        # Arguments are taken as valid: an error would depend on data.
        return True
    if not package.startswith("transformers"):
        refuse_steering("bool(), a branch, on")
    # Masks are taken as having something to hide: the general way, whatever is in them.
    return False


def _length(tensor: Tensor) -> NoReturn:
    raise NotSound(
        f"len() of a batch{user_line()} gives a plain number, and the size of a batch is private: it depends "
        "on who is in the data.",
        remedy="Use x.shape[0], which can size tensors, divide a loss and be printed.",
    )


def _hooked(*_: Any, **__: Any) -> NoReturn:
    raise NotSound(
        f"register_hook on the gradient of private examples{user_line()} may mix them on the way back.",
        remedy="Change the loss instead; to scale gradients of parameters, use the learning rate.",
    )


def _graphed(tensor: Tensor, *_: Any, **__: Any) -> Any:
    """Refuse the graph of private tensors, whose nodes take hooks; libraries only look if there is one."""
    node = GRAPH(tensor)
    if node is None:
        return None
    raise NotSound(
        f"The graph (grad_fn) of private examples{user_line()} takes hooks, as register_full_backward_hook "
        "sets them, which may mix examples.",
        remedy="Remove hooks on backward passes; to know whether a tensor has gradients, use requires_grad.",
    )


def _differentiated(*_: Any, **__: Any) -> NoReturn:
    raise NotSound(
        f"torch.autograd.grad of private examples{user_line()} is not followed example by example.",
        remedy="Use private.loss(function), where gradients inside of a function of one example are its own.",
    )


READS: dict[Function, Function] = {
    Tensor.item: _item,
    Tensor.tolist: _listed,
    Tensor.numpy: _arrayed,
    Tensor.__array__: _steering("A plain array of"),
    Tensor.__bool__: _truth,
    Tensor.is_nonzero: _steering("A branch on"),
    torch.is_nonzero: _steering("A branch on"),
    torch.equal: _steering("A comparison of"),
    Tensor.equal: _steering("A comparison of"),
    torch.allclose: _steering("A comparison of"),
    Tensor.allclose: _steering("A comparison of"),
    Tensor.__float__: _steering("float() of"),
    Tensor.__int__: _steering("int() of"),
    Tensor.__index__: _steering("An index or a size from"),
    Tensor.__complex__: _steering("complex() of"),
    Tensor.__contains__: _steering("A comparison of"),
    Tensor.__len__: _length,
    Tensor.register_hook: _hooked,
    torch.autograd.grad: _differentiated,
    Tensor.__dlpack__: _steering("Memory of"),
    Tensor.untyped_storage: _steering("Memory of"),
    Tensor.storage: _steering("Memory of"),
    Tensor.data_ptr: _steering("Memory of"),
    Tensor.storage_offset: _steering("Memory of"),
    Tensor.is_same_size: _steering("A comparison of the sizes of"),
    torch.is_same_size: _steering("A comparison of the sizes of"),
    Tensor.apply_: _steering("A function of plain numbers of"),
    Tensor.map_: _steering("A function of plain numbers of"),
    Tensor.map2_: _steering("A function of plain numbers of"),
}
"""By function: what it gives for a tensor with a private state."""
VALUES = frozenset(
    (
        Tensor.tolist,
        Tensor.numpy,
        Tensor.__array__,
        Tensor.__dlpack__,
        Tensor.untyped_storage,
        Tensor.storage,
        Tensor.storage_offset,
        Tensor.is_same_size,
        torch.is_same_size,
        Tensor.apply_,
    )
)
"""Functions whose results tell how long a tensor is, also where its entries are public."""
READS[GRAPH] = _graphed
SHAPE, SIZE = vars(_BASE)["shape"].__get__, Tensor.size
STRIDE, BYTES = Tensor.stride, vars(_BASE)["nbytes"].__get__
SIZES = frozenset((SIZE, Tensor.numel, torch.numel, Tensor.nelement, STRIDE))


def _size(sizes: Any) -> torch.Size:
    return torch.Size(sizes)


def batch_sizes(tensor: Tensor, state: State) -> torch.Size | None:
    """Return the shape of a tensor, its sizes that depend on the batch as private ones.

    None if all sizes are public.
    """
    if state.shape is None or len(state.shape) != tensor.dim():
        if state.kind not in PRIVATE:
            return None
        return _size([PrivateInteger(size) for size in tensor.shape])
    tag = tag_of(tensor)
    number = 0 if tag is None else tag.number
    return _size([_one_size(*pair, number) for pair in zip(tensor.shape, state.shape, strict=True)])


def _one_size(size: int, virtual: int, number: int) -> Any:
    """Return a size, as a private number if it depends on how many examples there are in a pass."""
    if virtual and virtual % VIRTUAL == 0:
        return BatchSize(size, virtual // VIRTUAL, number=number)
    return size if size == virtual else PrivateInteger(size)


def measured(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], state: State) -> Any:
    """Return `x.shape`, `x.size()`, `x.size(d)` or `x.numel()` with private sizes."""
    tensor = args[0]
    sizes = batch_sizes(tensor, state)
    if sizes is None:
        return func(*args, **kwargs)
    if func is STRIDE:
        return _strides(tensor, func(*args, **kwargs), state)
    if func is SIZE:
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        return sizes if dim is None else sizes[dim]
    if func == SHAPE:
        return sizes
    count: Any = 1
    for size in sizes:
        count = size * count
    return count * tensor.element_size() if func == BYTES else count


def _strides(tensor: Tensor, strides: Any, state: State) -> Any:
    """Return strides, as private numbers unless the batch leads and rows lie one behind the other."""
    if state.shape is not None and state.shape and state.shape[0] % VIRTUAL == 0:
        step, usual = 1, []
        for size in reversed(state.shape):
            usual.append(step)
            step *= max(size, 1)
        if tensor.stride() == tuple(reversed(usual)):
            return strides
    return tuple(map(PrivateInteger, strides)) if isinstance(strides, tuple) else PrivateInteger(strides)
