"""What holds of every loss, whatever it describes: looked for a counterexample among all schemes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.losses import GNMax, Laplace, LastIterate, LNMax, LocalRandomizer, Loss, Pure
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.streams import BandedSquareRoot, BinaryTree, SquareRoot, min_separation

HAIR = 1e-9
"""More than the width of an answer, relative to it."""


def descent(steps: int) -> Loss:
    return LastIterate(
        lipschitz=1, smoothness=1, strong_convexity=Fraction(1, 10), learning_rate=1, noise=20, steps=steps,
        population=40,
    )  # fmt: skip


def replaced(loss: Loss) -> Loss:
    return loss.under("replace")


SCHEMES = {
    "poisson": lambda n: Gaussian(n).poisson(Fraction(1, 10)),
    "truncated_poisson": lambda n: Laplace(n).truncated_poisson(Fraction(1, 10), population=30, cap=6),
    "without_replacement": lambda n: replaced(Laplace(n)).without_replacement(3, 30),
    "random_allocation": lambda n: Pure(Fraction(1, n)).random_allocation(20),
    "shuffled": lambda n: RandomizedResponse(0.5, categories=n + 1, relation="replace").shuffled(200),
    "local_randomizer": lambda n: LocalRandomizer(Fraction(1, n), blanket=Fraction(9, 10)).shuffled(50),
    "last_iterate": lambda n: descent(n),
    "square_root": lambda n: SquareRoot(16).loss(4 * n),
    "tree": lambda n: BinaryTree(16).loss(4 * n, min_separation(5)),
    "bands": lambda n: BandedSquareRoot(16, 4).amplified(n, Fraction(1, 5)),
    "selected": lambda n: Pure(Fraction(1, n)).selected(stop=Fraction(1, 5)),
    "poisson_selected": lambda n: Pure(Fraction(1, n)).selected(mean=3),
    "gnmax": lambda n: GNMax(10 * n),
    "lnmax": lambda n: LNMax(5 * n),
}
"""A loss of each scheme, by a small whole number."""
EACH = pytest.mark.parametrize("scheme", SCHEMES)
NUMBERS = st.integers(2, 6)


def no_more(less: Loss, more: Loss, delta: float) -> bool:
    """Whether the one does not cost more than the other, as far as can be told."""
    return less.epsilon(delta).lower <= more.epsilon(delta).upper * (1 + HAIR) + HAIR


@EACH
@settings(max_examples=2, deadline=None)
@given(number=NUMBERS, count=st.integers(1, 3), delta=st.sampled_from([1e-3, 1e-6]))
def test_more_compositions_never_cost_less(scheme: str, number: int, count: int, delta: float) -> None:
    one = SCHEMES[scheme](number)
    fewer, more = (one * count).epsilon(delta), (one * (count + 1)).epsilon(delta)
    assert fewer.lower <= more.upper and fewer.upper <= more.upper * (1 + 1e-3) + HAIR


@EACH
@settings(max_examples=2, deadline=None)
@given(number=NUMBERS, other=NUMBERS)
def test_composition_commutes(scheme: str, number: int, other: int) -> None:
    one = SCHEMES[scheme](number)
    two = Laplace(other, relation=one.relation)
    assert (one + two).epsilon(1e-5) == (two + one).epsilon(1e-5)


@EACH
@settings(max_examples=2, deadline=None)
@given(number=NUMBERS, delta=st.sampled_from([1e-2, 1e-5]))
def test_json_evaluates_the_same(scheme: str, number: int, delta: float) -> None:
    one = SCHEMES[scheme](number)
    again = Loss.from_json(one.to_json())
    assert again == one and again.epsilon(delta) == one.epsilon(delta)


@settings(max_examples=4, deadline=None)
@given(
    scale=st.integers(1, 4),
    rates=st.tuples(st.integers(1, 20), st.integers(1, 20)).map(sorted),
    delta=st.sampled_from([1e-3, 1e-6]),
)
def test_a_smaller_rate_never_costs_more(scale: int, rates: list[int], delta: float) -> None:
    small, large = (Fraction(rate, 20) for rate in rates)
    noise = Laplace(scale)
    assert no_more(noise.poisson(small), noise.poisson(large), delta)
    few, many = rates
    away = replaced(noise)
    assert no_more(away.without_replacement(few, 20), away.without_replacement(many, 20), delta)
    # More steps to be allocated to are fewer chances to be seen in each.
    bits = Pure(Fraction(1, scale))
    assert no_more(bits.random_allocation(21 - few), bits.random_allocation(21 - many), delta)
    assert no_more(
        noise.truncated_poisson(small, population=30, cap=8),
        noise.truncated_poisson(large, population=30, cap=8),
        delta,
    )


@settings(max_examples=10, deadline=None)
@given(n=st.tuples(st.integers(2, 5000), st.integers(2, 5000)).map(sorted), local=st.integers(1, 4))
def test_more_reporters_never_cost_more(n: list[int], local: int) -> None:
    report = Pure(local, relation="replace")
    few, many = (report.shuffled(reporters).epsilon(1e-6) for reporters in n)
    assert many.lower <= few.upper and many.upper <= few.upper * (1 + 1e-3)


@pytest.mark.parametrize("scheme", ["poisson", "random_allocation", "square_root", "gnmax", "lnmax", "bands"])
@settings(max_examples=2, deadline=None)
@given(number=NUMBERS, delta=st.sampled_from([1e-3, 1e-6]))
def test_replace_costs_no_less_than_add_remove(scheme: str, number: int, delta: float) -> None:
    one = SCHEMES[scheme](number)
    assert one.epsilon(delta).upper <= one.under("replace").epsilon(delta).upper * (1 + HAIR)
