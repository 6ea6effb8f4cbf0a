"""Kinds and converters of losses under replace, composed with each other, against every adaptive order.

A release is a loss and the finite laws that some mechanism of that loss has on two neighbours: under replace
an adversary chooses one of them, or its reverse, after each outcome. `adaptive` is the greatest δ that any
such adversary reaches. Laplace and Gaussian noise is read in cells, which is post-processing.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import laplace, norm

from dalenius.losses import (
    DiscretePair,
    Gaussian,
    Laplace,
    Loss,
    Mixture,
    PrivacyLossDistribution,
)
from dalenius.losses.dominated import Dominated
from dalenius.losses.joint import Joint

Rows = tuple[tuple[float, float], ...]
Release = tuple[Loss, list[Rows], bool]
"""A loss, the laws to choose from, and whether there are no others that meet its description."""
HAIR, LATTICE = 1e-9, 1e-5
MOST_PATHS = 40_000


def masses(source: random.Random) -> list[tuple[Fraction, Fraction]]:
    """Two random laws on two to four outcomes, some of them impossible under one."""
    many = source.randint(2, 4)
    p, q = (source.choices([0, 1, 1, 2, 3, 5, 9, 30], k=many) for _ in range(2))
    if not any(p) or not any(q):
        return masses(source)
    pairs = zip(p, q, strict=True)
    return [(Fraction(a, sum(p)), Fraction(b, sum(q))) for a, b in pairs if a or b]


def stated(rows: list[tuple[Fraction, Fraction]]) -> Loss:
    return DiscretePair([p for p, _ in rows], [q for _, q in rows], relation="replace")


def both(rows: list[tuple[Fraction, Fraction]]) -> list[Rows]:
    there = tuple((float(p), float(q)) for p, q in rows)
    return [there, tuple((q, p) for p, q in there)]


def pair(source: random.Random) -> Release:
    rows = masses(source)
    return source.choice([stated, lambda r: Dominated(stated(r))])(rows), both(rows), True


def joint(source: random.Random) -> Release:
    first, second = masses(source), masses(source)
    rows = [(a * c, b * d) for a, b in first for c, d in second]
    return Joint(stated(first) + stated(second)), both(rows), True


def loss_law(source: random.Random) -> Release:
    losses = [Fraction(source.randint(-8, 24), 8) for _ in range(source.randint(1, 3))]
    weights = [Fraction(source.randint(1, 5)) for _ in losses]
    infinite = Fraction(source.choice([0, 0, 1, 2]))
    whole = sum(weights) + infinite
    p = [weight / whole for weight in weights]
    q = [float(mass) * math.exp(-loss) for mass, loss in zip(p, losses, strict=True)]
    if sum(q) > 1 - 1e-9:
        return loss_law(source)
    rows = (*zip(map(float, p), q, strict=True), (float(infinite / whole), 0.0), (0.0, 1 - sum(q)))
    loss = PrivacyLossDistribution(losses, p, infinite=infinite / whole, relation="replace")
    return loss, [rows, tuple((b, a) for a, b in rows)], True


def cells(
    first: Callable[[float], float], second: Callable[[float], float], edges: list[float]
) -> list[Rows]:
    ends = [np.diff([0.0, *map(law, edges), 1.0]).tolist() for law in (first, second)]
    rows = tuple(zip(*ends, strict=True))
    return [rows, tuple((q, p) for p, q in rows)]


def laplace_noise(source: random.Random) -> Release:
    scale = source.choice([0.5, 1.0, 2.0, 5.0])
    edges = [k / 8 for k in range(9)]
    laws = cells(lambda x: laplace.cdf(x, 0, scale), lambda x: laplace.cdf(x, 1, scale), edges)
    return Laplace(scale, relation="replace"), laws, False


def gaussian_noise(source: random.Random) -> Release:
    sigma = source.choice([1, 2, 5])
    edges = np.linspace(-3, 3 + 2 / sigma, 9).tolist()
    laws = cells(norm.cdf, lambda x: norm.cdf(x - 2 / sigma), edges)
    return Gaussian(sigma, relation="replace"), laws, False


def mixture(source: random.Random) -> Release:
    parts = [source.choice([pair, loss_law, laplace_noise])(source) for _ in range(2)]
    weight = Fraction(source.randint(1, 4), 5)
    weights = float(weight), float(1 - weight)
    laws = [
        tuple((w * p, w * q) for w, rows in zip(weights, (first, second), strict=True) for p, q in rows)
        for first in parts[0][1]
        for second in parts[1][1]
    ]
    loss = Mixture([part[0] for part in parts], [weight, 1 - weight])
    return loss, laws, all(part[2] for part in parts)


def group(source: random.Random) -> Release:
    """A law on a circle, turned by one place for each unit of a group: every step has the same pair."""
    many, size = source.randint(2, 4), source.randint(2, 3)
    weights = source.choices([0, 1, 1, 2, 3, 5, 9, 30], k=many)
    if not any(weights):
        return group(source)
    p = [Fraction(weight, sum(weights)) for weight in weights]
    one, all_ = (p[k % many :] + p[: k % many] for k in (1, size))
    step = [row for row in zip(p, one, strict=True) if any(row)]
    return stated(step).group(size), both(list(zip(p, all_, strict=True))), False


def sample(source: random.Random) -> Release:
    """The record in doubt against others that are all alike, of the one kind or of the other."""
    rows, batch = masses(source), source.randint(1, 3)
    population = source.randint(batch + 1, 6)
    share = Fraction(batch, population)
    first = [((1 - share) * q + share * p, q) for p, q in rows]
    second = [((1 - share) * p + share * q, p) for p, q in rows]
    return stated(rows).without_replacement(batch, population), [*both(first), *both(second)], False


def two_sampled(source: random.Random) -> Release:
    """Two releases on the same sample, turned apart."""
    first, second = masses(source), masses(source)
    rows = [(a * d, b * c) for a, b in first for c, d in second]
    sampled = [((q + p) / 2, q) for p, q in rows]
    return (stated(first) + stated(second)).without_replacement(1, 2), both(sampled), False


KINDS = (pair, pair, joint, loss_law, laplace_noise, gaussian_noise, mixture, group, sample, two_sampled)


def adaptive(laws: list[list[Rows]], ratio: float) -> float:
    """The greatest P − ratio·Q where the law of each release is chosen by the outcomes of those before."""
    if not laws:
        return max(1.0 - ratio, 0.0)
    first, *rest = laws
    return max(math.fsum(p * adaptive(rest, ratio * q / p) for p, q in rows if p > 0) for rows in first)


def in_any_order(laws: list[list[Rows]], ratio: float) -> float:
    return max(adaptive(list(some), ratio) for some in permutations(laws))


def check(source: random.Random) -> None:
    releases = [source.choice(KINDS)(source) for _ in range(source.randint(1, 3))]
    laws, exact = [release[1] for release in releases], all(release[2] for release in releases)
    if math.prod(sum(map(len, choices)) for choices in laws) > MOST_PATHS:
        return
    total = releases[0][0]
    for release in releases[1:]:
        total = total + release[0]
    epsilon = Fraction(source.randint(0, 24), 8)
    truth = in_any_order(laws, math.exp(epsilon))
    bound = total.delta(epsilon)
    assert bound.upper >= truth * (1 - HAIR) - HAIR, total
    if exact:
        assert bound.lower <= truth * (1 + HAIR) + HAIR, total
        assert not bound.tight or bound.upper <= truth * (1 + LATTICE) + LATTICE, total
    assert not bound.tight or bound.upper <= bound.lower * 1.01 + HAIR, total
    if 1e-9 < truth < 1:
        enough = total.epsilon(Fraction(truth)).upper
        if enough < math.inf:
            assert in_any_order(laws, math.exp(enough)) <= truth * (1 + HAIR) + HAIR, total


@pytest.mark.parametrize("seed", range(25))
def test_kinds_under_replace_enclose_every_adaptive_order(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(random.Random(seed))


@pytest.mark.slow
def test_five_thousand_compositions_of_kinds_under_replace() -> None:
    source = random.Random(28)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5000):
            check(source)
