from __future__ import annotations

from fractions import Fraction
from itertools import product

from dalenius.losses.laplace import LaplacePair
from dalenius.losses.pure import Pure
from dalenius.losses.raw import DiscretePair
from dalenius.profiles.atoms import Atoms
from dalenius.profiles.product import Shifted, collapse


def test_a_product_of_finite_pairs_is_enclosed_both_ways(ball, outcomes, encloses):
    p, q = (Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 2), Fraction(1, 2))
    pair = collapse(((DiscretePair(p, q).directions()[0][0][0], 3),))
    triples = product(zip(p, q, strict=True), repeat=3)
    rows = [(ball(a * b * c), ball(x * y * z)) for (a, x), (b, y), (c, z) in triples]
    assert isinstance(pair, Atoms) and len(pair.atoms) == 4
    encloses(pair, outcomes(rows))
    encloses(pair.reversed(), outcomes(rows).reversed())


def test_a_product_with_one_other_pair_is_enclosed(ball, encloses):
    class Sum:
        def hockey(self, epsilon):
            e = ball(1).exp()
            return e / (1 + e) * self.noise(ball(epsilon) - 1) + 1 / (1 + e) * self.noise(ball(epsilon) + 1)

        def noise(self, x):
            return max((ball(0), 1 - x.exp(), 1 - ((x - 2) / 2).exp()), key=float)

        def log_moment(self, order):
            t, e = ball(order), ball(1).exp()
            pure = (e / (1 + e) * t.exp() + 1 / (1 + e) * (-t).exp()).log()
            return pure + (((1 + t) * (2 * t).exp() + t * (-2 * (1 + t)).exp()) / (1 + 2 * t)).log()

    pair = collapse(((Pure(1).directions()[0][0][0], 1), (LaplacePair(Fraction(2)), 1)))
    assert isinstance(pair, Shifted)
    for side in (pair, pair.reversed()):
        encloses(side, Sum(), epsilons=(-3.5, -1.0, 0.0, 0.7, 1.0, 2.9, 3.1))


def test_what_has_no_finite_form_is_left_alone():
    assert collapse(((LaplacePair(Fraction(1)), 2),)) is None
    assert collapse(((Pure(1).directions()[0][0][0], 10**6),)) is None
