"""Inputs that are changed in place, and state that a loop keeps outside of the model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops
from tests.learn.mixing.rows import CLASSES

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("in-place state")


@LOOPS.loop("index_copy|index_put|setitem")
def centres_of_classes_in_a_table(private: Any) -> None:
    table = torch.zeros(CLASSES, CLASSES)
    for x, y in private.loader:
        private.zero_grad()
        outputs = private.model(x)
        table.index_copy_(0, y, outputs.detach())
        (ENTROPY(outputs, y) + functional.mse_loss(outputs, table[y])).backward()
        private.step()


@LOOPS.loop("sub")
def inputs_centred_in_place(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x.sub_(x.mean(0))
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("x.data")
def inputs_centred_through_data(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x.data = x.data - x.data.mean(0)
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("setitem|getitem|add")
def first_row_written_over_the_second(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x[1] = x[0] + x[1]
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("add|iadd|setitem|getitem")
def neighbours_added_in_place(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x[1:] += 0.5 * x[:-1].clone()
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("div|truediv|item")
def moving_scale_of_the_loss(private: Any) -> None:
    scale = 1.0
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        scale = 0.9 * scale + 0.1 * loss.item()
        (loss / scale).backward()
        private.step()
