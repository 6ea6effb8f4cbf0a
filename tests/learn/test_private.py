"""A run does what its loss says of who takes part, what each adds, and noise; an audit from inside agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import dalenius as dp
from dalenius.audits.replaying import Recorder, replay
from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.clipping import Absolute, Automatic, PerLayer
from dalenius.learn.private import Private

from .reference import norms, per_example_gradients
from .runs import data, flat, network, run_of, train
from .test_clipping import entropies

ROWS, BATCH, STEPS = 60, 6, 40
ENTROPY = nn.CrossEntropyLoss()


def numbered(rows: int) -> tuple[Tensor, Tensor]:
    """Rows whose first feature is their number, over 100."""
    x, y = data(rows)
    x[:, 0] = torch.arange(rows) / 100
    return x, y


def bound(private: Private, clip: float) -> float:
    return clip * float(1 - private._sum.plan.numerics.slack)


def grouped(
    model: nn.Module, x: Tensor, y: Tensor, clip: float, together: int
) -> tuple[list[int], list[np.ndarray[Any, Any]]]:
    """Return the numbers of rows, and the clipped averages of their gradients over groups."""
    if not len(x):
        return [], []
    gradients = per_example_gradients(model, (x, y), entropies)
    # A row that is left over makes a group with itself.
    order = torch.arange(-(-len(x) // together) * together).clamp(max=len(x) - 1)
    groups = {
        name: part[order].view(-1, together, *part.shape[1:]).mean(1) for name, part in gradients.items()
    }
    factors = (clip / norms(groups)).clamp(max=1)
    vectors = torch.cat([part.reshape(len(factors), -1) for part in groups.values()], 1)
    return (x[:, 0] * 100).round().long().tolist(), list((vectors * factors[:, None]).double().numpy())


def recorded(private: Private, recorder: Recorder, clip: float, *, together: int = 1) -> None:
    """The loop, with what the loop over examples says of every batch beside what was released.

    With `together` above one, averages of so many examples are clipped instead, as a naive loop would.
    """
    model = private.model.inner
    seen: list[int] = []
    rows: list[np.ndarray[Any, Any]] = []
    for x, y in private.loader:
        private.zero_grad()
        with private.model.unwatched():
            there = slice(None if private._real is None else int(private._real.sum()))
            numbers, drawn = grouped(model, x[there], y[there], bound(private, clip), together)
            seen += numbers
            rows += drawn
        steps = private.steps
        ENTROPY(private.model(x), y).backward()
        private.step()
        if private.steps > steps:
            released = torch.cat([one.grad.reshape(-1) for one in model.parameters()]).double().numpy()
            divisor = float(private.sampling.expected)
            total = np.sum(rows, axis=0) if rows else np.zeros(len(released))
            recorder.step(sampled=seen, contributions=rows, total=total, released=released, divisor=divisor)
            seen, rows = [], []


def test_an_audit_from_inside_finds_nothing() -> None:
    """Clipping, noise, sampling rate, repeats and reuse: a false alarm has a chance of 1e-6."""
    private = run_of(network(), numbered(ROWS), batch_size=BATCH, steps=STEPS, clip=0.8, chunk=4, lr=0.1)
    report = replay(
        lambda recorder: recorded(private, recorder, 0.8), examples=ROWS, clip=0.8, declared=private.cost
    )
    assert report.findings == (), str(report)
    assert len(report.recorded.steps) == STEPS


def test_an_audit_from_inside_finds_clipped_averages() -> None:
    private = run_of(network(), numbered(ROWS), batch_size=BATCH, steps=STEPS, clip=0.8, lr=0.1)
    report = replay(
        lambda recorder: recorded(private, recorder, 0.8, together=2),
        examples=ROWS,
        clip=0.8,
        declared=private.cost,
    )
    assert any(one.kind == "clipping" for one in report.findings)


def test_an_audit_from_inside_finds_too_little_noise() -> None:
    private = run_of(network(), numbered(ROWS), batch_size=BATCH, steps=STEPS, clip=0.8, lr=0.1)
    declared = run_of(network(), numbered(ROWS), batch_size=BATCH, steps=STEPS, noise_multiplier=2).cost
    report = replay(
        lambda recorder: recorded(private, recorder, 0.8), examples=ROWS, clip=0.8, declared=declared
    )
    assert any(one.kind == "noise" for one in report.findings)


# The run.


@pytest.mark.parametrize("clip", [1, PerLayer(1), Automatic(1)])
@pytest.mark.parametrize("sampling", ["poisson", "truncated_poisson", "random_allocation"])
def test_every_rule_trains_with_every_sampler(clip: Any, sampling: str) -> None:
    more = {"cap": 12} if sampling == "truncated_poisson" else {}
    private = run_of(network(), data(40), clip=clip, sampling=sampling, steps=4, public_size=40, **more)
    train(private)
    assert private.steps == 4


def test_pure_privacy_by_laplace_noise() -> None:
    model = nn.Linear(5, 3)
    private = run_of(model, data(40), clip=Absolute(1), noise_multiplier=4)
    train(private)
    assert float(private.spent.epsilon(delta=0)) < 3


def test_a_run_finds_the_noise_for_its_epsilon() -> None:
    private = run_of(network(), data(40), noise_multiplier=None, epsilon=2, delta=1e-5, public_size=40)
    assert 1.9 < float(private.cost.epsilon(delta=1e-5)) <= 2


def test_a_run_learns() -> None:
    x, _ = data(2000)
    y = (x[:, 0] + x[:, 1] > 0).long()
    model = nn.Linear(5, 2)
    train(run_of(model, (x, y), batch_size=200, steps=60, noise_multiplier=1, public_size=2000))
    assert float((model(x).argmax(1) == y).float().mean()) > 0.9


def test_chunks_do_not_change_what_a_step_is() -> None:
    """With next to no noise and everybody in every batch, chunks of any size end in the same weights."""
    ends = []
    for chunk in (1, 3, 7, 512):
        model = network()
        private = run_of(
            model, data(10), batch_size=10, public_size=10, steps=2, noise_multiplier=1e-6, chunk=chunk
        )
        train(private)
        ends.append(flat(model))
    for one in ends[1:]:
        torch.testing.assert_close(one, ends[0], rtol=0, atol=1e-4)


def test_the_sum_as_reduction_ends_in_the_same_weights() -> None:
    ends = []
    for reduction in ("mean", "sum"):
        model = network()
        private = run_of(model, data(10), batch_size=10, public_size=10, noise_multiplier=1e-6)
        train(private, nn.CrossEntropyLoss(reduction=reduction))
        ends.append(flat(model))
    torch.testing.assert_close(*ends, rtol=0, atol=1e-4)


@pytest.mark.parametrize("clip", [0.3, 5])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_units_of_several_rows_are_clipped_as_one(reduction: str, clip: float) -> None:
    """Unit 0 has one row, unit 1 has two, unit 2 has five, of which two take part."""
    x, y = data(8)
    y[3:] = y[3]
    x[3:] = x[3]
    model, units = network(), np.array([0, 1, 1, 2, 2, 2, 2, 2])
    private = run_of(
        model,
        (x, y),
        units=units,
        rows_per_unit=2,
        batch_size=3,
        public_size=3,
        steps=1,
        clip=clip,
        noise_multiplier=1e-6,
        lr=1.0,
    )
    before = flat(model)
    rows = per_example_gradients(network(), (x, y), entropies)
    made = {name: torch.stack([one[0] / 2, (one[1] + one[2]) / 2, one[3]]) for name, one in rows.items()}
    factors = (clip / norms(made)).clamp(max=1)
    wanted = torch.cat([torch.einsum("n,n...->...", factors, one).reshape(-1) / 3 for one in made.values()])
    train(private, nn.CrossEntropyLoss(reduction=reduction))
    torch.testing.assert_close(before - flat(model), wanted, rtol=0.03, atol=1e-3)


def test_views_in_a_run_repeat_every_row() -> None:
    private = run_of(network(), numbered(12), batch_size=6, public_size=12, views=3, steps=2)
    for x, y in private.loader:
        private.zero_grad()
        with private.model.unwatched():
            assert len(x) % 3 == 0
            assert torch.equal(x[0::3], x[1::3]) and torch.equal(x[0::3], x[2::3])
        ENTROPY(private.model(x + 0.1 * torch.randn_like(x)), y).backward()
        private.step()
    assert private.steps == 2


# The charge.


def test_a_run_is_charged_once_in_its_first_step_after_the_check_of_its_loop(tmp_path: Any) -> None:
    with dp.Ledger(tmp_path / "ledger.db") as ledger:
        account = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(3, 1e-5))
        private = run_of(network(), data(40), account=account, noise_multiplier=2, public_size=40, by="us")
        charges = []
        for x, y in private.loader:
            charges.append(len(account.entries()))
            private.zero_grad()
            ENTROPY(private.model(x), y).backward()
            charges.append(len(account.entries()))
            private.step()
        first = charges[0]
        assert charges[1] == first
        assert len(set(charges[2:])) == 1 and charges[2] > first
        assert private.receipt.entry is not None


def test_a_mixing_loop_is_refused_before_anything_is_charged() -> None:
    private = run_of(network(), data(40))
    with pytest.raises(NotSound):
        train(private, nn.CrossEntropyLoss(weight=torch.tensor([1.0, 9.0, 3.0])))
    assert private.spent.epsilon(0).upper == 0 and private.steps == 0


def test_arguments_that_say_nothing_or_too_much_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="epsilon or a noise multiplier"):
        run_of(network(), data(40), noise_multiplier=None)
    with pytest.raises(InvalidArgument, match="sampling is one of"):
        run_of(network(), data(40), sampling="shuffled")
    with pytest.raises(InvalidArgument, match="by number"):
        run_of(network(), iter(data(40)))


def test_rows_are_not_charged_as_people(tmp_path: Path) -> None:
    """Each row is clipped by itself, and who has ten of them would lose ten times what is charged."""
    account = dp.Ledger(tmp_path / "users.ledger").open(
        "users", unit=dp.Unit("user", column="user"), budget=dp.Budget(epsilon=9, delta=1e-5)
    )
    with pytest.raises(InvalidArgument, match="may be in many rows"):
        run_of(network(), data(40), account=account, delta=1e-6, public_size=40)
    assert len(account.entries()) == 1
    units = {"units": [n % 10 for n in range(40)], "rows_per_unit": 4, "public_size": 10}
    asked = {"account": account, "delta": 1e-6, "batch_size": 4} | units
    assert run_of(network(), data(40), **asked).receipt.unit == account.unit
