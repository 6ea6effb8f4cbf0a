"""Memory that private values, or a private number of values, are written into: what is refused of it.

A tensor whose memory is replaced keeps the state of what it held before, and one that is resized takes on a
size that it did not have. Memory that numpy or other processes share can be read where nothing is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.dataflow.kept_tensors import PrivateTensor
from dalenius.learn.dataflow.private_numbers import PrivateInteger, PrivateNumber
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.dataflow.states import PRIVATE, State
from dalenius.learn.marks import tensors_in

_SET = torch._C.TensorBase.set_


def guard_replacement(is_watched: Callable[[Tensor], bool]) -> None:
    """Refuse `x.set_(y)` where x or y is private, in a loop and after it.

    No mode of torch sees `set_`. It is replaced once, and stays so: private tensors outlive their loops.

    Args:
        is_watched: Whether a tensor is private, or as long as a batch, in the loop at present.
    """

    def set_(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        given = [tensor, *tensors_in((args, kwargs))]
        numbers = [*args, *kwargs.values()]
        numbers += [entry for value in numbers if isinstance(value, tuple | list) for entry in value]
        private = any(isinstance(one, PrivateTensor) or is_watched(one) for one in given)
        check_replaced(private or any(isinstance(one, PrivateInteger | PrivateNumber) for one in numbers))
        return _SET(tensor, *args, **kwargs)

    if Tensor.set_ is _SET:
        set_.__doc__ = _SET.__doc__
        tensors: Any = Tensor
        tensors.set_ = set_


def check_replaced(private: bool) -> None:
    """Refuse `x.set_(y)` where x or y is private, or as long as a batch: x would keep its state."""
    if private:
        raise NotSound(
            f"set_() gives a tensor the memory of another one{user_line()}, and either is private, or as "
            "long as the batch: what is known of the tensor would be that of its old memory.",
            remedy="Use the other tensor itself, or a copy of it.",
        )


def check_out(name: str, out: Any, before: Mapping[int, State], after: Sequence[State | None]) -> None:
    """Refuse `out=` of another size than the result: torch resizes it and warns, which tells that size.

    Args:
        name: What the function that is called is called.
        out: What it was given as `out`.
        before: The states of tensors in the call that are not public, by identity.
        after: The states of its results, none if they are not known.
    """
    targets = list(tensors_in(out))
    forms = [target.shape if (one := before.get(id(target))) is None else one.shape for target in targets]
    results = [None if state is None else state.shape for state in after]
    fits = len(forms) == len(results) and all(
        form is not None and (0 in form or (result is not None and tuple(form) == tuple(result)))
        for form, result in zip(forms, results, strict=True)
    )
    if not fits:
        raise NotSound(
            f"{name} writes private values, or as many as there are examples, into out={user_line()}, which "
            "is not known to be of their size: torch would resize it, and warn by that size.",
            remedy="Leave out= away, or pass a tensor that was made by torch.empty_like(…) of the same size.",
        )


def check_memory(target: Tensor, before: State | None, operation: str) -> None:
    """Refuse to write private values where they can be read without being watched."""
    if (before is None or before.kind not in PRIVATE) and _is_seen_elsewhere(target):
        raise NotSound(
            f"{operation} writes private values into memory that is shared with numpy, or with another "
            f"process{user_line()}, where nothing is watched.",
            remedy="Write into a copy: tensor.clone().",
        )


def check_spread(target: Tensor, operation: str) -> None:
    """Refuse to write private values into memory of which one place belongs to many examples."""
    if any(size > 1 and not step for size, step in zip(target.shape, target.stride(), strict=True)):
        raise NotSound(
            f"{operation} writes private values into expanded memory{user_line()}, where one place belongs "
            "to many examples.",
            remedy="Write into a copy: tensor.clone().",
        )


def _is_seen_elsewhere(tensor: Tensor) -> bool:
    """Return whether the memory of a tensor belongs to an array of numpy as well, or to several processes."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        return False
    with torch._C.DisableTorchFunction():
        storage = tensor.untyped_storage()
        return not storage.resizable() or storage.is_shared()
