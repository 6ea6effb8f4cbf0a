"""Models of disjoint shards: whatever each of them is, one unit has a say in one of them only.

`fit` is called once for each shard and need not be private. It must depend on its shard alone: what it keeps
from call to call, or reads elsewhere of the same people, is not covered. What is random in it starts from a
seed of its own (`chance`). A shard on which it fails has a model that never answers; whether it failed is as
private as what it gives. Try it on public rows first. Each model is copied as soon as it is made: `fit` may
give one object for several shards, such as a fallback for shards of one class, which is private too.

Models are as secret as the rows, their duration and what `fit` prints too. Only answers of a `Session` leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from types import ModuleType
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.models import Answering, Answers, Outputs, at_rest
from dalenius.learn.quiet import alone, chance, quiet
from dalenius.learn.rows import Rows
from dalenius.learn.shards import shards
from dalenius.privacy import numbers
from dalenius.release import Cell

MOST = 100_000
"""Models at most."""
ANEW = "Let fit make a model each time, such as lambda x, y: LogisticRegression().fit(x, y)."


class Ensemble:
    """Models, of each unit at most one; that these were trained so is the caller's promise.

    `Ensemble.train` makes them, and promises it itself.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        numbers.count(len(models), "the number of models", most=MOST)
        self._models = list(models)
        made = [id(one) for one in self._models if one is not None]
        if len(set(made)) < len(made):
            raise NotSound(
                "Several of the models are one object, which votes for each of them.",
                remedy=ANEW,
            )
        self._form: object = None
        self.by_unit, self.tainted = True, noise.tainted()
        self.how = f"{len(self._models)} models, each unit in one of them by the caller's promise"

    @classmethod
    def train(
        cls,
        fit: Callable[..., Any],
        dataset: Any,
        *,
        models: int,
        units: Any = None,
        key: bytes | None = None,
    ) -> Ensemble:
        """A model of each shard of (x, y), by `fit(x, y)`; of a data set, by `fit(rows)`.

        `units` says whose each row is; without, each row is one. The same key gives units the same shards.
        """
        if not callable(fit):
            raise InvalidArgument("fit must be a function.", remedy="Pass fit(x, y), which gives a model.")
        whose = getattr(fit, "__self__", None)
        if whose is not None and not isinstance(whose, type | ModuleType):
            raise NotSound(
                "fit is a method of one object, which would be trained anew for every shard.",
                remedy=ANEW,
            )
        count = numbers.count(models, "models", most=MOST)
        rows = Rows(dataset)
        parts = shards(len(rows), count, units=units, key=key)
        made = cls([None] * count)
        made._models = [_fitted(fit, rows, part) for part in parts]
        made._form = None if rows.by_number else _form(rows.form())
        how = "row in one of them, by a coin" if units is None else "unit in one of them, by a keyed hash"
        made.how, made.by_unit = f"{count} models, each {how}", units is not None
        return made

    def __len__(self) -> int:
        return len(self._models)

    def __repr__(self) -> str:
        return f"<Ensemble of {self.how}>"

    def check(self, questions: Any) -> None:
        """Refuse questions of another form than the rows that models were trained on."""
        if self._form is not None and _form(questions) != self._form:
            raise InvalidArgument(
                "A question must have the form of a row of the inputs.",
                remedy="Ask with an array of the shape and kind that the models were trained on.",
            )

    def answers(
        self, questions: Any, size: int, outputs: Outputs | None, classes: Sequence[Cell]
    ) -> list[Answers]:
        """What each model says to so many questions: nothing where it fails."""
        with alone():
            return [_said(model, questions, size, outputs, classes) for model in self._models]


def _fitted(fit: Callable[..., Any], rows: Rows, part: Any) -> Any:
    """None where it fails."""
    with alone(), quiet(), np.errstate(all="ignore"), chance():
        try:
            given = rows.part(part)
            return _copied(fit(given) if rows.by_number else fit(*given))
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None


def _copied(model: Any) -> Any:
    """The model as it is now, which later shards do not change; as it is where it cannot be copied."""
    try:
        return deepcopy(model)
    except Exception:
        return model


def _said(model: Any, questions: Any, size: int, outputs: Outputs | None, classes: Sequence[Cell]) -> Answers:
    nothing = Answers.none(size, len(classes))
    with quiet(), np.errstate(all="ignore"), chance():
        try:
            with at_rest(model):
                found = Answering(model, outputs, classes)(questions)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return nothing
    return found if len(found.chosen) == size else nothing


def _form(container: Any) -> object:
    """The kind of a container and the shape of its rows."""
    if isinstance(container, Mapping):
        return {name: _form(one) for name, one in container.items()}
    if hasattr(container, "iloc"):
        return tuple(map(str, getattr(container, "columns", ())))
    return type(container).__name__, tuple(getattr(container, "shape", ()))[1:]
