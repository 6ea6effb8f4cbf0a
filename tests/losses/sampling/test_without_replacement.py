from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.raw import DiscretePair
from dalenius.losses.sampling.without_replacement import Sighting, WithoutReplacement, draw

HALF = Fraction(1, 2)
OTHERS = (1, 2, 3)
RR = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))
SKEWED = (Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
LEAKING = (Fraction(1, 10), Fraction(9, 10), Fraction(0)), (Fraction(0), Fraction(9, 10), Fraction(1, 10))
BASES = {
    "report": (RandomizedResponse(Fraction(1, 2), relation="replace"), RR),
    "skewed": (DiscretePair(*SKEWED, relation="replace"), SKEWED),
    "leaking": (Approximate(0, delta=Fraction(1, 10), relation="replace"), LEAKING),
}


def releases(laws, size, mixed):
    """The laws for (0, 1, 2, 3) and for (0′, 1, 2, 3), for every set of batches that shows the first law."""
    batches = [frozenset(b) for b in combinations((0, "0′", *OTHERS), size)]
    batches = [b for b in batches if not {0, "0′"} <= b]
    sides = [[b for b in batches if absent not in b] for absent in ("0′", 0)]
    found = set()
    for bits in product((0, 1), repeat=len(batches)):
        shown = dict(zip(batches, bits, strict=True))
        each = Fraction(1, len(sides[0]))
        found.add(tuple(mixed((each, laws[shown[b]]) for b in side) for side in sides))
    return sorted(found)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(BASES))
