"""Membership inference by shadow models: LiRA against each setting of an owner's study.

The shadow models of a setting are trained by its recipe, as many rows each as the model under attack, drawn
from all rows of the study, those to test on too. Rows take turns in being left out, so each is among the rows
of some shadow models and not of others, two or more either way; `attacks.likelihood` learns from that. Which
rows the model under attack was trained on decides nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dalenius.attacks.likelihood import lira_scores
from dalenius.attacks.membership import Predict, Records
from dalenius.attacks.roc import Rate, measured_area
from dalenius.attacks.shadow import Shadows
from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers
from dalenius.report.study.measuring import ASKED, CONFIDENCE
from dalenius.report.study.splitting import Part
from dalenius.report.study.training import probabilities
from dalenius.report.study.trials import Told

Trained = Callable[[Part], nn.Module]
"""A training of one setting, on some rows."""
TURNS = 2
"""How often each row is on the smaller side, at least: a spread needs two."""


@dataclass(frozen=True)
class Shadowing:
    """How many shadow models each setting has, and the seed that draws their rows."""

    train: Part
    test: Part
    count: int
    seed: int

    def __post_init__(self) -> None:
        numbers.count(self.count, "shadows", least=0, most=10_000)
        fewest = math.ceil(TURNS * self._size / min(len(self.train), len(self.test)))
        if 0 < self.count < fewest:
            raise InvalidArgument(
                f"{self.count} shadow models are too few for each row to be in some and out of others.",
                remedy=f"Ask for {fewest} shadow models or more; with a test_share of 0.5, for {2 * TURNS}.",
            )

    @property
    def _size(self) -> int:
        return len(self.train) + len(self.test)

    def attack(self, target: nn.Module, trained: Trained, told: Told, name: str) -> Rate | None:
        """The area under LiRA's curve, if there are to be shadow models."""
        if not self.count:
            return None
        x, y = (torch.cat(both) for both in ((self.train.x, self.test.x), (self.train.y, self.test.y)))
        members = min(ASKED, len(self.train))
        others = min(ASKED, len(self.test))
        asked = np.r_[:members, len(self.train) : len(self.train) + others]
        models, inside = [], []
        for number, rows in enumerate(self._turns(), 1):
            told(f"{name}, shadow model {number} of {self.count}")
            models.append(_predict(trained(Part(x[torch.from_numpy(rows)], y[torch.from_numpy(rows)], None))))
            inside.append(rows[asked])
        records = Records(x[asked].double().numpy(), y[asked].numpy())
        scores = lira_scores(_predict(target), Shadows(records, tuple(models), np.stack(inside)))
        return measured_area(scores[:members], scores[members:], confidence=CONFIDENCE)

    def _turns(self) -> Iterator[NDArray[np.bool_]]:
        """The rows of each shadow model: the smaller side goes around, so each row is on it in its turn."""
        chance, fewer = torch.Generator().manual_seed(self.seed), min(len(self.train), len(self.test))
        orders = math.ceil(self.count * fewer / self._size)
        order = np.concatenate([torch.randperm(self._size, generator=chance).numpy() for _ in range(orders)])
        for number in range(self.count):
            side = np.zeros(self._size, dtype=bool)
            side[order[number * fewer : (number + 1) * fewer]] = True
            yield ~side if len(self.test) == fewer else side


def _predict(model: nn.Module) -> Predict:
    def answers(features: NDArray[np.float64]) -> NDArray[np.float64]:
        rows: Tensor = torch.from_numpy(features).float()
        return probabilities(model, rows)

    return answers
