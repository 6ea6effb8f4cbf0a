"""What surrounds a step: chunks, schedulers, epochs, evaluation, public models and their own training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.learn.private import Private

from .classification import CLASSES, LABELED, WEIGHTS, WIDTH, network
from .loop import Loop

PUBLIC = (torch.linspace(-1, 1, 6 * WIDTH).view(6, WIDTH), torch.arange(6) % CLASSES)


def plain(private: Private) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()


def scheduler(private: Private) -> None:
    """The learning rate follows the steps of the run, not the chunks."""
    schedule = torch.optim.lr_scheduler.LambdaLR(private.optimizer, lambda step: 1 / (1 + step))
    done = private.steps
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        if private.steps > done:
            done = private.steps
            schedule.step()


def epochs(private: Private) -> None:
    """Nested epochs: each pass over the loader is one of them."""
    for _ in range(2):
        for x, y in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(x), y).backward()
            private.step()


def evaluated(private: Private) -> None:
    """Public rows are evaluated within the loop."""
    for x, y in private.loader:
        private.model.train()
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        private.model.eval()
        with torch.no_grad():
            right = (private.model(PUBLIC[0]).argmax(1) == PUBLIC[1]).float().mean().item()
        assert 0 <= right <= 1
        private.model.train()


def evaluated_privately(private: Private) -> None:
    """The batch is looked at again without gradients, and the result is shown."""
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        with torch.no_grad():
            after = functional.cross_entropy(private.model(x), y)
        private.step()
        assert f"{after.item():.3f}"


def stopped_by_public_rows(private: Private) -> None:
    """Steered by a public number: released weights on public rows."""
    best = float("inf")
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        with torch.no_grad():
            value = functional.cross_entropy(private.model(PUBLIC[0]), PUBLIC[1]).item()
        if value < best:
            best = value


def public_model(private: Private) -> None:
    """An unrelated model learns from public rows with class weights, while the private loop is open."""
    other = nn.Linear(WIDTH, CLASSES)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    for x, y in private.loader:
        optimizer.zero_grad()
        loss = functional.cross_entropy(other(PUBLIC[0]), PUBLIC[1], weight=WEIGHTS)
        loss.backward()
        optimizer.step()
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        assert loss.item() < 100


def batch_statistics_of_a_public_model(private: Private) -> None:
    """An unrelated model with batch norm learns from public rows."""
    other = nn.Sequential(nn.Linear(WIDTH, 4), nn.BatchNorm1d(4), nn.Linear(4, CLASSES))
    for x, y in private.loader:
        functional.cross_entropy(other(PUBLIC[0]), PUBLIC[1]).backward()
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()


def moved(private: Private) -> None:
    """Batches are moved and cast as for a GPU."""
    device = torch.device("cpu")
    for batch in private.loader:
        x, y = (column.to(device, non_blocking=True) for column in batch)
        private.zero_grad()
        output: Tensor = private.model(x.float().contiguous())
        functional.cross_entropy(output, y.long()).backward()
        private.step()


CHUNKS, EPOCHS = {"chunk": 3}, {"steps": None, "epochs": 2}

LOOPS = (
    Loop("accumulation in chunks", network, LABELED, plain, options=CHUNKS),
    Loop("scheduler by steps", network, LABELED, scheduler, options=CHUNKS),
    Loop("nested epochs", network, LABELED, epochs, options=EPOCHS),
    Loop("evaluation on public rows", network, LABELED, evaluated),
    Loop("evaluation without gradients", network, LABELED, evaluated_privately),
    Loop("steered by public rows", network, LABELED, stopped_by_public_rows),
    Loop("public model with class weights", network, LABELED, public_model),
    Loop("public model with batch norm", network, LABELED, batch_statistics_of_a_public_model),
    Loop("batches moved and cast", network, LABELED, moved),
)
