"""The loop is rehearsed on made-up examples before it sees a real one.

Three passes: example A alone, example B alone, both together. Alone, gradients are torch's own. Together they
are taken apart by the tape. What it says of A and of B must be what each had alone, up to the factor that a
mean over rows brings: then no example changes another's gradient, neither in the model nor in the criterion
nor in the loop (batch statistics, means over tokens that are counted over the batch, weights of classes,
contrastive losses, mixtures of examples), and every parameter's gradient is on the tape. Anything else is
refused, before anything is charged. Dropout is switched off for it.

A rehearsal sees what its made-up examples show. Where rows differ in what they leave out (padding, ignored
labels), pass `synthetic` rows that do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd
from torch.overrides import TorchFunctionMode

from dalenius.errors import NotSound
from dalenius.learn.gradients import Shares, Watched
from dalenius.learn.several import Processes
from dalenius.learn.sharded import whole

CLOSE, COARSE = 1e-3, 3e-2
"""How far apart gradients may be, of their norm: in single precision, and in half."""
_DROPOUTS = (
    functional.dropout,
    functional.dropout1d,
    functional.dropout2d,
    functional.dropout3d,
    functional.alpha_dropout,
    functional.feature_alpha_dropout,
)


BOTH, OTHERS = (0, 1), (1, 0, 1)
"""The examples of a pass that is looked at, and of one beside it in another process."""


class Rehearsal:
    """Three passes, and what they say of the reduction of the criterion.

    Several processes make a fourth: in the last two every other one has other examples, and another number
    of them, so that what is exchanged between processes shows in the gradients of the rest.
    """

    def __init__(self, model: Watched, processes: Processes | None = None) -> None:
        self.model, self._processes = model, processes or Processes()
        self._alone: list[dict[Tensor, Tensor]] = []
        self.reduction: str | None = None
        together = [BOTH] if self._processes.count == 1 else [BOTH, OTHERS]
        self.passes = [(0,), (1,), *(together[::-1] if self._processes.rank % 2 else together)]
        self._turn = 0

    @property
    def alone(self) -> bool:
        """Whether the pass at hand is of one example by itself."""
        return len(self._alone) < 2

    def heard(self) -> None:
        """After the backward pass of each."""
        chosen, self._turn = self.passes[self._turn], self._turn + 1
        if self.alone:
            self._alone.append({one: _taken(one) for one in self.model.names})
            return
        found = self.model.shares()
        look = partial(self._compare, found) if chosen == BOTH else lambda: None
        self._processes.each("a rehearsal", look)

    def _compare(self, shares: Shares) -> None:
        names, limit = self.model.names, COARSE if self.model.coarse else CLOSE
        if shares.examples != 2:
            raise NotSound(
                "The loop gives the model more or fewer rows than it was given, and each would count as an "
                "example of its own.",
                remedy="Pass views=… for several views of an example, which are clipped as one.",
            )
        together = []
        for example in range(2):
            totals = {one: torch.zeros(one.shape, dtype=one.dtype, device=one.device) for one in names}
            weights = torch.zeros(2, device=next(iter(names)).device)
            weights[example] = 1
            shares.add(weights, totals)
            together.append(totals)
        if not all(_norm(alone.values()) > 0 for alone in self._alone):
            raise NotSound(
                "In a rehearsal on made-up examples nothing had a gradient, so that nothing was seen.",
                remedy="Pass synthetic=[…], made-up rows of which the model learns.",
            )
        ratios = [_ratio(one, two) for one, two in zip(together, self._alone, strict=True)]
        self.reduction = next(
            (name for name, ratio in (("sum", 1), ("mean", 0.5)) if _all(ratios, ratio, limit)), None
        )
        factor = 1 if self.reduction == "sum" else 2
        for both, alone in zip(together, self._alone, strict=True):
            whole = _norm(alone.values())
            for parameter, name in names.items():
                apart = float((both[parameter] * factor - alone[parameter]).norm())
                if not apart <= limit * whole + 1e-7:
                    raise _refused(name)
        if self.reduction is None:
            raise _refused("the whole model")


def _taken(parameter: Tensor) -> Tensor:
    found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach().clone()
    parameter.grad = None
    return found.to_dense() if found.is_sparse else whole(found)


def _norm(gradients: Any) -> float:
    return float(torch.stack([one.double().norm() for one in gradients]).norm())


def _ratio(one: dict[Tensor, Tensor], two: dict[Tensor, Tensor]) -> float:
    return _norm(one.values()) / _norm(two.values())


def _all(ratios: list[float], wanted: float, limit: float) -> bool:
    return all(abs(ratio - wanted) <= 2 * limit * wanted for ratio in ratios)


def _refused(name: str) -> NotSound:
    return NotSound(
        f"In a rehearsal on made-up examples the gradient of {name} for one example depended on another "
        "example, or was not found as it is.",
        remedy="Average losses over each example's own tokens first, then over examples; replace batch "
        "statistics by dp.learn.replaced(model); leave out mixing, and what is random but dropout.",
    )


class _Sure(TorchFunctionMode):
    """Dropout is off."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _DROPOUTS:
            return args[0] if args else kwargs["input"]
        if func is functional.scaled_dot_product_attention:
            args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
            kwargs = {key: one for key, one in kwargs.items() if key != "dropout_p"}
        return func(*args, **kwargs)


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Modules that drop out do not, nor does a function in a forward pass."""
    off: list[Any] = [one for one in model.modules() if isinstance(one, _DropoutNd) and one.training]
    rates: list[Any] = [one for one in model.modules() if isinstance(getattr(one, "dropout", None), float)]
    kept, sure = [one.dropout for one in rates], _Sure()
    hooks = (
        model.register_forward_pre_hook(lambda *_: sure.__enter__() and None),
        model.register_forward_hook(lambda *_: sure.__exit__(None, None, None), always_call=True),
    )
    for one in off:
        one.eval()
    for one in rates:
        one.dropout = 0.0
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for one in off:
            one.train()
        for one, rate in zip(rates, kept, strict=True):
            one.dropout = rate
