"""Runs with closures: every evaluation carries its own noise and is charged, and no loss is shown."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.closures import evaluations, several
from dalenius.learn.private import Private
from dalenius.losses import Gaussian, Laplace


def made(noise_multiplier: float = 2, **more: Any) -> tuple[Private, torch.optim.LBFGS]:
    model = torch.nn.Linear(3, 1).double()
    optimizer = torch.optim.LBFGS(model.parameters(), **{"lr": 0.1, "max_iter": 4, **more})
    rows = torch.arange(180, dtype=torch.float64).reshape(60, 3) / 180
    given: dict[str, Any] = {"batch_size": 20, "steps": 3, "clip": 1, "public_size": 60}
    return Private(model, optimizer, rows, noise_multiplier=noise_multiplier, chunk=5, **given), optimizer


def run(private: Private) -> list[Tensor]:
    """The private gradients, as the optimizer saw them."""
    seen: list[Tensor] = []
    release = private._sum.release

    def noted(*args: Any, **named: Any) -> None:
        release(*args, **named)
        seen.append(torch.cat([one.grad.flatten() for one in private.model.names if one.grad is not None]))

    private._sum.release = noted  # type: ignore[method-assign]
    for (x,) in private.loader:

        def closure(x: Tensor = x) -> Tensor:
            private.zero_grad()
            loss = private.model(x).square().sum(1).mean()
            loss.backward()
            return loss

        private.step(closure)
    return seen


def test_every_evaluation_is_charged_before_sampling() -> None:
    private, _ = made()
    assert private.cost == Gaussian(1).poisson(Fraction(1, 3)) * 3
    assert made(2, max_iter=9, max_eval=1)[0].cost == Gaussian(2).poisson(Fraction(1, 3)) * 3


def test_a_run_makes_as_many_releases_as_were_charged_each_with_its_own_noise() -> None:
    private, _ = made(100)
    start = [one.detach().clone() for one in private.model.names]
    seen = run(private)
    assert private.steps == 3 and len(seen) == 12
    assert len({tuple(one.tolist()) for one in seen}) == 12
    assert all(
        not torch.equal(one, two.detach()) for one, two in zip(start, private.model.names, strict=True)
    )


def test_with_next_to_no_noise_the_gradients_are_those_of_the_whole_batch() -> None:
    """All rows in every batch, in one chunk though chunks were to have five rows."""
    rows = torch.arange(180, dtype=torch.float64).reshape(60, 3) / 180
    model = torch.nn.Linear(3, 1).double()
    twin = torch.nn.Linear(3, 1).double()
    twin.load_state_dict(model.state_dict())
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    given: dict[str, Any] = {"batch_size": 60, "steps": 1, "clip": 20, "noise_multiplier": 1e-5}
    private = Private(model, optimizer, rows, chunk=5, **given)
    seen = run(private)
    other = torch.optim.LBFGS(twin.parameters(), lr=0.1, max_iter=3, tolerance_change=0)

    def closure() -> Tensor:
        other.zero_grad()
        loss = twin(rows).square().sum(1).mean()
        loss.backward()
        return loss

    other.step(closure)
    assert len(seen) == 3
    for one, two in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-3)


def test_line_searches_are_refused() -> None:
    with pytest.raises(NotSound, match="line_search_fn=None"):
        made(line_search_fn="strong_wolfe")


def test_a_step_without_closure_is_refused_before_anything_is_released() -> None:
    private, _ = made()
    next(iter(private.loader))
    with pytest.raises(InvalidArgument, match="closure"):
        private.step()


def test_such_a_run_is_not_saved(tmp_path: Path) -> None:
    private, _ = made()
    run(private)
    with pytest.raises(NotSound):
        private.save(tmp_path / "run.state")


def test_correlated_noise_and_other_laws_are_refused() -> None:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters())
    given: dict[str, Any] = {"batch_size": 20, "steps": 3, "clip": 1, "noise_multiplier": 1}
    with pytest.raises(NotSound, match="one gradient"):
        Private(model, optimizer, torch.ones(60, 3), sampling="cyclic", **given)
    with pytest.raises(NotSound):
        several(Laplace(1), 2)


def test_other_optimizers_take_a_closure_too() -> None:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert evaluations(optimizer) == 1
    given: dict[str, Any] = {"batch_size": 20, "steps": 3, "clip": 1, "noise_multiplier": 1}
    private = Private(model, optimizer, torch.ones(60, 3), chunk=5, **given)
    assert len(run(private)) == 3
