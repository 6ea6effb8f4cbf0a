"""Deployments of differential privacy whose ε is public, to set a number beside others.

The facts in `deployments.json` come from the OpenDP deployments registry (registry.opendp.org) and the
sources it cites: one row per data product with a stated ε, δ = 0 where it is pure. Units of protection
differ from row to row (a person for ever, a person's day, one event), so a rank says what has been
accepted in practice, not what is safe.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Deployment:
    """One data product with the ε and δ that its publisher states, and for whom they hold."""

    name: str
    publisher: str
    year: int
    epsilon: float
    delta: float
    unit: str
    source: str


@cache
def deployments() -> tuple[Deployment, ...]:
    """All listed deployments, by rising ε."""
    text = files("dalenius.losses").joinpath("deployments.json").read_text(encoding="utf-8")
    return tuple(sorted((Deployment(**row) for row in json.loads(text)), key=lambda row: row.epsilon))


def share_below(epsilon: float) -> float:
    """The share of the listed deployments whose ε is at most `epsilon`."""
    listed = [deployment.epsilon for deployment in deployments()]
    return bisect_right(listed, epsilon) / len(listed)


def nearest(epsilon: float) -> Deployment:
    """The listed deployment whose ε is nearest."""
    return min(deployments(), key=lambda row: (abs(row.epsilon - epsilon), -row.epsilon))
