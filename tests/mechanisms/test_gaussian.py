from __future__ import annotations

import numpy as np
import pytest

from dalenius.errors import NotSound
from dalenius.losses import DiscreteGaussian
from dalenius.mechanisms import Gaussian
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity


@pytest.mark.parametrize(("epsilon", "delta", "scale"), [(1, 1e-5, 3.7306316348), (0.1, 1e-6, 36.3046904262)])
def test_analytic_calibration(epsilon: float, delta: float, scale: float) -> None:
    """Balle and Wang 2018, the exact condition, to ten digits and never below."""
    for grid in (None, Grid(-3), Grid(0)):
        exact = Gaussian.calibrate(epsilon=epsilon, delta=delta, sensitivity=1, grid=grid)
        assert scale * (1 - 1e-10) < float(exact.scale) < scale * (1 + 1e-10)
        assert exact.loss.epsilon(delta).upper <= epsilon


def test_the_textbook_formula_is_evaluated_and_refused_where_it_fails() -> None:
    """Dwork and Roth 2014, Theorem A.1."""
    assert float(Gaussian.textbook(epsilon=1, delta=1e-5, sensitivity=1).scale) == pytest.approx(4.8448052626)
    with pytest.raises(NotSound, match=r"9\.1315"):
        Gaussian.textbook(epsilon=9, delta=1e-5, sensitivity=1)


def test_the_discrete_gaussian_does_not_share_the_figure() -> None:
    assert DiscreteGaussian(3.7306).delta(1).lower == pytest.approx(1.0346e-5, rel=1e-4)


def test_vectors_pay_for_their_l2_norm() -> None:
    bound = Sensitivity(l0=9, linf=1)
    mechanism = Gaussian(scale=6, sensitivity=bound, grid=Grid(0), exact=True)
    assert mechanism.loss.zcdp().upper == pytest.approx(1 / 8)
    assert mechanism.release(np.arange(9)).value.shape == (9,)


def test_replace_is_not_charged_twice() -> None:
    once = Gaussian(scale=2, sensitivity=Sensitivity(l0=1, linf=1, relation="replace"), grid=Grid(0))
    assert once.loss.zcdp().upper == pytest.approx(1 / 8)
    assert once.loss.relation == "replace"
