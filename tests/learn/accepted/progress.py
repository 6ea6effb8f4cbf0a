"""What loops print: losses, accuracies, running means. Private numbers may be shown and added up."""

from __future__ import annotations

import io
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from dalenius.learn.private import Private

from .classification import LABELED, network
from .loop import Loop


class Bar:
    """A progress bar with a postfix, as tqdm has."""

    def __init__(self) -> None:
        self.screen = io.StringIO()

    def set_postfix(self, **numbers: Any) -> None:
        shown = ", ".join(f"{name}={number:.3g}" for name, number in numbers.items())
        print(shown, file=self.screen)


def logged(private: Private) -> None:
    screen = io.StringIO()
    for step, (x, y) in enumerate(private.loader):
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        if step % 2 == 0:
            print(f"step {step}: loss {loss.item():.4f}", loss.item(), file=screen)
    assert "loss" in screen.getvalue()


def running_mean(private: Private) -> None:
    total, smooth, bar = 0.0, 0.0, Bar()
    for step, (x, y) in enumerate(private.loader, start=1):
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        total += loss.item()
        smooth = 0.9 * smooth + 0.1 * loss.item()
        bar.set_postfix(loss=total / step, smooth=smooth)
    assert "smooth=" in bar.screen.getvalue()


def weighted_mean(private: Private) -> None:
    """The usual meter: a mean weighted by the sizes of batches."""
    total, seen = 0.0, 0
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        total += loss.item() * x.shape[0]
        seen += x.shape[0]
    assert f"{total / seen:.3f}"


def accuracy(private: Private) -> None:
    correct, seen, bar = 0, 0, Bar()
    for x, y in private.loader:
        private.zero_grad()
        logits = private.model(x)
        loss = nn.CrossEntropyLoss()(logits, y)
        loss.backward()
        private.step()
        correct += (logits.argmax(dim=1) == y).sum().item()
        seen += y.size(0)
        bar.set_postfix(accuracy=100 * correct / seen, loss=loss.detach().item())
    assert "accuracy=" in bar.screen.getvalue()


def accuracy_averaged(private: Private) -> None:
    screen = io.StringIO()
    for x, y in private.loader:
        private.zero_grad()
        logits = private.model(x)
        functional.cross_entropy(logits, y).backward()
        private.step()
        _, predicted = torch.max(logits.detach(), 1)
        print(f"accuracy {(predicted == y).float().mean().item():.2%}", file=screen)
    assert "%" in screen.getvalue()


def kept_losses(private: Private) -> None:
    """Losses kept in a list, on the graph no longer, and averaged at the end."""
    losses = []
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        losses.append(loss.detach())
    print(f"{torch.stack(losses).mean():.3f}", file=io.StringIO())


def shown_tensor(private: Private) -> None:
    screen = io.StringIO()
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        print("loss:", loss, f"{loss:.3f}", loss.detach().item(), x.shape, file=screen)
    assert "tensor" in screen.getvalue()


LOOPS = (
    Loop("loss printed", network, LABELED, logged),
    Loop("running mean in a progress bar", network, LABELED, running_mean),
    Loop("mean weighted by batch sizes", network, LABELED, weighted_mean),
    Loop("accuracy counted", network, LABELED, accuracy),
    Loop("accuracy averaged", network, LABELED, accuracy_averaged),
    Loop("losses kept in a list", network, LABELED, kept_losses),
    Loop("tensors printed", network, LABELED, shown_tensor),
)
