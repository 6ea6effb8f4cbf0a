"""Small ballots, their neighbours, and the exact law of the winner."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest


def _winners(votes, law, scale):
    """The law of the winner: one class at y, all others below, integrated over y."""
    y = np.linspace(min(votes) - 14 * scale, max(votes) + 14 * scale, 20001)
    below = np.array([law.logcdf((y - v) / scale) for v in votes])
    at = np.array([law.logpdf((y - v) / scale) for v in votes]) - math.log(scale)
    every = np.exp(at + below.sum(axis=0) - below)
    masses = np.trapezoid(every, y, axis=1)
    return masses / masses.sum()


def _ballots(teachers, classes):
    for parts in itertools.product(range(teachers + 1), repeat=classes - 1):
        if sum(parts) <= teachers:
            yield (*parts, teachers - sum(parts))


def _neighbours(votes):
    for a, b in itertools.permutations(range(len(votes)), 2):
        if votes[a]:
            moved = list(votes)
            moved[a], moved[b] = moved[a] - 1, moved[b] + 1
            yield tuple(moved)


@pytest.fixture
def winners():
    return _winners


@pytest.fixture
def ballots():
    return _ballots


@pytest.fixture
def neighbours():
    return _neighbours
