from __future__ import annotations

import pytest

from dalenius.losses import Approximate, DiscreteLaplace, Gaussian, Pure
from dalenius.losses.dominated import Dominated


def test_it_evaluates_as_what_it_holds() -> None:
    loss = Approximate(0, delta=1e-6) + DiscreteLaplace(3) + Gaussian(2)
    assert Dominated(loss).epsilon(1e-5) == loss.epsilon(1e-5)
    assert (Dominated(loss) + Pure(1)).epsilon(1e-5).upper == pytest.approx(
        (loss + Pure(1)).epsilon(1e-5).upper
    )


def test_a_group_is_bounded_along_the_path_and_not_term_by_term() -> None:
    """A chance of failure of 1e-6 grows e^{(k−1)ε}-fold along a path, not k-fold."""
    loss = Approximate(0, delta=1e-6) + Pure(2)
    assert loss.group(5).delta(10).upper < 6e-6
    assert Dominated(loss).group(5).delta(10).upper > 1e-6 * 2.9**4
