from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument, RelationMismatch
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.laplace import Laplace
from dalenius.losses.mixture import Mixture
from dalenius.losses.pure import Pure
from dalenius.losses.raw import DiscretePair
from dalenius.profiles.atoms import Atoms


class Weighted:
    def __init__(self, parts):
        self.parts = parts

    def hockey(self, epsilon):
        return sum(w * truth.hockey(epsilon) for w, truth in self.parts)

    def log_moment(self, order):
        return sum(w * truth.log_moment(order).exp() for w, truth in self.parts).log()


def test_finite_parts_make_a_finite_pair_enclosed_both_ways(ball, outcomes, encloses):
    rows = [((1, 3), (2, 2)), ((1, 1, 2), (2, 1, 1))]
    truths = [
        outcomes((ball(Fraction(a, 4)), ball(Fraction(b, 4))) for a, b in zip(p, q, strict=True))
        for p, q in rows
    ]
    losses = [DiscretePair([Fraction(x, 4) for x in p], [Fraction(x, 4) for x in q]) for p, q in rows]
    remove, add = Mixture(losses, [0.3, 0.7]).directions()
    assert isinstance(remove[0][0], Atoms)
    weights = [ball(Fraction(3, 10)), ball(Fraction(7, 10))]
    encloses(remove[0][0], Weighted(list(zip(weights, truths, strict=True))))
    encloses(add[0][0], Weighted([(w, t.reversed()) for w, t in zip(weights, truths, strict=True)]))


def test_other_parts_are_weighted_and_enclosed(ball, outcomes, encloses):
    half = ball(Fraction(1, 2))
    e = ball(1).exp()
    pure = outcomes([(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))])

    class Noise:
        def hockey(self, epsilon):
            y = ball(epsilon)
            values = (ball(0), 1 - y.exp(), 1 - ((y - 2) / 2).exp())
            return max(values, key=float)

        def log_moment(self, order):
            t = ball(order)
            return (((1 + t) * (2 * t).exp() + t * (-2 * (1 + t)).exp()) / (1 + 2 * t)).log()

    pair = Mixture([Pure(1), Laplace(0.5)], [0.5, 0.5]).directions()[0][0][0]
    for side in (pair, pair.reversed()):
        encloses(side, Weighted([(half, pure), (half, Noise())]))


def test_a_composition_within_is_multiplied_out():
    mixture = Mixture([Pure(0.1) * 3, Laplace(1) + Pure(1)], [0.5, 0.5])
    assert mixture.tight
    assert mixture.directions()[0][0][0].hockey(np.array([0.0]))[0][0] > 0


def test_parts_known_by_moments_alone_leave_moments():
    mixture = Mixture([Pure(1), ZeroConcentrated(0.5)], [0.5, 0.5])
    assert mixture.directions() is None and not mixture.tight
    assert mixture.moment(1.0) == pytest.approx(np.log((np.exp(0.7353256640555) + np.exp(1.0)) / 2))


def test_a_group_is_taken_part_by_part():
    assert Mixture([Pure(1), Laplace(1)], [0.5, 0.5]).group(2) == Mixture([Pure(2), Laplace(0.5)], [0.5, 0.5])


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(InvalidArgument, match="weights must be as many as losses"):
        Mixture([Pure(1)], [0.5])
    with pytest.raises(RelationMismatch):
        Mixture([Pure(1), Pure(1, relation="replace")], [0.5, 0.5])
