from __future__ import annotations

from itertools import pairwise

import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.allocation.random_allocation import allocate
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.laplace import Laplace
from dalenius.losses.sampling.participation import participations, separated
from dalenius.losses.sampling.schemes import SHUFFLES, sampled
from dalenius.losses.sampling.truncated_poisson import truncate
from dalenius.losses.sampling.without_replacement import draw


def test_a_scheme_by_name_is_the_scheme():
    base, replaced = Gaussian(4), Gaussian(4, relation="replace")
    assert sampled(base, "poisson", sampling_rate=0.1) == base.poisson(0.1)
    cut = sampled(base, "Truncated-Poisson", sampling_rate=0.1, population=100, cap=20)
    assert cut == truncate(base, 0.1, population=100, cap=20)
    fixed = sampled(replaced, "without replacement", batch=10, population=100)
    assert fixed == draw(replaced, 10, 100)
    assert sampled(base, "random_allocation", steps=10) == allocate(base, 10)


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffled_batches_are_refused_with_the_sound_alternatives(name):
    with pytest.raises(NotSound, match="not Poisson samples") as refused:
        sampled(Laplace(1), name)
    assert "poisson" in refused.value.remedy and "random_allocation" in refused.value.remedy


def test_the_refusal_shows_what_the_poisson_figure_would_hide():
    with pytest.raises(NotSound, match=r"epsilon 10\.99 or more, where the Poisson figure is 1\.95"):
        sampled(Gaussian(0.5), "shuffle", steps=10_000, delta=1e-6)
    with pytest.raises(NotSound, match="no upper bound on what they cost is known"):
        sampled(Gaussian(20), "shuffle", steps=100)


def test_what_a_scheme_needs_is_named():
    with pytest.raises(InvalidArgument, match="poisson needs sampling_rate"):
        sampled(Gaussian(1), "poisson")
    with pytest.raises(InvalidArgument, match="poisson does not know batch"):
        sampled(Gaussian(1), "poisson", sampling_rate=0.1, batch=3)
    with pytest.raises(InvalidArgument, match="shuffle does not know epochs"):
        sampled(Gaussian(1), "shuffle", epochs=3)
    with pytest.raises(InvalidArgument, match="scheme must be one of poisson, truncated_poisson"):
        sampled(Gaussian(1), "bernoulli")
    with pytest.raises(InvalidArgument, match="loss must be a loss"):
        sampled(3, "poisson", sampling_rate=0.1)


def test_a_schedule_costs_the_steps_a_record_takes_part_in():
    # The most steps that are 4 or more apart, by trying every set of 11 steps.
    sets = (bin(bits)[:1:-1] for bits in range(1, 2**11))
    places = ([i for i, bit in enumerate(bits) if bit == "1"] for bits in sets)
    most = max(len(p) for p in places if all(b - a >= 4 for a, b in pairwise(p)))
    assert participations(11, 4) == most == 3
    assert separated(Gaussian(2), steps=300, separation=100) == Gaussian(2) * 3
    assert participations(5, 10) == 1 and participations(10, 1) == 10
    with pytest.raises(InvalidArgument, match="separation"):
        participations(10, 0)
