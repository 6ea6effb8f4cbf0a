"""What is asked wrongly is told in words, and the remedy works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dalenius as dp
from dalenius.errors import DaleniusError
from dalenius.learn.sampling import Poisson

from .runs import data, network, run_of, train

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a cap without cutting": ({"cap": 5}, "cap is for"),
    "bands without an order": ({"bands": 4}, "bands is for"),
    "cutting without a cap": ({"sampling": "truncated_poisson", "public_size": 40}, "Pass cap"),
    "an unknown sampling": ({"sampling": "shuffle"}, "sampling is one of"),
    "a sampling of other data": ({"sampling": Poisson(9, batch_size=8, steps=3)}, "another length"),
    "no delta": ({"noise_multiplier": None, "epsilon": 1}, "without a delta"),
    "noise beyond 32 bits": ({"noise_multiplier": 10**8}, "bits"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_argument_is_told(wrong: str) -> None:
    more, said = WRONG[wrong]
    with pytest.raises(DaleniusError, match=said) as caught:
        run_of(network(), data(40), **more)
    assert caught.value.remedy


def test_what_is_no_model_no_optimizer_or_no_data_is_told() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    asked = {"batch_size": 8, "steps": 3, "clip": 1, "noise_multiplier": 1}
    x, y = data(40)
    for wrong in ((3, optimizer, (x, y)), (model, "sgd", (x, y)), (model, optimizer, (x, y[:9]))):
        with pytest.raises(dp.errors.InvalidArgument):
            dp.learn.Private(*wrong, **asked)  # type: ignore[arg-type]
    with pytest.raises(dp.errors.InvalidArgument, match="inputs and a target"):
        dp.learn.fit(nn.Linear(5, 3), x, epsilon=1, delta=1e-6, progress=False)


def test_a_number_of_rows_that_is_private_to_an_account_must_be_declared(tmp_path: Path) -> None:
    ledger = dp.Ledger(str(tmp_path / "people.ledger"))
    people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=9, delta=1e-5))
    with pytest.raises(DaleniusError, match="public_size"):
        run_of(network(), data(40), account=people, noise_multiplier=9)
    run_of(network(), data(40), account=people, noise_multiplier=9, public_size=40)


def test_a_missing_receipt_is_told(tmp_path: Path) -> None:
    with pytest.raises(dp.errors.InvalidArgument, match="no receipt"):
        dp.learn.read_receipt(tmp_path / "nothing.safetensors")


def test_much_noise_is_found_for_little_epsilon() -> None:
    private = run_of(network(), data(40), noise_multiplier=None, epsilon=0.01, delta=1e-9, public_size=40)
    assert private.cost.epsilon(1e-9).upper <= 0.01


def test_two_loops_side_by_side_do_not_meet() -> None:
    """Batches of different sizes: each loss is of the rows of its own model."""
    one, two = (run_of(network(), data(60, seed=i), batch_size=8 + 20 * i, public_size=60) for i in range(2))
    for (x, y), (u, v) in zip(one.loader, two.loader, strict=False):
        for private, inputs, labels in ((one, x, y), (two, u, v)):
            private.zero_grad()
            nn.functional.cross_entropy(private.model(inputs), labels).backward()
            private.step()
    assert one.steps == two.steps == 3
    train(run_of(network(), data(40)))
