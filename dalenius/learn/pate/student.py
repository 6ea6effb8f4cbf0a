"""`Student`: a model of public rows and the labels that a session gave, which is post-processing: free."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.learn.pate.rows import Ints, estimator, taken
from dalenius.release import Release
from dalenius.release.receipt import Receipt


class Student:
    """A copy of `model`, with `fit` and `predict` as in scikit-learn, or a torch module."""

    def __init__(self, model: Any) -> None:
        self.model = copy.deepcopy(estimator(model))
        self._receipt: Receipt | None = None

    def fit(self, queries: Any, labels: Release) -> Student:
        """Learn from the queries that were answered."""
        given = labels.columns.get("label")
        if given is None or len(given) != len(queries):
            raise InvalidArgument(
                "labels must be what a session gave for these queries.",
                remedy="Pass session.label(queries), and the same queries in the same order.",
            )
        rows = np.array([i for i, label in enumerate(given) if label is not None], np.int64)
        if not len(rows):
            raise InvalidArgument(
                "None of the queries was answered.",
                remedy="Ask more queries, or lower the threshold: in another session, which is charged.",
            )
        said = np.array([given[i] for i in rows.tolist()], np.int64)
        self.model.fit(taken(queries, rows), said)
        note = f"a student trained on {len(rows)} public rows with these labels"
        notes = (*labels.receipt.postprocessing, note)
        self._receipt = replace(labels.receipt, postprocessing=notes)
        return self

    def predict(self, rows: Any) -> Ints:
        """The class of each row."""
        return np.asarray(self.model.predict(rows), np.int64)

    @property
    def receipt(self) -> Receipt:
        """That of the labels: the student costs nothing more, whatever it is asked."""
        if self._receipt is None:
            raise InvalidArgument(
                "This student has learned nothing.", remedy="Call fit(queries, labels) first."
            )
        return self._receipt
