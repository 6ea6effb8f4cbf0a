"""Dalenius: differential privacy in which every number that claims privacy has its theorem.

    >>> import dalenius as dp
    >>> release = dp.count([True, False, True], epsilon=1)
    >>> release.receipt.cost
    'epsilon 1'

The names here are the few a newcomer needs; kinds of loss live in `dalenius.losses`, mechanisms in
`dalenius.mechanisms`, errors in `dalenius.errors`. Each name is loaded when first used, so that importing the
package costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius import learn as learn
    from dalenius import local as local
    from dalenius import report as report
    from dalenius import streams as streams
    from dalenius.audits.claims import audit
    from dalenius.audits.report import Audit
    from dalenius.audits.training import audit_training
    from dalenius.figures import Figure
    from dalenius.ledger import Budget, Ledger
    from dalenius.losses.bound import Bound
    from dalenius.losses.loss import Loss
    from dalenius.oneliners import count, gaussian, histogram, laplace, mean, median, sum
    from dalenius.planner import people_needed
    from dalenius.privacy.unit import Unit
    from dalenius.release import Release
    from dalenius.tables.bounds import Bounds
    from dalenius.tables.builder import agg
    from dalenius.tables.opening import table
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Audit": "dalenius.audits.report",
            "Bound": "dalenius.losses.bound",
            "Bounds": "dalenius.tables.bounds",
            "Budget": "dalenius.ledger",
            "Figure": "dalenius.figures",
            "Ledger": "dalenius.ledger",
            "Loss": "dalenius.losses.loss",
            "Release": "dalenius.release",
            "Unit": "dalenius.privacy.unit",
            "agg": "dalenius.tables.builder",
            "audit": "dalenius.audits.claims",
            "audit_training": "dalenius.audits.training",
            "count": "dalenius.oneliners",
            "gaussian": "dalenius.oneliners",
            "histogram": "dalenius.oneliners",
            "laplace": "dalenius.oneliners",
            "learn": "dalenius.learn",
            "local": "dalenius.local",
            "mean": "dalenius.oneliners",
            "median": "dalenius.oneliners",
            "people_needed": "dalenius.planner",
            "report": "dalenius.report",
            "streams": "dalenius.streams",
            "sum": "dalenius.oneliners",
            "table": "dalenius.tables.opening",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Bound",
    "Bounds",
    "Budget",
    "Figure",
    "Ledger",
    "Loss",
    "Release",
    "Unit",
    "agg",
    "audit",
    "audit_training",
    "count",
    "gaussian",
    "histogram",
    "laplace",
    "mean",
    "median",
    "people_needed",
    "sum",
    "table",
]
