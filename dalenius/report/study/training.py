"""The runs: one recipe, with privacy or without, from the same weights and for as many steps.

Without privacy the sampler and the steps are the same; nothing is clipped and there is no noise. "Clipping
alone" is a private run with next to no noise, which shows how much of what is lost is lost to clipping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dalenius.errors import InvalidArgument
from dalenius.learn.private import Private
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.report.study.data import Data
from dalenius.report.study.models import Maker, made
from dalenius.report.study.splitting import Part
from dalenius.report.study.trials import Trial, Trials

LARGEST, PARTS = 2048, 10
"""A batch has a tenth of the rows where nothing else is said, and at most so many."""
ALONE = Fraction(1, 1000)
"""The noise multiplier of a run whose clipping is of interest."""
ROWS = 4096
"""That are asked for at once."""


@dataclass(frozen=True)
class Recipe:
    """What all runs of a study share; `size` is the number of training rows that rates follow from."""

    maker: Maker
    size: int
    batch_size: int
    steps: int
    rate: float
    seed: int
    delta: Fraction

    @staticmethod
    def of(
        maker: Maker,
        size: int,
        *,
        batch_size: int | None,
        epochs: Number,
        rate: Number,
        seed: int,
        delta: Fraction,
    ) -> Recipe:
        """By the number of training rows; refused where a batch is larger."""
        batch = max(1, min(LARGEST, size // PARTS)) if batch_size is None else batch_size
        if numbers.count(batch, "batch_size") > size:
            raise InvalidArgument(
                f"A batch of {batch} is larger than the {size} rows to train on.",
                remedy=f"Choose batch_size up to {size}, or pass more rows.",
            )
        steps = -int(-numbers.positive(epochs, "epochs") * size // batch)
        pace = float(numbers.positive(rate, "rate"))
        return Recipe(maker, size, batch, steps, pace, numbers.count(seed, "seed", least=0), delta)

    def model(self, data: Data) -> tuple[nn.Module, torch.optim.Optimizer]:
        """A new model, always with the same weights, and its optimizer."""
        model = made(self.maker, data, self.seed)
        return model, torch.optim.Adam(model.parameters(), lr=self.rate)

    def private(
        self,
        data: Data,
        train: Part,
        *,
        clip: Fraction,
        epsilon: Fraction | None = None,
        noise_multiplier: Fraction | None = None,
    ) -> Private:
        """A private run that has not begun: its noise from epsilon, or as given."""
        model, optimizer = self.model(data)
        return Private(
            model,
            optimizer,
            (train.x, train.y),
            batch_size=self.batch_size,
            steps=self.steps,
            clip=clip,
            epsilon=epsilon,
            delta=self.delta,
            noise_multiplier=noise_multiplier,
            public_size=self.size,
            synthetic=_rows(data),
        )


def planned(recipe: Recipe, data: Data, train: Part, trials: Trials) -> Iterator[tuple[Trial, Private]]:
    """Each private run of a study, not begun."""
    noise: dict[Fraction, Fraction] = {}
    for trial in trials.private:
        known = noise.get(trial.epsilon)
        # The same sampling: the same noise keeps the same ε, whatever the bound.
        asked = {"epsilon": trial.epsilon} if known is None else {"noise_multiplier": known}
        private = recipe.private(data, train, clip=trial.clip, **asked)
        noise[trial.epsilon] = private.noise_multiplier
        yield trial, private


def rehearsed(recipe: Recipe, data: Data) -> None:
    """A step on made-up rows: what cannot be trained privately is refused before anything is charged."""
    x, y = (torch.stack(parts) for parts in zip(*_rows(data), strict=True))
    short = replace(recipe, size=len(y), batch_size=1, steps=1)
    one = Fraction(1)
    train_privately(short.private(data, Part(x, y, None), clip=one, noise_multiplier=one))


def train_privately(run: Private) -> nn.Module:
    """Run it to its end."""
    with torch.random.fork_rng(devices=[]):
        for inputs, labels in run.batches():
            run.zero_grad()
            nn.functional.cross_entropy(run.model(inputs), labels).backward()
            run.step()
    return run.model.inner


def train_plainly(recipe: Recipe, data: Data, train: Part) -> nn.Module:
    """The same without privacy: samples of the same law, sums divided by their expected size."""
    model, optimizer = recipe.model(data)
    coins, share = torch.Generator().manual_seed(recipe.seed), recipe.batch_size / recipe.size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        for _ in range(recipe.steps):
            rows = torch.rand(len(train), generator=coins) < share
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(train.x[rows]), train.y[rows], reduction="sum")
            (loss / recipe.batch_size).backward()
            optimizer.step()
    return model


def probabilities(model: nn.Module, x: Tensor, *, at_once: int = ROWS) -> NDArray[np.float64]:
    """What a model says of rows, one column a class; no number counts as 0.

    With one row at a time an answer is a function of its row, to the last bit.
    """
    model.eval()
    with torch.no_grad():
        answers = [model(some).double() for some in x.split(at_once)] if len(x) else []
    if not answers:
        return np.zeros((0, 1))
    return torch.cat(answers).nan_to_num().softmax(dim=1).numpy()


def _rows(data: Data) -> list[tuple[Tensor, Tensor]]:
    """Made-up rows to rehearse with: of the shape of a row, and of nobody."""
    bits = torch.Generator().manual_seed(0)
    return [(torch.randn(data.shape, generator=bits), torch.tensor(i % 2)) for i in (0, 0, 1, 1)]
