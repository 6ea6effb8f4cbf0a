from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dalenius.losses.laplace import Laplace
from dalenius.losses.pure import Pure
from dalenius.losses.raw import DiscretePair


def test_a_number_is_read_as_the_decimal_it_prints():
    for tenth in (0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)):
        assert Laplace(tenth).scale == Fraction(1, 10)
    assert DiscretePair(np.array([0.1, 0.9]), [0.5, 0.5]).p == (Fraction(1, 10), Fraction(9, 10))


def test_a_loss_is_frozen_and_compared_by_value():
    loss = Laplace(0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.scale = 2
    assert loss == Laplace(Fraction(1, 10)) and hash(loss) == hash(Laplace(Fraction(1, 10)))
    assert loss != Laplace(0.1, relation="replace")


def test_an_argument_left_out_is_missed():
    with pytest.raises(TypeError, match="scale"):
        Laplace()
    with pytest.raises(TypeError, match="epsilon"):
        Pure()


def test_the_questions_keep_their_names():
    assert callable(Pure(1).epsilon) and callable(Pure(1).delta)
    assert Pure(1).limit == 1
