"""The figure that depends on the votes bounds exact divergences, and is that of its authors."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb
from scipy.special import erfc, erfcinv
from scipy.stats import norm

from dalenius.losses.pate.dependent import UNITS, _orders, _units, backward, forward, runner_up, table
from dalenius.profiles.balls import ball, upper


@pytest.mark.parametrize(("teachers", "classes", "scale"), [(6, 3, 0.5), (10, 3, 1.2), (12, 2, 1.5)])
def test_no_neighbour_is_further_than_the_figure(teachers, classes, scale, winners, ballots, neighbours):
    # Every ballot and every neighbour, both ways, at orders where the figure is below λ/σ² for some.
    laws = {votes: winners(votes, norm, scale) for votes in ballots(teachers, classes)}
    below = 0
    for order in (1.2, 2.0, 3.0):
        figures = table(teachers, classes, Fraction(scale), Fraction(order)) * (order / scale**2 / UNITS)
        for votes, p in laws.items():
            second, first = sorted(votes)[-2:]
            figure = figures[first - second]
            below += figure < order / scale**2
            for other in neighbours(votes):
                q = laws[other]
                for a, b in ((p, q), (q, p)):
                    assert math.log((a**order * b ** (1 - order)).sum()) / (order - 1) <= figure + 1e-9
    assert below > 0


def test_local_sensitivities_are_those_of_the_authors():
    # smooth_sensitivity_test.py of Papernot et al. 2018: three classes, σ = 0.5, order 1.5, votes (10, 0, 0)
    # and, one and two steps away, (9, 1, 0) and (8, 2, 0). Theirs takes the difference to q moved by 1/σ.
    scale, order = Fraction(1, 2), Fraction(3, 2)

    def moved(q):
        return float(erfc(erfcinv(q) - 2))

    published = (3.13503646e-17, 1.60178280e-08, 5.90681786e-03)
    with flint.ctx.workprec(200):
        for leads, value in zip(((10, 10), (8, 9), (6, 8)), published, strict=True):
            q = float((erfc(leads[0]) + erfc(leads[1])) / 2)
            near, far = (forward(arb(x), scale, order) for x in (q, moved(q)))
            assert float(far - near) == pytest.approx(value, rel=1e-8, abs=0)
        near, far = (forward(runner_up(g, 3, scale), scale, order) for g in (10, 8))
        assert float(far - near) == pytest.approx(published[0], rel=1e-8, abs=0)


def test_the_figure_takes_over_where_the_authors_say():
    # core_test.py of Papernot et al. 2018: −log q at which it falls below λ/σ², read off by hand.
    known = [2.8, 2.6, 427, None, 4.8, 4.0, 4.7, 275, 9.6, 8.8, 6.0, 4, 12, 11.2, 8.6, 6.4]
    cases = [(s, a) for s in (1.5, 15, 1500, 15000) for a in (1.1, 2.5, 32, 250)]
    for (scale, order), depth in zip(cases, known, strict=True):
        if depth is None:
            continue
        free, exact = order / scale**2, (Fraction(scale), Fraction(str(order)))
        found = [forward(arb(-depth - k * math.log(2)).exp(), *exact) for k in (0, 1, 2)]
        first, *values = (free if value is None else min(float(value), free) for value in found)
        assert values[1] < values[0] < first
        shallow = forward(arb(math.exp(-depth) + 0.1), *exact)
        assert shallow is None or float(shallow) >= free


@pytest.mark.parametrize("classes", [2, 10])
def test_another_class_wins_no_more_often_than_said(classes, winners):
    # All others level with each other: the union bound counts every one of them.
    for scale in (0.6, 1.5):
        for gap in (0, 1, 3, 6):
            chance = 1 - winners((gap + 2, *[2] * (classes - 1)), norm, scale)[0]
            assert float(runner_up(gap, classes, Fraction(scale))) >= chance - 1e-9


def test_beyond_the_condition_on_q_nothing_is_said():
    # Here (qe^{ε₂})^c is below 1 and the condition fails: what the formula says need not grow with q.
    scale, order = Fraction(3, 2), Fraction(11, 10)
    with flint.ctx.workprec(128):
        for q, known in ((0.3, False), (0.2, True)):
            mu1, mu2, _, eps2 = _orders(arb(q), scale, order)
            assert (arb(q) * eps2.exp()) ** (1 - 1 / mu2) < 1
            slope = (1 - 1 / mu2) * arb(q) ** (-1 / mu2) * ((1 - 1 / mu2) * eps2).exp()
            assert (slope >= mu1 / (mu1 - 1)) is known
            assert (forward(arb(q), scale, order) is not None) is known


def test_with_its_orders_held_the_bound_grows_with_q():
    # What the proof in docs/amplification/pate.md says, where the first term falls as q grows as well.
    falls = 0
    for scale, order, depth in ((1.5, 1.1, 4), (4, 2.5, 6), (15, 32, 8), (40, 10, 20), (0.9, 1.5, 30)):
        with flint.ctx.workprec(128):
            at = arb(-depth).exp()
            orders = _orders(at, Fraction(scale), Fraction(order))
            assert forward(at, Fraction(scale), Fraction(order)) is not None
            mu1, mu2, eps1, eps2 = (float(one) for one in orders)
        q = math.exp(-depth) * np.exp(-np.linspace(0, 12, 400))
        first = (1 - q) ** order * (1 - (q * math.exp(eps2)) ** (1 - 1 / mu2)) ** (1 - order)
        second = math.exp((order - 1) * eps1) * q ** ((mu1 - order) / (mu1 - 1))
        assert (np.diff(first + second) <= 1e-15).all()
        falls += (np.diff(first) > 1e-12).any()
    assert falls > 0


def test_figures_are_rounded_up():
    for gap in (200, 230, 250):
        with flint.ctx.workprec(128):
            q, near = (runner_up(lead, 10, Fraction(40)) for lead in (gap, gap - 2))
            there, back, beside = (
                upper(f(x, Fraction(40), Fraction(10)) * ball(160 * UNITS))
                for f, x in ((forward, q), (backward, q), (forward, near))
            )
            exact = max(there, min(back, beside))
        found = _units(gap, 10, Fraction(40), Fraction(10))
        assert exact <= found < exact + 1 and exact != round(exact)


def test_both_ways_are_near_each_other_where_teachers_agree():
    with flint.ctx.workprec(128):
        q = runner_up(250, 10, Fraction(40))
        there, back = (float(f(q, Fraction(40), Fraction(10))) for f in (forward, backward))
    assert 0 < there < back < 3 * there < 10 / 1600


def test_figures_fall_as_the_lead_grows_and_never_exceed_what_holds_for_all_votes():
    figures = table(250, 10, Fraction(40), Fraction(10))
    assert figures[0] == UNITS and figures[-1] < UNITS / 20
    assert (np.diff(figures) <= 0).all()
