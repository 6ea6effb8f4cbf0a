"""Short runs whose loop uses its loss and its batch for something besides the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional

from dalenius.learn.private import Private
from dalenius.ledger.account import Account
from tests.learn.runs import data, network, run_of

ROWS = 64


def begun(account: Account | None = None) -> Private:
    """Return a short run."""
    asked: dict[str, Any] = {} if account is None else {"account": account, "delta": 1e-6}
    asked |= {"batch_size": 32, "public_size": ROWS, "steps": 2, "noise_multiplier": 4}
    return run_of(network(), data(ROWS), **asked)


def loop(private: Private, use: Callable[[Tensor, Tensor, Tensor], Tensor | None]) -> None:
    """Train. The backward pass is of what `use` returns for the loss and the batch, if it returns a loss."""
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        other = use(loss, x, y)
        (loss if other is None else other).backward()
        private.step()
