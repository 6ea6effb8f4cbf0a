"""Losses carried over to the replace relation: never below what the two-step path really costs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.errors import InvalidArgument, RelationMismatch
from dalenius.losses import (
    Approximate,
    DiscretePair,
    Gaussian,
    GaussianDP,
    Laplace,
    Loss,
    Pure,
    ZeroConcentrated,
)
from dalenius.losses.carried import Carried


@pytest.mark.parametrize(
    ("loss", "carried"),
    [
        (Pure(0.5), Pure(1, relation="replace")),
        (Laplace(4), Laplace(2, relation="replace")),
        (Gaussian(3), Gaussian(3, relation="replace")),
        (GaussianDP(Fraction(1, 3)), GaussianDP(Fraction(2, 3), relation="replace")),
        (ZeroConcentrated(0.1), ZeroConcentrated(0.4, relation="replace")),
        (Pure(0.5) * 3 + Gaussian(3), Pure(1, relation="replace") * 3 + Gaussian(3, relation="replace")),
    ],
)
def test_bounded_sensitivities_double(loss: Loss, carried: Loss) -> None:
    assert loss.under("replace") == carried
    assert loss.under("add_remove") == loss


def test_a_gaussian_under_replace_is_one_of_twice_the_distance() -> None:
    assert Gaussian(3).under("replace").epsilon(1e-6).upper == pytest.approx(
        Gaussian(Fraction(3, 2)).epsilon(1e-6).upper
    )


def test_any_other_loss_is_bounded_along_the_path() -> None:
    """(ε, δ) twice: at 2ε at most (1 + e^ε)δ."""
    carried = Approximate(1, delta=1e-6).under("replace")
    assert isinstance(carried, Carried)
    assert carried.relation == "replace"
    assert carried.delta(2).upper == pytest.approx((1 + 2.718281828) * 1e-6, rel=1e-6)
    assert Loss.from_json(carried.to_json()) == carried
    assert (carried * 2).epsilon(1e-4).upper <= 4 + 1e-9
    assert carried.group(3).delta(6).upper >= carried.delta(2).upper


def test_a_subsampled_release_under_replace_costs_at_least_what_a_swap_does() -> None:
    """One value moves from +1 to −1 on a Poisson sample: the exact pair, on a fine grid of outcomes."""
    rate, noise = Fraction(1, 10), 2.0
    loss = Gaussian(Fraction(noise)).poisson(rate)
    import numpy as np
    from scipy.stats import norm

    x = np.linspace(-14, 14, 4001)
    step = x[1] - x[0]
    p, q = ((1 - 0.1) * norm.pdf(x) + 0.1 * norm.pdf(x, s / noise) for s in (1, -1))
    for epsilon in (0.05, 0.1, 0.3):
        truth = float(np.maximum(p - np.exp(epsilon) * q, 0).sum() * step)
        assert loss.under("replace").delta(epsilon).upper >= truth * (1 - 1e-6)


def test_what_no_theorem_carries_over_is_refused() -> None:
    with pytest.raises(RelationMismatch):
        Pure(1, relation="replace").under("add_remove")
    with pytest.raises(RelationMismatch):
        Gaussian(1).under("zero_out")
    with pytest.raises(InvalidArgument):
        Carried(Pure(1), "add_remove")
    with pytest.raises(InvalidArgument):
        Pure(1).under("swap")  # type: ignore[arg-type]


def test_a_pair_of_its_own_is_carried_too() -> None:
    pair = DiscretePair(p=[Fraction(3, 4), Fraction(1, 4)], q=[Fraction(1, 2), Fraction(1, 2)])
    assert pair.under("replace").epsilon(0).upper >= pair.epsilon(0).upper