def test_no_release_on_any_sample_exceeds_the_bound(name, size, exactly, two_releases, epsilons):
    hockey, order, mixed = exactly
    base, laws = BASES[name]
    pairs = releases(laws, size, mixed)
    loss = draw(base, size, 4)
    ((pair, _),) = loss.directions()[0]
    claimed = pair.hockey(np.array(epsilons))[1]
    for epsilon, bound in zip(epsilons, claimed, strict=True):
        truth = max(hockey(p, q, order(epsilon)) for p, q in pairs)
        assert truth <= Fraction(float(bound))
        if epsilon >= 0:
            # The bound for one release is attained by one that looks for the record.
            assert float(bound) <= float(truth) * (1 + 1e-12) + 1e-14
    double = loss * 2
    for epsilon in (0.0, 0.4):
        assert two_releases(pairs[:: max(len(pairs) // 40, 1)], order(epsilon)) <= Fraction(
            double.delta(epsilon).upper
        )


def test_two_releases_that_look_for_the_record_are_within_the_bounds(exactly):
    hockey, order, mixed = exactly
    with_it = mixed([(Fraction(1, 4), RR[0]), (Fraction(3, 4), RR[1])])
    both = [tuple(a * b for a in law for b in law) for law in (with_it, RR[1])]
    bound = (draw(BASES["report"][0], 1, 4) * 2).delta(0.05)
    truth = max(float(hockey(*laws, order(0.05))) for laws in (both, both[::-1]))
    assert bound.lower == pytest.approx(truth, rel=1e-12) and truth <= bound.upper
    assert not bound.tight


def test_reports_on_either_record_or_neither_attain_the_bound(exactly):
    hockey, order, mixed = exactly
    p, s = Fraction(2, 3), Fraction(1, 6)
    laws = [(p, s, s), (s, p, s), (s, s, p)]
    one, other = (mixed([(Fraction(1, 4), law), (Fraction(3, 4), laws[2])]) for law in laws[:2])
    both = [tuple(a * b for a in law for b in law) for law in (one, other)]
    loss = draw(RandomizedResponse(HALF, categories=3, relation="replace"), 1, 4) * 2
    for epsilon in (0.0, 0.2, 0.6):
        assert loss.delta(epsilon).upper == pytest.approx(float(hockey(*both, order(epsilon))), rel=1e-9)


@pytest.mark.parametrize(("batch", "epsilon"), [(1, 1.0), (10, 0.5), (50, 2.0)])
def test_the_pure_bound_of_balle_barthe_and_gaboardi(batch, epsilon):
    # Balle, Barthe and Gaboardi 2018, Table 1: ε′ = log(1 + (m/n)(e^ε − 1)) and δ′ = (m/n)δ.
    expected = math.log1p(batch / 100 * math.expm1(epsilon))
    pure = draw(Pure(epsilon, relation="replace"), batch, 100)
    assert pure.epsilon(0).upper == pytest.approx(expected, rel=1e-12)
    failing = draw(Approximate(epsilon, delta=1e-5, relation="replace"), batch, 100)
    assert failing.delta(expected * (1 + 1e-9)).upper == pytest.approx(batch / 100 * 1e-5, rel=1e-6)


@pytest.mark.parametrize(
    ("population", "batch", "noise", "steps", "delta", "peer"),
    [
        (60_000, 600, 4, 1, 1e-6, 0.2601502621792418),
        (60_000, 600, 4, 1_000, 1e-6, 1.629192245961691),
    ],
)
def test_below_the_renyi_bound_of_wang_balle_and_kasiviswanathan(
    population, batch, noise, steps, delta, peer
):
    # dp-accounting 0.6.0, RdpAccountant under REPLACE_ONE with SampledWithoutReplacementDpEvent(population,
    # batch, GaussianDpEvent(noise / 2)): the Rényi bound of their 2019 paper.
    loss = draw(Gaussian(noise).under("replace"), batch, population) * steps
    found = loss.epsilon(delta)
    assert 0 < found.lower <= found.upper < peer / 1.9
    assert found.upper <= 1.2 * found.lower


def test_parameters_with_one_for_poisson_and_more_than_ten_without_replacement():
    # Lebeda, Regehr, Kamath and Steinke 2025, abstract: such parameters exist; these are ours.
    poisson = (Gaussian(0.55).poisson(1e-4) * 10_000).epsilon(1e-6)
    least = draw(Gaussian(0.55).under("replace"), 100, 10**6).attained() * 10_000
    assert poisson.upper < 1.1 and least.epsilon(1e-6).lower > 10


def test_one_gaussian_release_is_known_to_the_last_digits():
    bound = draw(Gaussian(4, relation="replace"), 600, 60_000).epsilon(1e-6)
    assert bound.upper - bound.lower < 1e-11
    assert bound.upper == pytest.approx(Gaussian(2).poisson(0.01).epsilon(1e-6).upper, abs=1e-11)


@settings(max_examples=15)
@given(
    batch=st.integers(1, 98),
    scale=st.fractions(Fraction(1, 4), Fraction(4)),
    epsilon=st.floats(-3, 3),
)
def test_a_smaller_batch_never_costs_more(batch, scale, epsilon):
    base = Laplace(scale, relation="replace")
    less, more = (draw(base, size, 99).directions()[0][0][0] for size in (batch, batch + 1))
    at = np.array([epsilon])
    assert less.hockey(at)[0][0] <= more.hockey(at)[1][0]
    assert more.hockey(at)[1][0] <= base.directions()[0][0][0].hockey(at)[1][0] + 1e-12


@settings(max_examples=8)
@given(batch=st.integers(1, 9), count=st.integers(1, 40), noise=st.fractions(Fraction(1, 2), Fraction(4)))
def test_more_releases_never_cost_less_and_the_order_does_not_matter(batch, count, noise):
    step = draw(RandomizedResponse(noise / (noise + 1), relation="replace"), batch, 10)
    other = Pure(noise, relation="replace")
    assert (step * count).delta(0.1).lower <= (step * (count + 1)).delta(0.1).upper
    assert step * count + other == other + step * count
    assert Loss.from_json((step * count).to_json()) == step * count


def test_the_pair_is_its_own_reverse_and_moments_are_above_the_witness():
    loss = draw(Gaussian(2).under("replace"), 5, 50)
    ((pair, _),) = loss.directions()[0]
    assert pair.reversed() == pair and len(loss.directions()) == 1
    assert loss.attained() == Sighting(Gaussian(2, relation="replace"), Fraction(1, 10))
    for alpha in (1, 1.5, 4, 32):
        bound = loss.renyi(alpha)
        assert 0 < bound.lower <= bound.upper <= 2.5 * bound.lower
    assert loss.zcdp().upper == 0.5
    assert loss.group(2).epsilon(1e-6).upper > loss.epsilon(1e-6).upper


def test_the_whole_population_is_no_sample():
    base = Pure(1, relation="replace")
    assert draw(base, 7, 7) == base


def test_what_no_theorem_covers_is_refused_with_a_remedy_that_works():
    with pytest.raises(RelationMismatch, match=r"under replace.*add_remove.*loss\.under\(\"replace\"\)"):
        draw(Gaussian(4), 10, 100)
    assert draw(Gaussian(4).under("replace"), 10, 100).relation == "replace"
    with pytest.raises(RelationMismatch, match="zero_out"):
        draw(Pure(1, relation="zero_out"), 10, 100)
    with pytest.raises(NotSound, match="fresh sample"):
        draw(ZeroConcentrated(1, relation="replace"), 10, 100)


def test_numbers_out_of_range_are_refused_by_name():
    base = Pure(1, relation="replace")
    with pytest.raises(InvalidArgument, match="batch must not be larger than population"):
        draw(base, 11, 10)
    with pytest.raises(InvalidArgument, match="batch must be a whole number"):
        draw(base, 0, 10)
    with pytest.raises(InvalidArgument, match="population must be a whole number"):
        WithoutReplacement(base, 1, 0.5)
    with pytest.raises(InvalidArgument, match="loss must be a loss"):
        draw(1, 1, 2)


def test_a_shuffled_collection_is_not_sampled():
    """A batch of 10 does not hold 10,000 reports."""
    with pytest.raises(NotSound, match="may not hold"):
        Pure(1, relation="replace").shuffled(10_000).without_replacement(10, 100)
