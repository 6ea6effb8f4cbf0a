"""Hooks, custom backward passes and gradients of gradients that read the whole batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.learn.mixing.loops import Loops, seeded
from tests.learn.mixing.rows import CLASSES, FEATURES
from tests.learn.runs import network

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("hooks")


@LOOPS.loop("register_hook")
def gradients_of_outputs_centred(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        outputs = private.model(x)
        outputs.register_hook(lambda gradient: gradient - gradient.mean(0))
        ENTROPY(outputs, y).backward()
        private.step()


@LOOPS.module("register_hook")
class GradientsOfActivationsScaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x))
        if h.requires_grad:
            h.register_hook(lambda gradient: gradient / gradient.norm())
        return self.last(h)


@LOOPS.loop("register_hook")
def gradient_of_the_loss_scaled(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        value = loss.detach()
        loss.register_hook(lambda gradient, value=value: gradient / value)
        loss.backward()
        private.step()


def _centred(module: nn.Module, inputs: Any, outputs: Any) -> Any:
    return (inputs[0] - inputs[0].mean(0),)


def _scaled(module: nn.Module, outputs: Any) -> Any:
    return (outputs[0] / outputs[0].abs().max(),)


def backward_hooked() -> nn.Module:
    """Return a network whose first activation centres its gradients over the batch."""
    model = network()
    model[1].register_full_backward_hook(_centred)
    return model


def backward_pre_hooked() -> nn.Module:
    """Return a network whose first activation scales its gradients by their largest of the batch."""
    model = network()
    model[1].register_full_backward_pre_hook(_scaled)
    return model


def forward_hooked() -> nn.Module:
    """Return a network that centres its first activation over the batch."""
    model = network()
    model[1].register_forward_hook(lambda module, inputs, output: output - output.mean(0))
    return model


def forward_pre_hooked() -> nn.Module:
    """Return a network that adds to the inputs of every row those of the next."""
    model = network()
    model[0].register_forward_pre_hook(lambda module, inputs: (inputs[0] + inputs[0].roll(1, 0),))
    return model


def usual(private: Any) -> None:
    """Run the usual loop."""
    for x, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("[a-z_]*backward_hook[a-z_]*", model=backward_hooked)
def backward_hook_of_a_module(private: Any) -> None:
    usual(private)


@LOOPS.loop("[a-z_]*backward_(?:pre_)?hook[a-z_]*", model=backward_pre_hooked)
def backward_pre_hook_of_a_module(private: Any) -> None:
    usual(private)


@LOOPS.loop("sub", model=forward_hooked)
def forward_hook_of_a_module(private: Any) -> None:
    usual(private)


@LOOPS.loop("roll", model=forward_pre_hooked)
def forward_pre_hook_of_a_module(private: Any) -> None:
    usual(private)


class CentredGradient(torch.autograd.Function):
    """The identity, whose gradient is centred over the batch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] - gradients[0].mean(0)


@LOOPS.loop("CentredGradient|apply")
def backward_pass_of_ones_own(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        ENTROPY(CentredGradient.apply(private.model(x)), y).backward()
        private.step()


@LOOPS.loop("grad|norm|div|linalg_vector_norm")
def adversarial_inputs_of_a_common_length(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x.requires_grad_()
        (gradient,) = torch.autograd.grad(ENTROPY(private.model(x), y), x)
        ENTROPY(private.model((x + 0.5 * gradient / gradient.norm()).detach()), y).backward()
        private.step()


@LOOPS.loop("grad|square|pow", model=lambda: seeded(lambda: nn.Linear(FEATURES, CLASSES)))
def penalty_on_the_gradient_of_the_mean_loss(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        outputs = private.model(x)
        loss = ENTROPY(outputs, y)
        (gradient,) = torch.autograd.grad(loss, outputs, create_graph=True)
        (loss + gradient.sum(0).square().sum() * 10).backward()
        private.step()
