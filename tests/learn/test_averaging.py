"""Averages of weights: as the formulas say, on a copy, after every step of the optimizer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dalenius.errors import InvalidArgument
from dalenius.learn.averaging import Average


def run(average_of: dict[str, object], steps: int = 30) -> tuple[list[float], Average, nn.Linear]:
    """A weight that goes 1, 2, 3, … and its average."""
    model = nn.Linear(1, 1, bias=False).double()
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    average = Average(model, **average_of).follow(optimizer)  # type: ignore[arg-type]
    seen = []
    for _ in range(steps):
        model.weight.grad = -torch.ones_like(model.weight)
        optimizer.step()
        seen.append(float(model.weight.detach()))
    return seen, average, model


def weight(model: nn.Module) -> float:
    return float(next(model.parameters()).detach())


def test_an_exponential_average_warms_up() -> None:
    seen, average, _ = run({"decay": 0.6})
    expected = seen[0]
    for t, one in enumerate(seen[1:], 1):
        share = min(0.6, (1 + t) / (10 + t))
        expected = share * expected + (1 - share) * one
    assert weight(average.model()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("start", [0, 7, 29])
def test_a_uniform_average_is_the_mean_since_its_start(start: int) -> None:
    seen, average, _ = run({"decay": None, "start": start})
    assert weight(average.model()) == pytest.approx(sum(seen[start:]) / len(seen[start:]), rel=1e-12)


def test_before_its_start_it_is_the_last_weights() -> None:
    seen, average, _ = run({"start": 50})
    assert weight(average.model()) == seen[-1]


def test_the_model_in_training_is_left_alone() -> None:
    seen, average, model = run({})
    published = average.model()
    nn.init.zeros_(published.weight)  # type: ignore[arg-type]
    assert weight(model) == seen[-1]
    assert weight(average.model()) != 0


def test_frozen_and_tied_parameters_stay_as_they_are() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    model[0].bias.requires_grad_(False)
    average = Average(model, decay=None)
    average.update()
    found = average.model()
    assert isinstance(found, nn.Sequential) and found[1].weight is found[0].weight
    assert torch.equal(found[0].bias, model[0].bias) and not found[0].bias.requires_grad


def test_a_state_is_saved_and_loaded() -> None:
    _, average, model = run({"decay": 0.9})
    other = Average(model, decay=0.9)
    other.load_state_dict(average.state_dict())
    for one in (average, other):
        one.update()
    assert weight(average.model()) == weight(other.model())


def test_a_receipt_can_say_it() -> None:
    model = nn.Linear(1, 1)
    assert Average(model, start=3).how == "exponential average, decay 0.999, of the weights since step 3"
    assert Average(model, decay=None).how == "mean of the weights since step 0"
    with pytest.raises(InvalidArgument):
        Average(model, decay=1.0)
