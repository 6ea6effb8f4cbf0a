"""Loops whose first batch is per example: the rows of one batch change the next.

The first step of these loops is sound, and the run is charged for it. The refusal is due before the second.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.learn.mixing.loops import LATER, Loops, seeded
from tests.learn.mixing.rows import FEATURES, Embedder

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("in-place state")


@LOOPS.loop("T|cat|matmul", model=lambda: seeded(Embedder), refused=LATER)
def momentum_queue(private: Any) -> None:
    queue = torch.ones(16, 4)
    for x, _ in private.loader:
        private.zero_grad()
        z = functional.normalize(private.model(x), dim=1)
        logits = z @ queue.T / 0.1
        functional.cross_entropy(logits, torch.zeros(x.shape[0], dtype=torch.int64)).backward()
        queue = torch.cat([z.detach(), queue])[:16]
        private.step()


@LOOPS.loop("sub", refused=LATER)
def centre_of_the_batch_before(private: Any) -> None:
    centre = torch.zeros(FEATURES)
    for x, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(x - centre), y).backward()
        centre = 0.5 * centre + 0.5 * x.mean(0)
        private.step()


@LOOPS.loop("item|div|truediv", refused=LATER)
def loss_scaled_by_the_losses_before(private: Any) -> None:
    losses: list[Any] = []
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        (loss / (1 + sum(losses))).backward()
        losses.append(loss.item())
        private.step()


@LOOPS.loop("item|float", refused=LATER)
def learning_rate_cut_on_a_plateau(private: Any) -> None:
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(private.optimizer, patience=0)
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        loss.backward()
        private.step()
        scheduler.step(loss.item())
