"""`RunFiles`: what is written of a run, which is weights to publish and a secret state to go on from.

Nothing is written of a model whose state holds more than it may (`released_state`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.averaging import Average
from dalenius.learn.dataflow.kept_tensors import PrivateTensor
from dalenius.learn.dataflow.states import was_written
from dalenius.learn.export import write_weights
from dalenius.learn.gradients import Watched
from dalenius.learn.optimizer_hooks import moved
from dalenius.learn.released_state import ReleasedState
from dalenius.learn.several import Processes
from dalenius.learn.sharded import placed_all, placed_for, whole
from dalenius.learn.state import State, detached
from dalenius.noise.stream import StreamKey
from dalenius.release.receipt import Receipt


class RunFiles:
    """The files of a run of one model. Of several processes all call every method, and the first writes.

    Args:
        model: The model that is trained.
        optimizer: The optimizer that moves it.
        average: The average of the weights that is kept, if any.
        processes: The processes of the run.
    """

    def __init__(
        self,
        model: Watched,
        optimizer: torch.optim.Optimizer,
        average: Average | None,
        processes: Processes,
    ) -> None:
        self._model, self._optimizer, self._average = model, optimizer, average
        self._processes = processes
        self._start: ReleasedState | None = None

    def ready(self, key: StreamKey) -> None:
        """Take the state of the model as it is before it meets data; later calls change nothing."""
        if self._start is None:
            model, optimizer = self._model, self._optimizer
            _check_clean(model.inner, optimizer)
            self._start = ReleasedState(
                model.inner,
                model.names,
                optimizer,
                self._average,
                key,
                model.is_private,
                model.watched,
            )

    @property
    def released(self) -> ReleasedState:
        """The state that may leave, which was taken before the model met data."""
        assert self._start is not None, "the run has not begun"
        return self._start

    def checked(self) -> dict[str, Any]:
        """Return the state of the model, with trained parameters themselves; refuse what may not leave.

        Raises:
            NotSound: The state holds something that the optimizer did not put there.
        """
        if self._start is None:
            with self._model.watched():
                return dict(self._model.inner.state_dict(keep_vars=True))
        states: list[dict[str, Any]] = []
        self._processes.each("the state of the model", lambda: states.append(self.released.checked()))
        return states[0]

    def export(self, path: str | os.PathLike[str], receipt: Receipt, *, steps: str, trained: bool) -> None:
        """Write weights, or their averages, and their receipt.

        Args:
            path: The file to write.
            receipt: What is said of the weights.
            steps: After how many steps, in words.
            trained: Whether to write only parameters that were trained.
        """
        state = self.checked()
        state = state if self._average is None else self._average.published(state)
        if trained:
            state = {name: state[name] for name in self._model.names.values() if name in state}
        said = replace(receipt, postprocessing=(*receipt.postprocessing, f"exported after {steps}"))
        weights = whole(detached(state))
        self._processes.first("weights", lambda: write_weights(path, weights, said, steps=steps))

    def save(self, path: Path, model: Mapping[str, Any], **more: Any) -> None:
        """Write the secret state.

        Args:
            path: The file to write.
            model: The state of the model, as `checked` returned it.
            more: All fields of a `State` but those of model, optimizer and average.
        """
        state = State(
            model=whole(detached(model)),
            optimizer=whole(self._optimizer.state_dict()),
            average=None if self._average is None else self._average.state_dict(),
            **more,
        )
        self._processes.first("a state", lambda: state.write(path))

    def load(self, state: State) -> None:
        """Put model, optimizer and average back to what they were when a state was saved."""
        model = self._model.inner
        # The loop of another run may be open, which would tag what is read as its own.
        with torch._C.DisableTorchFunction():
            model.load_state_dict(placed_all(state.model, model.state_dict()))
            self._optimizer.load_state_dict(placed_for(state.optimizer, self._optimizer))
            if self._average is not None:
                self._average.load_state_dict(dict(state.average or {}))


def _check_clean(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse to begin with a model that an earlier loop has written private values into."""
    state = {**dict(model.named_buffers()), **model.state_dict(keep_vars=True)}
    names = [name for name, value in state.items() if isinstance(value, Tensor) and _is_spoiled(value)]
    if names or any(map(_is_spoiled, moved(optimizer))):
        raise NotSound(
            f"{' and '.join(names[:3]) or 'The state of the optimizer'} holds what an earlier loop of this "
            "process has written there from private examples, without noise.",
            remedy="Make the model and its optimizer anew, and change the code that writes to it.",
        )


def _is_spoiled(tensor: Tensor) -> bool:
    return isinstance(tensor, PrivateTensor) or was_written(tensor)
