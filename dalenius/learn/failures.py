"""Errors of torch on private examples: what of their texts may be shown.

The text of an error may hold values, such as an index that is out of range, or say which row was at fault. A
call that fails on tensors without values (on the device "meta") fails because of shapes and types. Then the
text of that failure is shown, which cannot hold a value. The call is made with a large prime number of
examples in the place of their number, so that the text is the same for every batch that fails. Any other text
is withheld.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.marks import found_in, replaced

_linalg: Any = torch.linalg
_KINDS: tuple[type[Exception], ...] = (
    *(_linalg.LinAlgError, IndexError, ValueError),
    *(TypeError, AssertionError, RuntimeError),
)
"""Errors that torch raises, one of which is raised in their place."""
_IN_PLACE = "modified by an inplace operation"


def failure(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
    name: str,
    *,
    shown: Callable[[str], str],
    bare: Callable[[Tensor], Tensor],
    asked: bool,
) -> Exception:
    """Return an error to raise in place of one that was raised on private examples.

    Args:
        func: The function of torch that failed.
        args: Its positional arguments, with sizes of a batch of that prime number of examples.
        kwargs: Its named arguments, with such sizes.
        error: The error.
        name: What the function is called.
        shown: Returns what is shown of a number in a text.
        bare: Returns a tensor without values in the place of one, with sizes that `shown` knows.
        asked: Whether the function may be called again on tensors without values.
    """
    if isinstance(error, torch.OutOfMemoryError):
        return torch.OutOfMemoryError(
            f"{name} ran out of memory of the GPU{user_line()}. Pass a smaller chunk=."
        )
    kind = next((kind for kind in _KINDS if isinstance(error, kind)), RuntimeError)
    text = _text_by_shapes(func, args, kwargs, kind, bare) if asked else None
    if text is not None:
        return kind(re.sub(r"\d+", lambda number: shown(number[0]), text))
    if _IN_PLACE in str(error):
        return kind(f"{name} failed{user_line()}: a tensor that gradients need was {_IN_PLACE}.")
    if isinstance(error, IndexError):
        return IndexError(
            f"{name} got an index out of bounds{user_line()}. Its value is private, and not shown. Check "
            "labels and indices before they are data."
        )
    forms = ", ".join(f"{str(one.dtype)[6:]} on {one.device}" for one in found_in(args, kwargs))
    given = f" It was given {forms}." if forms else ""
    return kind(
        f"{name} failed on private examples{user_line()}. The text of the error is withheld, as it may tell "
        f"values of theirs.{given} Call it on made-up rows to see the text, and check rows before they are "
        "data."
    )


def _text_by_shapes(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    kind: type[Exception],
    bare: Callable[[Tensor], Tensor],
) -> str | None:
    """Return the text of the failure of a call on tensors without values; None where that does not fail."""
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            given = {name: value for name, value in kwargs.items() if name != "generator"}
            func(*replaced(args, bare), **replaced(given, bare))
    except NotImplementedError:
        return None
    except Exception as error:
        return str(error) if isinstance(error, kind) else None
    return None
