"""A pass whose kernels a GPU has in a list of its own: it is asked once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.recording import Parts, Run, apart

WARM = 2
"""Passes before the one that is listed: what is made at first use is made in them."""


class Replayed:
    """A pass on batches of one form. Inputs, outputs and all between stay where they were recorded.

    Passes of one `pool` share what lies between, as one is over before the next is made.
    """

    def __init__(self, run: Run, inputs: Sequence[Tensor], pool: Any) -> None:
        self._inputs = [one.clone() for one in inputs]
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                run(self._inputs)
        here.wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool):
            self._loss, parts = run(self._inputs)
        self._tensors: list[Tensor] = []
        self._makers = {one: apart(part, self._tensors) for one, part in parts.items()}

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, Parts]:
        """The same for another batch."""
        for own, given in zip(self._inputs, inputs, strict=True):
            own.copy_(given, non_blocking=True)
        self._graph.replay()
        return self._loss.clone(), {one: make(self._tensors) for one, make in self._makers.items()}
