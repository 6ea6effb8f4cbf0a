"""Several evaluations of a step: each is charged, none beyond, and the optimizer sees no loss."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.clipping import Flat
from dalenius.learn.closures import Evaluated, check_closure, evaluations, for_each, several
from dalenius.learn.correlated import correlated
from dalenius.learn.sampling.cyclic import Cyclic
from dalenius.losses import Gaussian, Laplace


def test_the_optimizer_sees_how_often_it_asked_and_no_more_gradients_than_charged() -> None:
    made_up: list[int] = []
    closure = Evaluated(made_up.append, 2)
    assert [closure() for _ in range(4)] == [1, 2, 3, 4]
    assert made_up == [0, 1]


def test_evaluations_are_the_optimizers_limit() -> None:
    model = torch.nn.Linear(3, 1)
    assert evaluations(torch.optim.SGD(model.parameters(), lr=0.1)) == 1
    assert evaluations(torch.optim.LBFGS(model.parameters(), max_iter=4)) == 4
    assert evaluations(torch.optim.LBFGS(model.parameters(), max_iter=9, max_eval=2)) == 2


def test_line_searches_are_refused() -> None:
    optimizer = torch.optim.LBFGS(torch.nn.Linear(3, 1).parameters(), line_search_fn="strong_wolfe")
    with pytest.raises(NotSound, match="line_search_fn=None"):
        evaluations(optimizer)


def test_lbfgs_makes_as_many_evaluations_as_are_allowed_and_stops_by_gradients_alone() -> None:
    model, made_up = torch.nn.Linear(3, 1), list[int]()

    def evaluate(number: int) -> None:
        made_up.append(number)
        for one in model.parameters():
            one.grad = torch.full_like(one, 1.0 + number)

    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)
    optimizer.step(Evaluated(evaluate, evaluations(optimizer)))
    assert made_up == [0, 1, 2, 3, 4]


def test_what_is_not_covered_is_refused() -> None:
    check_closure(None, False)
    with pytest.raises(InvalidArgument, match="closure"):
        check_closure(None, True)
    with pytest.raises(NotSound):
        several(Laplace(1), 2)
    with pytest.raises(NotSound, match="one gradient"):
        correlated(Cyclic(100, batch_size=10, steps=10), Flat(1), evaluations=2)


def test_several_releases_as_one_are_never_undercharged() -> None:
    for count in (1, 2, 3, 7):
        one = several(Gaussian(3), count)
        assert isinstance(one, Gaussian) and one.noise_multiplier**2 * count <= 9
        assert one.noise_multiplier**2 * count == pytest.approx(9, rel=1e-8)


@pytest.mark.parametrize("count", [1, 2, 7, 20, 1000])
def test_noise_for_each_of_several_is_enough_and_no_more_than_that(count: int) -> None:
    wanted = Fraction(1234567, 10**6)
    together = several(Gaussian(for_each(wanted, count)), count)
    assert isinstance(together, Gaussian)
    assert wanted <= together.noise_multiplier <= wanted * (1 + Fraction(1, 10**8))
