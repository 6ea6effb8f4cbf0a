"""Exact divergences of small releases: every sample, every way to look at it, in rational numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import pytest

Law = tuple[Fraction, ...]
EPSILONS = (-2.0, -0.7, -0.2, -0.05, 0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 2.5)


def hockey(p: Law, q: Law, y: Fraction) -> Fraction:
    """Σ (p − yq)₊, the definition."""
    return sum((max(a - y * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def order(epsilon: float) -> Fraction:
    """A rational at or above e^ε by a hair: H there is at most H(ε)."""
    return Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**15))


def mixed(weights: Iterable[tuple[Fraction, Law]]) -> Law:
    """The law of what is released, over all samples."""
    total: list[Fraction] = []
    for weight, law in weights:
        total = total or [Fraction(0)] * len(law)
        total = [sum_ + weight * p for sum_, p in zip(total, law, strict=True)]
    return tuple(total)


def twice(pairs: Sequence[tuple[Law, Law]], y: Fraction) -> Fraction:
    """The worst of two releases, the second one chosen by what the first has shown."""
    best = Fraction(0)
    for p, q in pairs:
        found = Fraction(0)
        for a, b in zip(p, q, strict=True):
            if a > 0:
                found += a * max(hockey(*second, y * b / a) for second in pairs)
        best = max(best, found)
    return best


@pytest.fixture
def exactly() -> tuple[Callable[..., Fraction], Callable[[float], Fraction], Callable[..., Law]]:
    return hockey, order, mixed


@pytest.fixture
def two_releases() -> Callable[..., Fraction]:
    return twice


@pytest.fixture
def epsilons() -> tuple[float, ...]:
    return EPSILONS
