"""Training is tested on one thread: sums come out the same, and workers do not fight for processors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import dalenius as dp
from dalenius.ledger.account import Account


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    """An account of people with a budget of epsilon 9."""
    with dp.Ledger(tmp_path / "ledger.db") as ledger:
        yield ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(9, 1e-5))
