"""A run is paid for as a whole or stretch by stretch, before each; who stops early has paid for no more."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from dalenius import learn as dp_learn
from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound
from dalenius.learn.export import read_receipt
from dalenius.learn.private import Private
from dalenius.learn.sampling import Cyclic, Poisson, RandomAllocation
from dalenius.losses import Gaussian

from .resumable import STEPS, arguments, begun, charges, in_memory, other_rows, train, weights
from .runs import data, network, run_of

DELTA = 1e-5
RATE = Fraction(1, 5)


def run(account: Any = None, **more: Any) -> Private:
    given = {"steps": 40, "public_size": 40, "delta": DELTA, "by": "ana", "account": account} | more
    return run_of(network(), data(40), **given)


def go(private: Private, until: int) -> None:
    for x, y in private.batches():
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        if private.steps == until:
            return


def test_a_run_that_stops_early_has_paid_for_the_steps_it_made(tmp_path: Path) -> None:
    account = in_memory()
    private = run(account, pay=4)
    assert private.spent.epsilon(0).upper == 0 and charges(account) == 0
    go(private, 4)
    four = Poisson(40, batch_size=8, steps=4, public_size=40).loss(Gaussian(1))
    assert private.spent == four and charges(account) == 1
    other = in_memory()
    other.record(four, by="ana")
    assert account.spent.epsilon == other.spent.epsilon
    assert private.cost == Gaussian(1).poisson(RATE) * 40
    assert private.spent.epsilon(DELTA).upper < private.cost.epsilon(DELTA).lower / 2
    private.export(tmp_path / "model")
    receipt = read_receipt(tmp_path / "model")
    assert receipt.loss == four and receipt.entry == private.receipt.entry and receipt.entry is not None
    assert "steps made: 4 of 40" in receipt.bounds
    assert "charged by 4 steps, before each: 4 of 40 steps" in receipt.bounds
    assert receipt.postprocessing[-1] == "exported after 4 of 40 steps"


def test_stretches_together_cost_no_less_than_the_run() -> None:
    account, whole = in_memory(), in_memory()
    private, other = run(account, pay=7), run(whole)
    assert private.cost == other.cost
    go(private, 40)
    go(other, 40)
    assert private.spent == private.cost == other.spent
    assert charges(account) == 6 and charges(whole) == 1
    assert account.spent.epsilon >= whole.spent.epsilon >= 0.99 * other.cost.epsilon(DELTA).lower


def test_an_epoch_is_paid_before_it_begins() -> None:
    account = in_memory()
    private = run(account, steps=None, epochs=3, pay="epoch")
    for epoch in range(3):
        for x, y in private.loader:
            paid = charges(account)
            private.zero_grad()
            functional.cross_entropy(private.model(x), y).backward()
            private.step()
        assert paid == epoch + 1 and private.spent == Gaussian(1).poisson(RATE) * (5 * epoch + 5)


def test_without_an_account_what_is_spent_is_counted_the_same() -> None:
    private = run(pay=4)
    go(private, 5)
    assert private.spent == Gaussian(1).poisson(RATE) * 8
    assert private.receipt.loss == private.spent and private.receipt.entry is None


def test_where_the_account_ends_the_loop_does_and_what_was_trained_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = in_memory(epsilon=4.0)
    private = run(account, pay=4)
    drawn = []
    rows = private._draws.rows
    monkeypatch.setattr(private._draws, "rows", lambda *given: drawn.append(given[1]) or rows(*given))
    monkeypatch.setattr(account, "_refusal", lambda *_: BudgetExceeded("Too little is left.", remedy=""))
    with pytest.raises(BudgetExceeded):
        go(private, 40)
    made = private.steps
    assert 4 <= made < 40 and made % 4 == 0 and drawn[-1] == made - 1
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            go(private, 40)
    assert private.steps == made and charges(account) == made // 4
    private.export(tmp_path / "model")
    assert read_receipt(tmp_path / "model").loss == Gaussian(1).poisson(RATE) * made


def test_a_run_whose_first_stretch_does_not_fit_is_refused_at_once() -> None:
    with pytest.raises(BudgetExceeded):
        run(in_memory(epsilon=0.2), pay=4)


@pytest.mark.parametrize("change", [False, True])
def test_a_run_that_is_resumed_goes_on_paying(tmp_path: Path, change: bool) -> None:
    """Saved at step 3, stopped at step 6 with 8 steps paid for: the journal knows of these."""
    path, account = tmp_path / "run.state", in_memory()
    private = begun(account=account, pay=4)
    train(private, until=6, after=lambda one: one.save(path) if one.steps == 3 else None)
    private.close()
    assert charges(account) == 2
    given = {**arguments(), "pay": 4} | ({"data": other_rows()} if change else {})
    again = Private.resume(path, account=account, **given)
    step = Gaussian(1).poisson(again.sampling.rate)
    assert again.steps == 3 and again.spent == step * 8
    assert again.receipt.entry == private.receipt.entry
    train(again)
    more = 3 if change else 0
    assert charges(account) == 3 + more and again.spent == step * (STEPS + more) == again.cost
    if not change:
        whole = begun(pay=4)
        train(whole)
        assert weights(whole) == weights(again)


def test_how_a_run_is_paid_is_part_of_it(tmp_path: Path) -> None:
    private = begun(pay=4)
    train(private, until=3)
    private.save(tmp_path / "run.state")
    private.close()
    with pytest.raises(InvalidArgument, match="another pay"):
        Private.resume(tmp_path / "run.state", **arguments())


def test_stretches_without_a_loss_of_their_own_are_refused() -> None:
    for more in ({"sampling": "cyclic", "bands": 3}, {"sampling": "cyclic", "bands": 1}):
        for pay in ("epoch", 5, 10):
            with pytest.raises(NotSound, match="whole run") as caught:
                run(pay=pay, **more)
            assert 'pay="run"' in caught.value.remedy
    with pytest.raises(NotSound, match="part of an epoch"):
        run(sampling="random_allocation", pay=4)
    for pay in (0, -1, 1.5, "step"):
        with pytest.raises(InvalidArgument, match="pay"):
            run(pay=pay)


def test_random_allocation_is_paid_by_epochs() -> None:
    epoch = Gaussian(1).random_allocation(5)
    for pay in ("epoch", 5):
        private = run(sampling="random_allocation", steps=12, pay=pay)
        go(private, 6)
        assert private.spent == epoch * 2
        go(private, 12)
        # An epoch that is cut short is charged as a whole one.
        assert private.spent == private.cost == epoch * 3
    sampling = RandomAllocation(40, batch_size=8, steps=12, public_size=40)
    with pytest.raises(NotSound):
        sampling.stretch(Gaussian(1), 5, 12 - 1)
    with pytest.raises(NotSound):
        sampling.stretch(Gaussian(1), 4, 10)
    order = Cyclic(40, batch_size=8, steps=12, public_size=40, bands=3)
    assert order.stretch(Gaussian(1), 0, 12) == order.loss(Gaussian(1))


def test_a_fit_that_can_pay_no_more_returns_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    account = in_memory(epsilon=2.2)
    monkeypatch.setattr(account, "_refusal", lambda *_: BudgetExceeded("Too little is left.", remedy=""))
    given: dict[str, Any] = {"epsilon": 4, "delta": DELTA, "public_size": 40, "batch_size": 8, "epochs": 8}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = dp_learn.fit(
            torch.nn.Linear(5, 3), data(40), account=account, by="ana", pay="epoch", progress=False, **given
        )
    assert 0 < found.steps < 40 and found.steps % 5 == 0
    assert any(f"after {found.steps} of 40 steps" in str(one.message) for one in said)


def test_the_bar_of_a_fit_follows_what_is_spent(capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {"epsilon": 4, "delta": DELTA, "public_size": 40, "batch_size": 8, "epochs": 2}
    found = dp_learn.fit(torch.nn.Linear(5, 3), data(40), pay="epoch", **given)
    assert f"{found.receipt.cost} so far" in capsys.readouterr().out.replace("\n", " ")
