"""Branches on values of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops
from tests.learn.mixing.rows import damaged

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("control flow on values")


@LOOPS.loop("bool|isfinite", data=damaged)
def loss_that_is_not_finite_replaced_by_zero(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        if not torch.isfinite(loss):
            loss = torch.zeros((), requires_grad=True)
        loss.backward()
        private.step()


@LOOPS.loop("max|bool")
def inputs_rescaled_if_there_is_an_outlier(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        if x.abs().max() > 5:
            x = 5 * x / x.abs().max()
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("item")
def batch_skipped_by_its_loss(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        if loss.item() > 1.2:
            continue
        loss.backward()
        private.step()


@LOOPS.loop("float")
def loss_halved_by_its_value(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        if float(loss.detach()) > 1.2:
            loss = loss / 2
        loss.backward()
        private.step()


@LOOPS.loop("lt|bool")
def loss_chosen_by_a_tensor(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        loss = loss if loss < 1.2 else 0.1 * loss
        loss.backward()
        private.step()


@LOOPS.criterion("gt|where")
def losses_chosen_by_their_mean(outputs: Tensor, y: Tensor) -> Tensor:
    losses = functional.cross_entropy(outputs, y, reduction="none")
    return torch.where(losses.mean() > 1.2, losses, losses.square()).mean()


@LOOPS.criterion("any|bool")
def loss_doubled_if_a_class_is_present(outputs: Tensor, y: Tensor) -> Tensor:
    loss = ENTROPY(outputs, y)
    if (y == 2).any():
        loss = 2 * loss
    return loss


@LOOPS.criterion("tolist")
def loss_doubled_if_a_class_is_in_a_list(outputs: Tensor, y: Tensor) -> Tensor:
    return ENTROPY(outputs, y) * (2 if 2 in y.tolist() else 1)


@LOOPS.criterion("numpy")
def loss_steered_through_numpy(outputs: Tensor, y: Tensor) -> Tensor:
    losses = functional.cross_entropy(outputs, y, reduction="none")
    if np.mean(losses.detach().cpu().numpy()) > 1.2:
        return losses.square().mean()
    return losses.mean()


@LOOPS.criterion("item")
def loss_smoothed_by_accuracy(outputs: Tensor, y: Tensor) -> Tensor:
    accuracy = (outputs.argmax(1) == y).float().mean().item()
    return functional.cross_entropy(outputs, y, label_smoothing=max(0.0, 0.5 - accuracy))


@LOOPS.loop("shape", sizes=(5, 2))
def small_batch_weighs_less(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        if x.shape[0] < 4:
            loss = 0.1 * loss
        loss.backward()
        private.step()


@LOOPS.loop("len", sizes=(5, 2))
def small_batch_skipped(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        if len(x) < 4:
            continue
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("size|shape", sizes=(5, 4))
def odd_row_left_out(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        if x.size(0) % 2:
            x, y = x[1:], y[1:]
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("item|lr|learning rate")
def learning_rate_by_the_loss(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        loss.backward()
        for group in private.optimizer.param_groups:
            group["lr"] = 0.5 / (1 + loss.item())
        private.step()
