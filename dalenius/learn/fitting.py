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

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import BudgetExceeded, InvalidArgument
from dalenius.learn.batches import read_dataset
from dalenius.learn.clipping import Clipping
from dalenius.learn.private import Private
from dalenius.ledger.account import Account
from dalenius.privacy.numbers import Number

Criterion = Callable[[Any, Tensor], Tensor]
LARGEST, PARTS = 4096, 30
"""A batch has a thirtieth of the public size where nothing else is said, and at most so many rows."""


def fit(
    model: nn.Module,
    data: Any,
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
    """Train `model` on rows of (inputs, target) within epsilon and delta, and return the run.

    With pay="epoch", or a number of steps, the account may refuse to pay for more when some steps were made:
    then training ends with a warning, and the run is returned as far as it came.

    Args:
        model: The model to train.
        data: A tuple of tensors, inputs first and target last, or a data set of such rows.
        epsilon: The ε that the whole run costs at most, at `delta`.
        delta: The δ at which the cost is stated.
        account: The account to charge.
        public_size: A number of rows that may be published; by default the real number is taken as public.
        criterion: The loss of outputs and target; by default cross entropy, of which a row whose label is
            no class has none.
        optimizer: The optimizer; by default Adam at a rate of 0.002.
        batch_size: The expected size of a batch; by default a thirtieth of the rows, and at most 4096.
        epochs: The number of epochs.
        clip: The bound on an example's gradient, or a clipping rule.
        progress: Whether to show a bar of steps and of the ε that was charged. It shows no losses.
        more: Further arguments of `Private`.
    """
    size = public_size or len(read_dataset(data))
    batch = batch_size or max(1, min(LARGEST, size // PARTS))
    private = Private(
        model,
        optimizer or torch.optim.Adam(model.parameters(), lr=2e-3),
        data,
        batch_size=batch,
        epochs=epochs,
        clip=clip,
        epsilon=epsilon,
        delta=delta,
        account=account,
        public_size=public_size,
        **more,
    )
    asked = criterion or nn.functional.cross_entropy
    device = next(iter(private.model.names)).device
    try:
        with _bar(private, progress and private.processes.rank == 0) as advance:
            for batch_at_hand in private.batches():
                *inputs, target = _pair(batch_at_hand)
                private.zero_grad()
                outputs = private.model(*(one.to(device) for one in inputs))
                asked(outputs, target.to(device)).backward()
                private.step()
                advance()
    except BudgetExceeded as refused:
        if not private.steps:
            raise
        made = f"{private.steps} of {private.sampling.steps} steps"
        warnings.warn(f"Training ended after {made}, as no more could be charged. {refused}", stacklevel=2)
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
    """Show steps, and the ε that was charged for them: both public."""
    if not shown or find_spec("rich") is None:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        cost = private.receipt.cost
        task, charged = bar.add_task(f"training, {cost}", total=private.sampling.steps), private.cost

        def advance() -> None:
            nonlocal charged
            bar.update(task, completed=private.steps)
            if private.spent != charged:
                charged = private.spent
                bar.update(task, description=f"training, {private.receipt.cost} so far")

        yield advance
