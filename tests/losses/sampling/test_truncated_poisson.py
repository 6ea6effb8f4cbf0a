from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.raw import DiscretePair
from dalenius.losses.sampling.tail import at_least
from dalenius.losses.sampling.truncated_poisson import TruncatedPoisson, truncate

HALF = Fraction(1, 2)
RR = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))
LEAKING = (Fraction(1, 10), Fraction(9, 10), Fraction(0)), (Fraction(0), Fraction(9, 10), Fraction(1, 10))
BASES = {
    "report": (RandomizedResponse(HALF), RR),
    "leaking": (Approximate(0, delta=Fraction(1, 10)), LEAKING),
}


def batches(records, rate, cap):
    """Every batch with its probability, by the definition: draw each record, then cut."""
    found: dict[frozenset[int], Fraction] = {}
    for size in range(len(records) + 1):
        for drawn in combinations(records, size):
            chance = rate**size * (1 - rate) ** (len(records) - size)
            kept = list(combinations(drawn, min(size, cap)))
            for batch in kept:
                key = frozenset(batch)
                found[key] = found.get(key, Fraction(0)) + chance / len(kept)
    return found


def releases(laws, others, rate, cap, mixed):
    """The laws with record 0 and without, for every set of batches that shows the first law."""
    sides = [batches(records, rate, cap) for records in ((0, *others), others)]
    every = sorted(sides[0], key=sorted)
    found = set()
    for bits in product((0, 1), repeat=len(every)):
        shown = dict(zip(every, bits, strict=True))
        found.add(tuple(mixed((chance, laws[shown[b]]) for b, chance in side.items()) for side in sides))
    return sorted(found)


