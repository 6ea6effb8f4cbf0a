"""What private training must equal: one ordinary backward pass per example, each a batch of one.

    gᵢ = ∇ loss(model(xᵢ), yᵢ),    answer = (1/m) Σᵢ min(1, C / ‖gᵢ‖) gᵢ

over the trainable parameters, a parameter of several names once under its first. A parameter that no
loss depends on has gradient zero.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .architectures.architecture import Loss

Gradients = dict[str, Tensor]


def example(inputs: tuple[Tensor, ...], i: int, *, batch_dim: int = 0) -> tuple[Tensor, ...]:
    """Example i as a batch of one; the last of the inputs are the targets, with their batch in front."""
    *arguments, targets = inputs
    return (*(x.narrow(batch_dim, i, 1) for x in arguments), targets.narrow(0, i, 1))


def losses(model: nn.Module, inputs: tuple[Tensor, ...], loss: Loss) -> Tensor:
    """The loss of each example of a batch."""
    *arguments, targets = inputs
    return loss(model(*arguments), targets)


def per_example_gradients(
    model: nn.Module, inputs: tuple[Tensor, ...], loss: Loss, *, batch_dim: int = 0
) -> Gradients:
    """Name → (n, *shape)."""
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    rows: dict[str, list[Tensor]] = {name: [] for name in trained}
    for i in range(len(inputs[-1])):
        (value,) = losses(model, example(inputs, i, batch_dim=batch_dim), loss)
        gradients = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
        for (name, parameter), gradient in zip(trained.items(), gradients, strict=True):
            rows[name].append(_dense(gradient, parameter))
    return {name: torch.stack(row) for name, row in rows.items()}


def _dense(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    if gradient is None:
        return torch.zeros_like(parameter)
    return gradient.to_dense() if gradient.is_sparse else gradient


def norms(gradients: Gradients) -> Tensor:
    """The norm of each example's gradient over all parameters together, (n,)."""
    squares = [gradient.reshape(len(gradient), -1).square().sum(1) for gradient in gradients.values()]
    return torch.stack(squares).sum(0).sqrt()


def clipped_mean(gradients: Gradients, *, clip: float, batch_size: float | None = None) -> Gradients:
    """The sum of the examples' gradients, each scaled to norm at most `clip`, over the batch size.

    A gradient of norm zero stays what it is. `batch_size` is the expected one where the batch was drawn
    by chance; otherwise the examples are counted.
    """
    sizes = norms(gradients)
    factors = torch.where(sizes > clip, clip / sizes, 1.0)
    count = len(sizes) if batch_size is None else batch_size
    return {
        name: torch.einsum("n,n...->...", factors, gradient) / count for name, gradient in gradients.items()
    }
