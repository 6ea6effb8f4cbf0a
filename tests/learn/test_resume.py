"""A run that is broken off goes on as if it had not been, and what cannot go on so is charged again."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound
from dalenius.learn.averaging import Average
from dalenius.learn.private import Private
from dalenius.losses import Gaussian

from . import resumable
from .resumable import (
    SAVED,
    STEPS,
    STOPPED,
    arguments,
    begun,
    charges,
    in_memory,
    noise_of,
    other_rows,
    refused,
    stopped,
    train,
    weights,
)

# Deaths.


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("killed")
    root = Path(__file__).parents[2]
    command = [sys.executable, resumable.__file__ or "", str(folder)]
    settings = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=settings, timeout=3600)
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found


@pytest.mark.parametrize("point", resumable.POINTS)
def test_a_run_killed_at_any_point_ends_with_the_same_bits_and_pays_nothing_more(
    killed: dict[str, Any], point: str
) -> None:
    found = killed["points"][point]
    assert found["weights"] == killed["whole"]["weights"]
    assert found["more"] == 0
    # Before the first state is there a run cannot be resumed: it is begun, and charged, anew.
    assert found["charges"] == (1 if found["resumed"] else 2)


def test_a_run_killed_again_and_again_at_random_ends_with_the_same_bits(killed: dict[str, Any]) -> None:
    assert killed["random"]["weights"] == killed["whole"]["weights"]
    assert killed["random"]["more"] == 0


# Other sums.


def test_steps_whose_sums_are_others_get_fresh_noise_and_are_charged(tmp_path: Path) -> None:
    paid = in_memory()
    first = stopped(tmp_path / "run.state", paid=paid)
    spent = paid.spent.epsilon
    assert charges(paid) == 1
    given = {**arguments(), "data": other_rows()}
    private = Private.resume(tmp_path / "run.state", account=paid, **given)
    planned, noise = private.cost, noise_of(private)
    train(private)
    again = STOPPED - SAVED
    assert charges(paid) == 1 + again and paid.spent.epsilon > spent
    assert private.cost == planned + Gaussian(1).poisson(private.sampling.rate) * again
    assert private.spent.epsilon(1e-5).lower > planned.epsilon(1e-5).upper
    assert any(f"each charged by itself: {again}" in bound for bound in private.receipt.bounds)
    for step in range(SAVED, STOPPED):
        assert not any(torch.allclose(a, b, atol=0.1) for a, b in zip(first[step], noise[step], strict=True))


def test_steps_whose_sums_are_the_same_get_the_same_noise(tmp_path: Path) -> None:
    first = stopped(tmp_path / "run.state")
    private = Private.resume(tmp_path / "run.state", **arguments())
    noise = noise_of(private)
    train(private)
    for step in range(SAVED, STOPPED):
        assert all(torch.equal(a, b) for a, b in zip(first[step], noise[step], strict=True))


def test_what_was_made_again_is_not_charged_once_more(tmp_path: Path) -> None:
    paid, path = in_memory(), tmp_path / "run.state"
    stopped(path, paid=paid)
    given = {"data": other_rows()}
    private = Private.resume(path, account=paid, **{**arguments(), **given})
    train(private, until=STOPPED - 1)
    half = weights(private)
    private.close()
    assert charges(paid) == 1 + STOPPED - 1 - SAVED
    private = Private.resume(path, account=paid, **{**arguments(), **given})
    train(private, until=STOPPED - 1)
    assert weights(private) == half and charges(paid) == 1 + STOPPED - 1 - SAVED
    train(private)
    # The last step that the first run made was on a way that is not gone any more.
    assert charges(paid) == 1 + STOPPED - SAVED


def test_an_attempt_is_refused_before_data_are_read_where_the_budget_ends(
    tmp_path: Path, monkeypatch: Any
) -> None:
    def full(*_: Any) -> BudgetExceeded:
        return BudgetExceeded("Too little is left.", remedy="")

    paid = in_memory(epsilon=begun().cost.epsilon(1e-5).upper * 1.05)
    stopped(tmp_path / "run.state", paid=paid)
    private = Private.resume(tmp_path / "run.state", account=paid, **{**arguments(), "data": other_rows()})
    before = weights(private)
    # What would fit is looked for at length.
    monkeypatch.setattr(paid, "_refusal", full)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            train(private)
    assert private.steps == SAVED and weights(private) == before and charges(paid) == 1


def test_a_state_whose_way_was_left_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    private = begun()
    train(private, until=SAVED)
    private.save(path)
    older = path.read_bytes()
    train(private, until=STOPPED)
    private.save(path)
    private.close()
    newer = path.read_bytes()
    path.write_bytes(older)
    private = Private.resume(path, **{**arguments(), "data": other_rows()})
    train(private, until=SAVED + 1)
    private.close()
    path.write_bytes(newer)
    refused(path, "went another way")


@pytest.mark.parametrize("change", [False, True])
def test_averages_and_correlated_noise_go_on(tmp_path: Path, change: bool) -> None:
    def kept() -> dict[str, Any]:
        found = arguments()
        average = Average(found["model"], decay=0.5)
        return {**found, "clip": 1, "sampling": "cyclic", "bands": 3, "average": average}

    whole = begun(**kept())
    noise = noise_of(whole)
    train(whole)
    stopped(tmp_path / "run.state", **kept())
    more = {"data": other_rows()} if change else {}
    private = Private.resume(tmp_path / "run.state", **{**kept(), **more})
    again = noise_of(private)
    train(private)
    assert private._attempts.more == (STOPPED - SAVED if change else 0)
    same = [all(map(torch.equal, noise[step], again[step])) for step in range(SAVED, STEPS)]
    # Noise of three steps is in each: two more have a part that was drawn anew.
    assert same == [not change] * (STEPS - SAVED) if not change else not any(same[: STOPPED - SAVED + 2])
    if not change:
        assert weights(private) == weights(whole)
        assert str(private.average.state_dict()) == str(whole.average.state_dict())
    refused(tmp_path / "run.state", "another average", **{**kept(), "average": None})


# Within one process.


def test_a_step_broken_off_after_its_noise_is_charged_again() -> None:
    paid = in_memory()
    private = begun(account=paid)
    noise, move = noise_of(private), private.optimizer.step

    def broken() -> None:
        raise KeyboardInterrupt

    private.optimizer.step = broken  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        train(private)
    first = noise[0]
    private.optimizer.step = move  # type: ignore[method-assign]
    train(private)
    assert charges(paid) == 2 and private._attempts.more == 1
    assert not any(torch.allclose(a, b, atol=0.1) for a, b in zip(first, noise[0], strict=True))


def test_a_batch_broken_off_before_its_noise_is_drawn_anew_and_no_row_counts_twice() -> None:
    whole = begun()
    train(whole)
    private = begun()
    for number, (x, y) in enumerate(private.loader):
        private.zero_grad()
        torch.nn.functional.cross_entropy(private.model(x), y).backward()
        private.step()
        if number == 3:
            break
    assert private.steps == 0
    train(private)
    assert weights(private) == weights(whole) and private._attempts.more == 0


def test_two_loops_at_once_are_refused() -> None:
    private = begun()
    one, two = iter(private.loader), iter(private.loader)
    for loop in (one, two):
        x, y = next(loop)
        private.zero_grad()
        torch.nn.functional.cross_entropy(private.model(x), y).backward()
        private.step()
    with pytest.raises(InvalidArgument, match="Another loop"):
        next(one)


def test_a_run_does_not_go_back_and_is_not_copied() -> None:
    private = begun()
    train(private, until=2)
    with pytest.raises(NotSound, match="copied"):
        copy.deepcopy(private)
    private.steps = 0
    with pytest.raises(NotSound, match="made before"):
        train(private)


def test_a_run_whose_charge_was_refused_is_refused_the_next_time_too() -> None:
    paid = in_memory(epsilon=begun().cost.epsilon(1e-5).upper * 1.5)
    private, other = begun(account=paid), begun(account=paid)
    train(other, until=1)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            train(private)
