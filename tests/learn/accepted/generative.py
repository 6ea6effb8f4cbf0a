"""Generative models: random numbers in the loop and in the model, one draw per example."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.learn.private import Private

from ..architectures.data import features, given
from .loop import Loop, training

WIDTH, LATENT, TIMES = 6, 2, 10


class Autoencoder(nn.Module):
    """A variational autoencoder; `how` says how the noise of the reparameterisation is drawn."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.encoder, self.how = nn.Linear(WIDTH, 8), how
        self.mean, self.log_variance = nn.Linear(8, LATENT), nn.Linear(8, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 8), nn.ReLU(), nn.Linear(8, WIDTH))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = torch.relu(self.encoder(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        scale = torch.exp(0.5 * log_variance)
        if self.how == "distribution":
            z = torch.distributions.Normal(mean, scale, validate_args=False).rsample()
        else:
            noise = torch.randn_like(scale) if self.how == "like" else torch.randn(mean.shape)
            z = mean + noise * scale
        return self.decoder(z), mean, log_variance


def evidence(model: nn.Module, x: Tensor) -> Tensor:
    """The evidence bound as in the example of PyTorch: both terms summed over the batch."""
    decoded, mean, log_variance = model(x)
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return functional.mse_loss(decoded, x, reduction="sum") + divergence


def evidence_averaged(model: nn.Module, x: Tensor) -> Tensor:
    decoded, mean, log_variance = model(x)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1)
    return ((decoded - x).square().mean(1) + 0.1 * divergence).mean()


class Denoiser(nn.Module):
    """Predicts the noise of a step of a diffusion, from the noisy row and the step."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.Embedding(TIMES, 4)
        self.inner = nn.Sequential(nn.Linear(WIDTH + 4, 8), nn.SiLU(), nn.Linear(8, WIDTH))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.inner(torch.cat([x, self.steps(t)], dim=1))


SCHEDULE = torch.cumprod(1 - torch.linspace(1e-4, 0.2, TIMES), dim=0)


def diffusion(model: nn.Module, x: Tensor) -> Tensor:
    t = torch.randint(0, TIMES, (x.shape[0],))
    noise = torch.randn_like(x)
    kept = SCHEDULE[t].unsqueeze(-1)
    noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
    return functional.mse_loss(model(noisy, t), noise)


def diffusion_weighted(model: nn.Module, x: Tensor) -> Tensor:
    """The weight of an example is that of its own random step."""
    t = torch.randint(TIMES, size=(x.shape[0],))
    kept = SCHEDULE.gather(0, t).view(-1, 1)
    noise = torch.randn(x.shape)
    predicted = model(kept.sqrt() * x + (1 - kept).sqrt() * noise, t)
    losses = (predicted - noise).square().flatten(1).mean(1)
    return (losses * (1 + kept.squeeze(1))).mean()


def score_matching(model: nn.Module, x: Tensor) -> Tensor:
    noise = 0.3 * torch.randn_like(x)
    return (model(x + noise) + noise / 0.09).square().sum(1).mean() / 2


def discriminator() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))


def adversarial(private: Private) -> None:
    """The generator sees real rows through the released weights of the discriminator only."""
    generator = nn.Sequential(nn.Linear(LATENT, 8), nn.ReLU(), nn.Linear(8, WIDTH))
    optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for (x,) in private.loader:
        private.zero_grad()
        fake = generator(torch.randn(x.shape[0], LATENT)).detach()
        loss = criterion(private.model(x), torch.ones(x.shape[0], 1))
        loss = loss + criterion(private.model(fake), torch.zeros(x.shape[0], 1))
        loss.backward()
        private.step()

        released = copy.deepcopy(private.model.inner).requires_grad_(False)
        optimizer.zero_grad()
        criterion(released(generator(torch.randn(16, LATENT))), torch.ones(16, 1)).backward()
        optimizer.step()


def critic(private: Private) -> None:
    """A Wasserstein critic: clipped weights, and a fake row beside each real one."""
    generator = nn.Sequential(nn.Linear(LATENT, 8), nn.ReLU(), nn.Linear(8, WIDTH))
    for (x,) in private.loader:
        private.zero_grad()
        with torch.no_grad():
            fake = generator(torch.randn(x.shape[0], LATENT))
        loss = private.model(fake).mean() - private.model(x).mean()
        loss.backward()
        private.step()


ROWS = given(features(WIDTH))

LOOPS = (
    Loop("VAE, randn_like", lambda: Autoencoder("like"), ROWS, training(evidence), random=True),
    Loop(
        "VAE, randn of a shape", lambda: Autoencoder("shape"), ROWS, training(evidence_averaged), random=True
    ),
    Loop(
        "VAE, Normal.rsample",
        lambda: Autoencoder("distribution"),
        ROWS,
        training(evidence_averaged),
        random=True,
    ),
    Loop("diffusion", Denoiser, ROWS, training(diffusion), random=True),
    Loop("diffusion with weights of steps", Denoiser, ROWS, training(diffusion_weighted), random=True),
    Loop("score matching", lambda: nn.Linear(WIDTH, WIDTH), ROWS, training(score_matching), random=True),
    Loop("GAN", discriminator, ROWS, adversarial, random=True),
    Loop("Wasserstein critic", discriminator, ROWS, critic, random=True),
)
