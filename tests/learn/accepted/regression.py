"""Regression: the usual distances, likelihoods and quantiles."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..architectures.data import features, given
from .loop import Loop, LossOf, training

WIDTH = 5
QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def network(outputs: int = 2) -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, outputs))


ROWS = given(features(WIDTH), features(2))


def squares(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(model(x), y)


def squares_by_hand(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return ((model(x) - y) ** 2).mean()


def halved_sum(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return 0.5 * (model(x) - y).pow(2).sum(dim=-1).mean(dim=0)


def absolute(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return nn.L1Loss()(model(x), y)


def huber(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.huber_loss(model(x), y, delta=0.5)


def smooth(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.smooth_l1_loss(model(x), y, reduction="sum")


def gaussian(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    mean, raw = model(x).chunk(2, dim=1)
    return functional.gaussian_nll_loss(mean, y[:, :1], functional.softplus(raw) + 1e-3)


def likelihood_by_hand(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    mean, log_variance = model(x)[:, 0], model(x)[:, 1]
    return (0.5 * (log_variance + (y[:, 0] - mean) ** 2 / log_variance.exp())).mean()


def poisson(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.poisson_nll_loss(model(x), y.abs().floor())


def pinball(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    errors = y[:, :1] - model(x)
    return torch.maximum(QUANTILES * errors, (QUANTILES - 1) * errors).mean()


def cosine(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return (1 - functional.cosine_similarity(model(x), y, dim=-1)).mean()


def norms(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return torch.linalg.vector_norm(model(x) - y, dim=1).mean()


def log_cosh(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    errors = model(x) - y
    return (errors + functional.softplus(-2.0 * errors) - 0.6931).mean(1).mean()


def fixed_points(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The nearest of a few constants counts, and no other row."""
    return torch.cdist(model(x) - y, torch.eye(2)).amin(1).mean()


class Lazy(nn.Module):
    """Builds its constants when it is called for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()
        self.scale: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.scale is None:
            self.scale = torch.linspace(0.5, 1, x.shape[1])
        return self.inner(x * self.scale)


def regression(name: str, loss_of: LossOf, *, build: Callable[[], nn.Module] = network) -> Loop:
    return Loop(f"regression, {name}", build, ROWS, training(loss_of))


LOOPS = (
    regression("mean squares", squares),
    regression("mean squares by hand", squares_by_hand),
    regression("half squares", halved_sum),
    regression("absolute errors", absolute),
    regression("Huber", huber),
    regression("smooth L1, summed", smooth),
    regression("Gaussian likelihood", gaussian),
    regression("Gaussian likelihood by hand", likelihood_by_hand),
    regression("Poisson likelihood", poisson),
    regression("quantiles", pinball, build=lambda: network(3)),
    regression("cosine", cosine),
    regression("norms", norms),
    regression("log cosh", log_cosh),
    regression("distances to fixed points", fixed_points),
    regression("constants built at the first call", squares, build=Lazy),
)
