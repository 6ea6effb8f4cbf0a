"""Training is tested on one thread: sums come out the same, and workers do not fight for processors."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
