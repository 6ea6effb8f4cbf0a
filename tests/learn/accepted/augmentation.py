"""Augmentation and regularization by chance: per example, or the same for all by a public coin."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..architectures.data import features, given, integers
from .loop import Loop, training

WIDTH, SIDE, CROP = 5, 6, 4


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 3))


def convolution(side: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * (side - 2) ** 2, 3))


def noise(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x + 0.1 * torch.randn_like(x)), y)


def scaling(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    factors = torch.empty(x.shape[0], 1).uniform_(0.8, 1.2)
    return functional.cross_entropy(model(x * factors), y)


def public_noise(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """One draw for all rows: a public constant of the step."""
    return functional.cross_entropy(model(x + 0.1 * torch.randn(WIDTH)), y)


def flips(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    coins = torch.rand(x.shape[0]) < 0.5
    return functional.cross_entropy(model(torch.where(coins[:, None, None, None], x.flip(-1), x)), y)


def crops(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """A crop of its own for each row, by gather."""
    left = torch.randint(0, SIDE - CROP + 1, (x.shape[0],))
    columns = left[:, None] + torch.arange(CROP)
    cut = x[..., :CROP, :].gather(3, columns[:, None, None, :].expand(-1, 1, CROP, -1))
    return functional.cross_entropy(model(cut), y)


def crops_indexed(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """A crop of its own for each row, by index arrays."""
    top = torch.randint(0, SIDE - CROP + 1, (x.shape[0], 1, 1))
    left = torch.randint(0, SIDE - CROP + 1, (x.shape[0], 1, 1))
    rows, columns = top + torch.arange(CROP)[None, :, None], left + torch.arange(CROP)[None, None, :]
    cut = x[torch.arange(x.shape[0])[:, None, None], 0, rows, columns].unsqueeze(1)
    return functional.cross_entropy(model(cut), y)


def erasing(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    kept = (torch.rand(x.shape) > 0.2).float()
    return functional.cross_entropy(model(x * kept), y)


def rotations(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """A rotation of its own for each row."""
    angles = (torch.rand(x.shape[0]) - 0.5) * 0.5
    zeros = torch.zeros_like(angles)
    first = torch.stack([angles.cos(), -angles.sin(), zeros], -1)
    second = torch.stack([angles.sin(), angles.cos(), zeros], -1)
    grid = functional.affine_grid(torch.stack([first, second], 1), list(x.shape), align_corners=False)
    return functional.cross_entropy(model(functional.grid_sample(x, grid, align_corners=False)), y)


def drawn(law: torch.distributions.Distribution) -> Callable[[nn.Module, Tensor, Tensor], Tensor]:
    """Return a loss of rows that are scaled by draws of a law."""

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(model(x * law.sample((x.shape[0], 1))), y)

    return loss


def normal(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x + torch.normal(0.0, 0.1, x.shape)), y)


def simplex(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Columns are weighed by a point of the simplex, drawn for each row."""
    weights = torch.distributions.Dirichlet(torch.ones(WIDTH)).sample((x.shape[0],))
    return functional.cross_entropy(model(x * weights), y)


class MaskedAutoencoder(nn.Module):
    """Patches of which a random part, another one for each row, is left out and predicted."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        rows, patches, width = x.shape
        order = torch.rand(rows, patches).argsort(dim=1)
        back = order.argsort(dim=1)
        kept = order[:, :3].unsqueeze(-1).repeat(1, 1, width)
        encoded = self.encoder(torch.gather(x, 1, kept))
        encoded = torch.cat([encoded, torch.zeros(rows, patches - 3, width)], 1)
        output = self.decoder(torch.gather(encoded, 1, back.unsqueeze(-1).repeat(1, 1, width)))
        hidden = torch.ones(rows, patches)
        hidden[:, :3] = 0
        hidden = torch.gather(hidden, 1, back)
        return (((output - x) ** 2).mean(-1) * hidden).sum(1) / hidden.sum(1)


def reconstruction(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).mean()


class LayerDrop(nn.Module):
    """A layer that is left out for all rows, by a coin that is public."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if self.training and torch.rand([]) < 0.3:
                continue
            x = x + torch.tanh(layer(x))
        return self.head(x)


class StochasticDepth(nn.Module):
    """A layer that is left out row by row, as in timm's `drop_path`."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            shape = (x.shape[0],) + (1,) * (x.ndim - 1)
            kept = x.new_empty(shape).bernoulli_(0.7).div_(0.7)
            x = x + kept * torch.tanh(layer(x))
        return self.head(x)


class Dropouts(nn.Module):
    """Every kind of dropout, as a module or a function."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(WIDTH, 8), nn.Linear(8, 3)
        self.plain, self.alpha = nn.Dropout(0.3), nn.AlphaDropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.plain(torch.tanh(self.first(x)))
        hidden = functional.dropout1d(hidden.unsqueeze(-1), 0.2, self.training).squeeze(-1)
        hidden = functional.dropout2d(hidden[..., None, None], 0.1, self.training).flatten(1)
        query = hidden.unsqueeze(1).reshape(-1, 2, 4)
        mixed = functional.scaled_dot_product_attention(query, query, query, dropout_p=0.2)
        return self.head(self.alpha(mixed.flatten(1)))


def cross_entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y)


VECTORS = given(features(WIDTH), integers(3))
IMAGES = given(features(1, SIDE, SIDE), integers(3))

LOOPS = (
    Loop("Gaussian noise on inputs", network, VECTORS, training(noise), random=True),
    Loop("random scale of each row", network, VECTORS, training(scaling), random=True),
    Loop("one public draw for all rows", network, VECTORS, training(public_noise), random=True),
    Loop("random flips", lambda: convolution(SIDE), IMAGES, training(flips), random=True),
    Loop("random crops, gathered", lambda: convolution(CROP), IMAGES, training(crops), random=True),
    Loop("random crops, indexed", lambda: convolution(CROP), IMAGES, training(crops_indexed), random=True),
    Loop("random rotations", lambda: convolution(SIDE), IMAGES, training(rotations), random=True),
    Loop("beta", network, VECTORS, training(drawn(torch.distributions.Beta(2.0, 2.0))), random=True),
    Loop("Laplace", network, VECTORS, training(drawn(torch.distributions.Laplace(1.0, 0.1))), random=True),
    Loop("binomial", network, VECTORS, training(drawn(torch.distributions.Binomial(5, 0.5))), random=True),
    Loop("normal of a size", network, VECTORS, training(normal), random=True),
    Loop("Dirichlet", network, VECTORS, training(simplex), random=True),
    Loop(
        "masked autoencoder", MaskedAutoencoder, given(features(6, 4)), training(reconstruction), random=True
    ),
    Loop("random erasing", network, VECTORS, training(erasing), random=True),
    Loop("layerdrop", LayerDrop, VECTORS, training(cross_entropy), random=True),
    Loop("stochastic depth", StochasticDepth, VECTORS, training(cross_entropy), random=True),
    Loop("dropout of every kind", Dropouts, VECTORS, training(cross_entropy), random=True),
)