@pytest.mark.parametrize(
    ("name", "population", "rate", "cap"),
    [
        ("report", 4, HALF, 1),
        ("report", 3, HALF, 2),
        ("leaking", 3, HALF, 2),
        ("leaking", 4, Fraction(1), 1),
    ],
)
def test_no_release_on_any_sample_exceeds_the_bound(
    name, population, rate, cap, exactly, two_releases, epsilons
):
    hockey, order, mixed = exactly
    base, laws = BASES[name]
    loss = TruncatedPoisson(base, rate, population, cap)
    remove, add = (worst[0][0].hockey(np.array(epsilons))[1] for worst in loss.directions())
    double = (loss * 2).delta(0.2).upper
    for others in range(population):
        pairs = releases(laws, tuple(range(1, others + 1)), rate, cap, mixed)
        for epsilon, first, second in zip(epsilons, remove, add, strict=True):
            y = order(epsilon)
            assert max(hockey(p, q, y) for p, q in pairs) <= Fraction(float(first))
            assert max(hockey(q, p, y) for p, q in pairs) <= Fraction(float(second))
        few = pairs[:: max(len(pairs) // 25, 1)]
        assert two_releases(few, order(0.2)) <= Fraction(double)
        assert two_releases([(q, p) for p, q in few], order(0.2)) <= Fraction(double)


@pytest.mark.parametrize(("rate", "cap"), [(HALF, 1), (HALF, 2), (Fraction(1, 5), 1)])
def test_no_gaussian_sum_of_a_cut_batch_exceeds_the_bound(rate, cap):
    # Records are −1 or +1, the sum is hidden by Gaussian noise of 0.8, and H is found by quadrature.
    population, sigma, step = 4, 0.8, 0.002
    x = np.arange(-12, 12, step)
    loss = TruncatedPoisson(Gaussian(sigma), rate, population, cap)
    at = np.array([-0.5, 0.0, 0.4, 1.0, 2.0, 4.0])
    bounds = [worst[0][0].hockey(at)[1] for worst in loss.directions()]
    closest = 0.0
    for values in product((-1, 1), repeat=population):
        sides = []
        for records in (range(population), range(1, population)):
            sums = [
                (float(chance), sum(values[i] for i in batch))
                for batch, chance in batches(tuple(records), rate, cap).items()
            ]
            sides.append(sum(chance * norm.pdf(x, total, sigma) for chance, total in sums))
        for bound, (p, q) in zip(bounds, (sides, sides[::-1]), strict=True):
            truth = np.array([np.maximum(p - math.exp(e) * q, 0).sum() * step for e in at])
            assert (truth <= bound + 1e-6).all()
            closest = max(closest, float(truth[2] / bounds[0][2]))
    # Nor is it far from what a sum shows.
    assert closest > 0.6


def test_the_figure_of_a_peer_that_keeps_the_cut_batch():
    # dp-accounting 0.6.0, PLDAccountant with TruncatedSubsampledGaussianDpEvent(10_000, 0.01, 128, 0.8) after
    # Ganesh 2025: epsilon 7.080426 of 1,000 steps at delta 1e-5.
    loss = truncate(Gaussian(0.8), 0.01, population=10_000, cap=128) * 1_000
    assert 0.85e-5 < loss.delta(7.080426 * 1.001).upper <= 1e-5


def test_tiny_data_sets_cost_less_than_in_the_test_of_the_peer():
    # dp-accounting 0.6.0, pld_privacy_accountant_test: 17.904330 at delta 1e-6. Its pair for a cut batch is
    # that of Poisson samples under replace, with both means apart.
    three, four = (truncate(Gaussian(1), HALF, population=size, cap=2) for size in (3, 4))
    assert 1e-8 < (four * 3 + three * 2).delta(17.904330).upper < 1e-6


def test_a_cut_as_a_failure_costs_more():
    # Chua et al. 2024, "Scalable DP-SGD": δ + (1 + e^ε)P[Bin(n−1, q) ≥ B] for each step.
    loss = truncate(Gaussian(1), 0.001, population=10**6, cap=1_150)
    plain = Gaussian(1).poisson(0.001).epsilon(1e-6).lower
    failing = (1 + math.exp(plain)) * float(at_least(10**6 - 1, Fraction(1, 1000), 1_150))
    assert failing > 3e-6
    assert loss.delta(plain).upper < 1e-6 + failing / 500


@given(st.integers(1, 60), st.fractions(Fraction(1, 1000), Fraction(999, 1000)), st.integers(0, 62))
def test_tails_are_those_of_the_binomial_law_rounded_up(count, rate, threshold):
    exact = sum(
        (math.comb(count, j) * rate**j * (1 - rate) ** (count - j) for j in range(threshold, count + 1)),
        Fraction(0),
    )
    assert exact <= at_least(count, rate, threshold) <= exact * (1 + Fraction(1, 10**9)) + Fraction(1, 10**16)


@settings(max_examples=12)
@given(
    rate=st.fractions(Fraction(1, 50), Fraction(1)),
    population=st.integers(1, 40),
    cap=st.integers(1, 39),
    epsilon=st.floats(-3, 3),
)
def test_a_larger_cap_a_smaller_population_or_a_smaller_rate_never_costs_more(rate, population, cap, epsilon):
    def ends(rate, population, cap):
        pairs = [w[0][0] for w in TruncatedPoisson(Laplace(1), rate, population, cap).directions()]
        return [pair.hockey(np.array([epsilon])) for pair in pairs]

    here, larger = ends(rate, population, cap), ends(rate, population + 1, cap)
    faster = ends((rate + 1) / 2, population, cap)
    for ours, theirs, fast in zip(here, larger, faster, strict=True):
        assert ours[0][0] <= theirs[1][0] * (1 + 1e-12) + 1e-15
        assert ours[0][0] <= fast[1][0] * (1 + 1e-12) + 1e-15


def test_more_releases_never_cost_less():
    step = truncate(Pure(HALF), 0.1, population=30, cap=4)
    assert step.delta(0.1).lower <= (step * 2).delta(0.1).lower <= (step * 20).delta(0.1).upper


@settings(max_examples=10)
@given(count=st.integers(1, 30), cap=st.integers(1, 5), rate=st.fractions(Fraction(1, 99), Fraction(1)))
def test_the_order_does_not_matter_and_the_description_is_read_back(count, cap, rate):
    step = truncate(Pure(HALF), rate, population=30, cap=cap)
    assert step * count + Laplace(1) == Laplace(1) + step * count
    again = Loss.from_json((step * count).to_json())
    assert again == step * count and again.directions() == (step * count).directions()


def test_a_plain_sample_is_the_lower_side_and_what_cannot_be_cut_is_plain():
    loss = truncate(Gaussian(2), 0.1, population=30, cap=5)
    assert loss.attained() == Gaussian(2).poisson(0.1)
    assert loss.epsilon(1e-5).lower == pytest.approx(Gaussian(2).poisson(0.1).epsilon(1e-5).lower)
    assert not loss.tight
    assert truncate(Gaussian(2), 0.1, population=5, cap=5) == Gaussian(2).poisson(0.1)
    rho = loss.zcdp()
    assert rho.upper == 0.5 and rho.lower >= 0.1249
    assert loss.group(2).delta(1).upper > loss.delta(1).upper


def test_a_composition_on_one_sample_keeps_its_pair():
    pair = DiscretePair([0.75, 0.25], [0.25, 0.75])
    loss = truncate(pair + Gaussian(1), 0.1, population=30, cap=5)
    ends = loss.directions()[0][0][0].hockey(np.array([0.5]))
    assert 0 < ends[0][0] <= ends[1][0] < 0.1


def test_what_no_theorem_covers_is_refused():
    with pytest.raises(NotSound, match=r"replace relation.*add_remove"):
        truncate(Gaussian(1, relation="replace"), 0.1, population=10, cap=2)
    with pytest.raises(NotSound, match="zero_out relation"):
        truncate(Pure(1, relation="zero_out"), 0.1, population=10, cap=2)
    with pytest.raises(NotSound, match="fresh sample"):
        truncate(ZeroConcentrated(1), 0.1, population=10, cap=2)


@pytest.mark.parametrize(
    ("rate", "population", "cap", "name"),
    [(0, 10, 2, "sampling_rate"), (0.1, 0, 2, "population"), (0.1, 10, 0, "cap"), (0.1, 10, 2.5, "cap")],
)
def test_numbers_out_of_range_are_refused_by_name(rate, population, cap, name):
    with pytest.raises(InvalidArgument, match=name):
        truncate(Pure(1), rate, population=population, cap=cap)
