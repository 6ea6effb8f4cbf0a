"""Parts that a GPU does at once, so that it need not be asked for each.

Bundle   shares of small parameters side by side: scales, shifts and biases are most of a model's
parameters and few of its numbers
Twins    outer products of one shape, as the layers of a deep model have
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Set

import torch
from torch import Tensor

from dalenius.learn.parts import Outer, Part, Whole, blanked, squares

SMALL = 1 << 13
"""Numbers of a parameter that is small."""
Factors = tuple[Tensor, Tensor]
Weights = Callable[[Tensor], Tensor]
"""Of the examples, by parameter."""


class Group(ABC):
    """Parts of several parameters."""

    parameters: list[Tensor]

    @abstractmethod
    def norms(self) -> dict[Tensor, Tensor]:
        """Squared norms by parameter and example; one parameter may stand for all."""

    @abstractmethod
    def add(self, weights: Weights, totals: Mapping[Tensor, Tensor], fresh: Set[Tensor]) -> None:
        """The weighted sums, to each parameter's total or in its place."""

    @abstractmethod
    def forget(self, bad: Tensor) -> None:
        """Set the shares of the marked examples to zero, whatever they were."""


def grouped(parts: Mapping[Tensor, Part], *, apart: bool) -> list[Group]:
    """What of these is done at once; norms that are wanted `apart` are not put together."""
    twins: dict[Hashable, dict[Tensor, Factors]] = {}
    small: dict[Hashable, dict[Tensor, Whole]] = {}
    for parameter, part in parts.items():
        if isinstance(part, Outer) and part.there and parameter.dtype == torch.float32:
            from dalenius.learn.gpu import outer

            # Factors that had to be laid out anew have other steps than those that had not.
            factors = outer.ready(part.left, part.right)
            twins.setdefault(outer.kind(factors), {})[parameter] = factors
        elif type(part) is Whole and part.shares.is_cuda and parameter.numel() <= SMALL and not apart:
            small.setdefault((part.shares.device, part.shares.dtype), {})[parameter] = part
    bundles = [Bundle(some) for some in small.values() if len(some) > 1]
    return [*(Twins(some) for some in twins.values()), *bundles]


class Bundle(Group):
    """Shares as rows of one matrix; the first parameter stands for all."""

    def __init__(self, wholes: Mapping[Tensor, Whole]) -> None:
        self.parameters = list(wholes)
        self._rows = torch.cat([one.shares.reshape(one.examples, -1) for one in wholes.values()], 1)

    def norms(self) -> dict[Tensor, Tensor]:
        """Of all together."""
        return {self.parameters[0]: squares(self._rows)}

    def forget(self, bad: Tensor) -> None:
        """By rows."""
        self._rows = blanked(self._rows, bad)

    def add(self, weights: Weights, totals: Mapping[Tensor, Tensor], fresh: Set[Tensor]) -> None:
        """One product, cut into what each parameter has."""
        found = torch.mv(self._rows.t(), weights(self.parameters[0]).to(self._rows.dtype))
        shares = found.split([one.numel() for one in self.parameters])
        pairs = list(zip(self.parameters, shares, strict=True))
        for function, some in (
            (torch._foreach_copy_, [pair for pair in pairs if pair[0] in fresh]),
            (torch._foreach_add_, [pair for pair in pairs if pair[0] not in fresh]),
        ):
            if some:
                function([totals[one].view(-1) for one, _ in some], [share for _, share in some])


class Twins(Group):
    """Outer products of one shape."""

    def __init__(self, layers: Mapping[Tensor, Factors]) -> None:
        from dalenius.learn.gpu import outer

        self.parameters, self._layers, self._kernels = list(layers), layers, outer

    def norms(self) -> dict[Tensor, Tensor]:
        """Of each."""
        return dict(zip(self._layers, self._kernels.squares(list(self._layers.values())), strict=True))

    def forget(self, bad: Tensor) -> None:
        """Nothing to do: their weights are zero, and such examples are not read."""

    def add(self, weights: Weights, totals: Mapping[Tensor, Tensor], fresh: Set[Tensor]) -> None:
        """By one kernel."""
        for keep in (False, True):
            some = [one for one in self.parameters if (one not in fresh) == keep]
            if some:
                layers = [self._layers[one] for one in some]
                each = torch.stack([weights(one) for one in some])
                self._kernels.add(layers, each, [totals[one] for one in some], keep=keep)


def left_over(parts: Mapping[Tensor, Part], groups: Iterable[Group]) -> dict[Tensor, Part]:
    """What is done one by one."""
    done = {one for group in groups for one in group.parameters}
    return {one: part for one, part in parts.items() if one not in done}
