"""`fit`: a private training run in one call.

>>> import torch
>>> from dalenius import learn
>>> x = torch.randn(300, 4)
>>> run = learn.fit(torch.nn.Linear(4, 2), (x, (x[:, 0] > 0).long()), epsilon=3, delta=1e-5, public_size=300,
...     batch_size=50, epochs=2, progress=False)
>>> run.receipt.cost
'epsilon 3 at delta 1e-05'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import InvalidArgument
from dalenius.learn.clipping import Clipping
from dalenius.learn.private import Private
from dalenius.ledger.account import Account
from dalenius.privacy.numbers import Number

Criterion = Callable[[Any, Tensor], Tensor]
LARGEST, PARTS = 4096, 30
"""A batch has a thirtieth of the public size where nothing else is said, and at most so many rows."""


def fit(
    model: nn.Module,
    dataset: Any,
    *,
    epsilon: Number,
    delta: Number,
    account: Account | None = None,
    public_size: int | None = None,
    criterion: Criterion | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    batch_size: int | None = None,
    epochs: Number = 20,
    clip: Number | Clipping = 1,
    progress: bool = True,
    **more: Any,
) -> Private:
    """Train `model` on rows of (inputs, target) within epsilon and delta; the rest goes to `Private`.

    Without a criterion it is cross entropy; without an optimizer, Adam. The bar shows steps and ε, no losses.
    """
    size = len(dataset[0]) if isinstance(dataset, tuple | list) else len(dataset)
    batch = batch_size or max(1, min(LARGEST, (public_size or size) // PARTS))
    private = Private(
        model,
        optimizer or torch.optim.Adam(model.parameters(), lr=2e-3),
        dataset,
        batch_size=batch,
        epochs=epochs,
        clip=clip,
        epsilon=epsilon,
        delta=delta,
        account=account,
        public_size=public_size,
        **more,
    )
    asked = criterion or nn.CrossEntropyLoss()
    device = next(iter(private.model.names)).device
    with _bar(private, progress and private.processes.rank == 0) as advance:
        for batch_at_hand in private.loader:
            *inputs, target = _pair(batch_at_hand)
            private.zero_grad()
            outputs = private.model(*(one.to(device) for one in inputs))
            asked(outputs, target.to(device)).backward()
            private.step()
            advance()
    return private


def _pair(batch: Any) -> Any:
    if not isinstance(batch, tuple | list) or len(batch) < 2:
        raise InvalidArgument(
            "Rows must be inputs and a target.",
            remedy="Pass (x, y), or write the loop with dp.learn.Private.",
        )
    return batch


@contextmanager
def _bar(private: Private, shown: bool) -> Iterator[Callable[[], None]]:
    """Steps, and the ε of the run: both public."""
    if not shown or find_spec("rich") is None:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(f"training, {private.receipt.cost}", total=private.sampling.steps)
        yield lambda: bar.update(task, completed=private.steps)
