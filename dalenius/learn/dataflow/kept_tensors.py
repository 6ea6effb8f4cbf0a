"""Private tensors that outlive the loop they were made in: they stay private.

Inside of a loop over the loader a function mode knows which tensors are private. After an iteration the mode
is gone, and the loop's variables are still there: the last batch, its loss, a list of losses. `guard` makes
each of them a `PrivateTensor`. Such a tensor prints, and can be read out as a private number; a branch or a
comparison of its values is refused, and whatever is computed from it is private as well. So an epoch's loss
can be logged after the epoch, and cannot set the next learning rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.dataflow import reads
from dalenius.learn.dataflow.private_numbers import PrivateInteger, PrivateNumber, plain, whole_sizes
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.dataflow.states import Tag, mixed, put_tag, tag_of

_PLAIN = frozenset((Tensor, nn.Parameter))
_ATTRIBUTES = frozenset(("dtype", "device", "layout", "requires_grad", "is_leaf", "ndim", "names"))
_OPERATORS = "setitem iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift"
_IN_PLACE = frozenset(f"__{name}__" for name in _OPERATORS.split())


class PrivateTensor(Tensor):
    """A tensor of private examples after the loop that it was made in."""

    watched: Callable[[], bool] = staticmethod(lambda: False)
    """Whether a loop is watched at present: then its function mode knows what is private."""

    def for_logging(self) -> Tensor:
        """Return the plain values, to be written down. The receipt assumes that they decide nothing."""
        with torch._C.DisableTorchFunction():
            return self.detach().clone()

    def __format__(self, how: str) -> str:
        """Format a single number as such, and anything else as torch does."""
        return format(self.item(), how) if self.dim() == 0 else object.__format__(self, how)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run a function of torch; what it returns or writes to is private."""
        given = dict(kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            if PrivateTensor.watched() or _attribute(func) in _ATTRIBUTES:
                return func(*args, **given)
            tensors = list(_tensors((args, given)))
            known = next((tensor for tensor in tensors if isinstance(tensor, PrivateTensor)), None)
            if func in (Tensor.backward, torch.autograd.backward):
                raise _ended()
            if func == reads.SHAPE or func in reads.SIZES or func == reads.BYTES:
                tag = None if known is None else tag_of(known)
                return func(*args, **given) if tag is None else reads.measured(func, args, given, tag.state)
            if func in reads.READS:
                return reads.READS[func](*args, **given)
            result = func(*_numbers(args), **_numbers(given))
            written = args[:1] if _in_place(func) else ()
            for tensor in _tensors((result, written, given.get("out"))):
                _make_private(tensor, getattr(func, "__name__", "a function"))
            return result


def guard(tensor: Tensor) -> None:
    """Turn a private tensor into a `PrivateTensor`, whoever refers to it."""
    if type(tensor) in _PLAIN:
        tensor.__class__ = PrivateTensor


def _make_private(tensor: Tensor, operation: str) -> None:
    guard(tensor)
    if isinstance(tensor, PrivateTensor) and tag_of(tensor) is None:
        put_tag(tensor, Tag(mixed(operation, "uses private values of an earlier loop"), 0, 0, False))


def _in_place(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name in _IN_PLACE or (name.endswith("_") and not name.endswith("__")) or name == "__set__"


def _attribute(func: Any) -> str:
    if getattr(func, "__name__", "") != "__get__":
        return ""
    return str(getattr(getattr(func, "__self__", None), "__name__", ""))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for entry in value:
            yield from _tensors(entry)
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from _tensors(entry)


def _numbers(value: Any) -> Any:
    """Return arguments with plain numbers in place of private ones: the result is private anyhow."""
    if isinstance(value, PrivateNumber | PrivateInteger):
        return plain(value)
    if type(value) in (tuple, list):
        return whole_sizes(type(value)(map(_numbers, value)))
    return {key: _numbers(entry) for key, entry in value.items()} if type(value) is dict else value


def _ended() -> NotSound:
    return NotSound(
        f"backward() of private examples was called after their loop{user_line()}: no step would take its "
        "gradients in.",
        remedy="Call loss.backward() and private.step() inside of the loop over private.loader.",
    )
