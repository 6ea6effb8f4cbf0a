"""`Teachers`: models of disjoint parts of the data, which vote.

A teacher is made from its own part, and from coins of its own. Copies of one model are trained one by one;
generators that libraries share (torch's, numpy's, Python's) are sown anew for each, so that what one of them
draws does not depend on how much another one, with other data, has drawn. What is fitted to data, such as a
scale of columns, belongs into the model: data that were prepared together are behind every teacher at once.

Every teacher has one vote on every query. One that has no data, cannot be trained on its part, raises, or
says no class, votes for class 0: no error, warning or print tells of a part. So a model that never works
would not be noticed, and one is trained on made-up rows first, which queries are tried on as well. A record
whose label is no class is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.pate.rehearsing import rehearse, tried
from dalenius.learn.pate.rows import Ints, estimator, labels_of, predicted, taken
from dalenius.learn.quiet import FAILURES, SEEDS, alone, chance, quiet
from dalenius.learn.shards import shard_numbers
from dalenius.losses.pate.votes import MOST_TEACHERS
from dalenius.mechanisms.contributions import size
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers

TRAINING, VOTING = 1, 2
"""The first numbers of the paths of streams that seeds are drawn from."""
FIXED = 0
"""The class of a vote that could not be had."""


class Teachers:
    """So many copies of `model`, each to be trained on its own part of `data`, rows and their labels.

    `model` has `fit` and `predict` as in scikit-learn, or is a torch module; labels are 0 to `classes` − 1.
    `units` has the id of each row's unit, where one unit has several rows.
    """

    def __init__(
        self,
        model: Any,
        data: tuple[Any, Any],
        *,
        count: int,
        classes: int,
        units: Any = None,
        synthetic: tuple[Any, Any] | None = None,
    ) -> None:
        self.count = numbers.count(count, "count", least=2, most=MOST_TEACHERS)
        self.classes = numbers.count(classes, "classes", least=2)
        self.by_unit = units is not None
        if getattr(model, "account", None) is not None:
            raise InvalidArgument(
                "A teacher is never charged for: a session is, and entries of each would tell of its part.",
                remedy="Leave account out of the model.",
            )
        self._model = copy.deepcopy(estimator(model))
        self._rows, labels = _pair(data, "data")
        if size(labels, "labels") != size(self._rows, "rows"):
            raise InvalidArgument("Rows and labels differ in length.", remedy="Pass one label for each row.")
        self._labels = labels_of(labels, self.classes)
        self._key = StreamKey.fresh()
        self._parts = shard_numbers(len(self._labels), self.count, units=units, key=self._key.secret)
        made_up = None if synthetic is None else _pair(synthetic, "synthetic")
        self._trial = rehearse(self._model, self._rows, self.classes, made_up)
        self._trained: list[Any] | None = None
        self._votes = 0

    @property
    def tainted(self) -> bool:
        """Whether a seed says which teacher a row belongs to, and so protects nobody."""
        return self._key.tainted

    def train(self) -> None:
        """Train all of them, which is done when they are first asked otherwise."""
        with alone():
            if self._trained is None:
                self._trained = [self._taught(number) for number in range(self.count)]

    def check(self, queries: Any) -> int:
        """How many queries these are; refused where a model of made-up rows says nothing of them."""
        asked = size(queries, "queries")
        with alone():
            tried(self._trial, queries, asked, self.classes)
        return asked

    def counts(self, queries: Any) -> Ints:
        """How many vote for each class, a row for each query. This is private: a session adds noise."""
        with alone():
            self.train()
            assert self._trained is not None
            asked = size(queries, "queries")
            found = np.zeros((asked, self.classes), np.int64)
            self._votes += 1
            for number, teacher in enumerate(self._trained):
                votes = np.full(asked, FIXED) if teacher is None else self._said(number, teacher, queries)
                found[np.arange(asked), votes] += 1
        return found

    def _taught(self, number: int) -> Any:
        mine = np.flatnonzero((self._parts == number) & (self._labels >= 0))
        if not len(mine):
            return None
        teacher = copy.deepcopy(self._model)

        def fitted() -> Any:
            teacher.fit(taken(self._rows, mine), self._labels[mine])
            return teacher

        return self._apart((TRAINING, number), fitted, None)

    def _said(self, number: int, teacher: Any, queries: Any) -> NDArray[np.int64]:
        asked = len(queries)

        def said() -> NDArray[np.int64]:
            # A copy each: what one does to the queries must not reach the others, or the caller.
            votes = predicted(teacher, copy.deepcopy(queries), self.classes)
            return np.where(votes < 0, FIXED, votes) if votes.shape == (asked,) else np.full(asked, FIXED)

        return self._apart((VOTING, self._votes, number), said, np.full(asked, FIXED))

    def _apart(self, path: tuple[int, ...], run: Callable[[], Any], otherwise: Any) -> Any:
        """What a teacher does by itself: with coins of its own, unheard, and never failing."""
        seed = self._key.stream(*path).integer(SEEDS.bit_length() - 1)
        with quiet(), chance(seed):
            try:
                return run()
            except FAILURES:
                return otherwise

    def __repr__(self) -> str:
        return f"Teachers(count={self.count}, classes={self.classes})"

    def __getstate__(self) -> NoReturn:
        raise NotSound(
            "Teachers are private and are not written anywhere.",
            remedy="Label public rows in a session, and keep a Student of them.",
        )


def _pair(data: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InvalidArgument(f"{name} must be rows and their labels.", remedy=f"Pass {name}=(x, y).")
    return data[0], data[1]
