"""PATE: a student learns from noisy votes of teachers that never leave.

    teachers    models of disjoint `shards` of the data, and how they vote
    network     a torch module as a teacher or a student
    gnmax       the class with the most votes, under noise; confident, behind a noisy test of consensus
    labelling   a session: charged once, asked for labels until its queries are used up
    student     a model of public queries and the labels they got

    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dalenius.learn.pate import GNMax, Student, Teachers
    >>> x = np.linspace(-1, 1, 400)[:, None]
    >>> teachers = Teachers(GaussianNB(), (x, (x[:, 0] > 0).astype(int)), count=20, classes=2)
    >>> labels = GNMax(scale=3, queries=4).start(teachers=teachers).label([[-1.0], [-0.5], [0.5], [1.0]])
    >>> labels.receipt.charged, len(labels)
    ('uncharged', 4)

What each costs, and the figure that depends on the votes, is in `losses.pate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.learn.pate.confident import ConfidentGNMax
    from dalenius.learn.pate.gnmax import GNMax
    from dalenius.learn.pate.labelling import Labelling
    from dalenius.learn.pate.network import Network
    from dalenius.learn.pate.student import Student
    from dalenius.learn.pate.teachers import Teachers
    from dalenius.losses.pate.sanitizer import Sanitizer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ConfidentGNMax": "dalenius.learn.pate.confident",
            "GNMax": "dalenius.learn.pate.gnmax",
            "Labelling": "dalenius.learn.pate.labelling",
            "Network": "dalenius.learn.pate.network",
            "Sanitizer": "dalenius.losses.pate.sanitizer",
            "Student": "dalenius.learn.pate.student",
            "Teachers": "dalenius.learn.pate.teachers",
        },
    )

__all__ = ["ConfidentGNMax", "GNMax", "Labelling", "Network", "Sanitizer", "Student", "Teachers"]
