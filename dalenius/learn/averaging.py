"""`Average`: a running average of weights, which costs nothing and is often better than the last ones.

    average = Average(model, decay=0.999)
    private = dp.learn.Private(model, optimizer, …, average=average)    # updated after every private step
    …
    published = average.model()                                         # private.receipt says that it is one

Every step's weights are private already, so any function of them is (De, Berrada, Hayes, Smith and Balle
2022). Exponential: after t steps a ← d·a + (1 − d)·w with d = min(decay, (1 + t)/(10 + t)), so that
the first weights are soon forgotten. Uniform, with decay=None: the mean of all weights since step `start`.
The state of a run does not hold it: keep `state_dict` beside one that is saved.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import InvalidArgument
from dalenius.learn.several import plain
from dalenius.learn.sharded import is_sharded, local, placed, resharded, shard_like, whole
from dalenius.privacy import numbers


class Average:
    """Of the trained parameters of a model, from after step `start` on."""

    # Without a dictionary of its own, an average has the methods of its class and no others.
    __slots__ = "_kept", "_model", "decay", "start", "steps"

    def __init__(self, model: nn.Module, decay: float | None = 0.999, *, start: int = 0) -> None:
        if decay is not None and not 0 <= decay < 1:
            raise InvalidArgument("decay must be from 0 to 1, below 1.", remedy="Choose decay=0.999.")
        model = plain(model)
        self._model, self.decay, self.steps = model, decay, 0
        self.start = numbers.count(start, "start", least=0)
        self._kept = [one.detach().clone() for one in self._trained(model)]

    def follow(self, optimizer: torch.optim.Optimizer) -> Average:
        """Update after every step of the optimizer."""
        optimizer.register_step_post_hook(lambda *_: self.update())
        return self

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights of one more step."""
        seen, self.steps = max(0, self.steps - self.start), self.steps + 1
        torch._foreach_lerp_(self._kept, self._trained(self._model), 1 - self._share(seen))

    def _share(self, seen: int) -> float:
        """What stays of the average, where so many weights are in it."""
        if self.steps <= self.start + 1:
            return 0.0
        return seen / (seen + 1) if self.decay is None else min(self.decay, (1 + seen) / (10 + seen))

    def model(self) -> nn.Module:
        """A copy of the model with the averages for weights."""
        if any(map(is_sharded, self._parameters(self._model))):
            raise InvalidArgument(
                "A model in shards is not copied.", remedy="Call private.export, which writes the averages."
            )
        found = copy.deepcopy(self._model)
        with torch.no_grad():
            torch._foreach_copy_(self._trained(found), self._kept)
        return found

    def follows(self, model: nn.Module) -> bool:
        """Return whether the averages are those of `model`."""
        return self._model is model

    @property
    def tensors(self) -> list[Tensor]:
        """The averages, or the shards of them that this process holds."""
        return self._kept

    def published(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return `state` with the averages in place of trained parameters; of several processes all call it.

        Args:
            state: The state of the model by name, in which trained parameters are themselves.
        """
        kept = dict(zip(self._parameters(self._model), self.state_dict()["kept"], strict=True))
        return {name: kept.get(one, one) if isinstance(one, Tensor) else one for name, one in state.items()}

    @property
    def how(self) -> str:
        """In words, for a receipt."""
        kind = "mean" if self.decay is None else f"exponential average, decay {self.decay:g},"
        return f"{kind} of the weights since step {self.start}"

    def state_dict(self) -> dict[str, Any]:
        """Steps and averages."""
        pairs = zip(self._kept, self._parameters(self._model), strict=True)
        return {"steps": self.steps, "kept": [whole(shard_like(one.clone(), like)) for one, like in pairs]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As they were."""
        self.steps = int(state["steps"])
        pairs = zip(state["kept"], self._parameters(self._model), strict=True)
        torch._foreach_copy_(self._kept, [local(placed(one, like)) for one, like in pairs])

    @staticmethod
    def _parameters(model: nn.Module) -> list[Tensor]:
        return [one for one in resharded(model).parameters() if one.requires_grad]

    def _trained(self, model: nn.Module) -> list[Tensor]:
        """What is here of them."""
        return [local(one.detach()) for one in self._parameters(model)]
