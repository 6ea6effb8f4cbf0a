"""How often a model is right, in all and in each class and group; and how well its members are recognized.

`Counts` has, for each group and class, how many rows were answered wrongly and rightly. An owner counts them;
the interval of a share is then that of Clopper and Pearson (1934), about rows drawn as the test rows were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dalenius.attacks import roc
from dalenius.attacks.membership import LEAST
from dalenius.attacks.result import Attack
from dalenius.attacks.roc import Floats, Rate
from dalenius.losses.loss import Loss
from dalenius.report.study.data import Data, Ints
from dalenius.report.study.splitting import Part
from dalenius.report.study.training import ROWS, probabilities

Counts = NDArray[np.int64]
"""By group, class, and 0 for wrong or 1 for right."""
Shared = Callable[[Counts], Rate | None]
"""The share of right answers in some of the counts, if it is known."""
CONFIDENCE = 0.95
"""Of the interval of a share."""
ASKED = 5000
"""Members, and others, that an attack is judged on at most."""


@dataclass(frozen=True)
class Scores:
    """Shares of right answers; None where there is nothing to share."""

    accuracy: Rate | None
    by_class: tuple[Rate | None, ...]
    by_group: tuple[Rate | None, ...]


@dataclass(frozen=True)
class Membership:
    """How well a loss threshold tells members from others; `most` is what the loss allows on average."""

    area: Rate
    most: float | None
    attack: Attack
    lira: Rate | None = None
    """The area of LiRA, where shadow models were trained."""


def predictions(model: nn.Module, rows: Part, *, at_once: int = ROWS) -> Ints:
    """The likeliest class of each row."""
    return probabilities(model, rows.x, at_once=at_once).argmax(axis=1).astype(np.int64)


def counted(data: Data, rows: Part, said: Ints) -> Counts:
    """Wrong and right answers by group and class; all rows are one group where there are none."""
    found = np.zeros((max(1, len(data.groups)), len(data.classes), 2), dtype=np.int64)
    truth = rows.y.numpy()
    group = np.zeros(len(truth), dtype=np.int64) if rows.group is None else rows.group
    np.add.at(found, (group, truth, (said == truth).astype(np.int64)), 1)
    return found


def scores(data: Data, counts: Counts, shared: Shared) -> Scores:
    """Shares of right answers."""
    return Scores(
        shared(counts),
        tuple(shared(counts[:, i]) for i in range(len(data.classes))),
        tuple(shared(counts[i]) for i in range(len(data.groups))),
    )


def exactly(counts: Counts) -> Rate | None:
    """The share of right answers as counted."""
    wrong, right = (int(counts[..., i].sum()) for i in (0, 1))
    return roc.rate(right, right + wrong, confidence=CONFIDENCE) if right + wrong else None


def recognized(model: nn.Module, train: Part, test: Part, loss: Loss | None) -> Membership:
    """Attack a model by its loss on rows it was trained on and on test rows, both in random order."""
    inside, outside = (_liking(model, part) for part in (train, test))
    attack = roc.judge("membership by loss threshold", inside, outside, confidence=CONFIDENCE, seed=0)
    most = None if loss is None else roc.most_area(loss)
    # To be among a fixed number of rows is to be there in place of another one.
    bounded = attack if most is None else replace(attack, bound=2 * most - 1)
    return Membership(roc.measured_area(inside, outside, confidence=CONFIDENCE), most, bounded)


def _liking(model: nn.Module, rows: Part) -> Floats:
    chances, truth = probabilities(model, rows.x[:ASKED]), rows.y[:ASKED].numpy()
    own = chances[np.arange(len(truth)), truth]
    return np.asarray(np.log(np.maximum(own, LEAST)))
