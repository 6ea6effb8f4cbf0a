"""Which tensors a model in private training may hold.

A tensor subclass of the user's answers for itself: its `detach`, `clone` or `view` may return other data than
those that were compared (`released_state`). So parameters and buffers are tensors of torch's own classes.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.library_code import is_library_class


def check_model_tensors(model: nn.Module) -> None:
    """Refuse a model whose parameters or buffers cannot be trained or published privately.

    Raises:
        InvalidArgument: A parameter has no shape yet, or is trained and complex.
        NotSound: A parameter or a buffer is of a tensor class that is not torch's.
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        check_class(name, tensor)
        if is_lazy(tensor):
            raise InvalidArgument(
                f"{name} of the model has no shape before its first forward pass.",
                remedy="Call the model once on made-up inputs, then make the optimizer and the run.",
            )
        if tensor.requires_grad and tensor.is_complex():
            raise InvalidArgument(
                f"{name} of the model is complex, and noise is added to real numbers.",
                remedy="Train the real and the imaginary part as two real parameters, and put them together "
                "by torch.complex in the forward pass; or freeze it by requires_grad_(False).",
            )


def check_class(name: str, value: Any) -> None:
    """Refuse a tensor of a model's state whose class is not torch's, or that has methods of its own.

    Args:
        name: What the tensor is called.
        value: A value of the state, which may be no tensor.
    """
    if not isinstance(value, Tensor):
        return
    methods = [key for key in vars(value) if callable(getattr(Tensor, key, None))]
    if methods:
        raise NotSound(
            f"{name} of the model has a {methods[0]} of its own, which may give out other data than {name} "
            "holds.",
            remedy=f"Delete the attribute {methods[0]} of the tensor.",
        )
    if not is_library_class(type(value)):
        raise NotSound(
            f"{name} of the model is a tensor of the class {type(value).__name__}, which may give out other "
            "data than it holds.",
            remedy="Make it a plain tensor: tensor.as_subclass(torch.Tensor), in nn.Parameter(…) or "
            "register_buffer(…).",
        )
