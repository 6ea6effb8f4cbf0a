"""What is paid for: one row is in one cell, sums of noise keep to their reach, and coins decide the split."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import dalenius as dp
from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound
from dalenius.ledger.memory import MemoryStore
from dalenius.report import study
from dalenius.report.study import splitting
from dalenius.report.study.data import labelled
from dalenius.report.study.paying import answered, noisily, reach, read_counts
from dalenius.report.study.splitting import Part, toss


def rows(size: int = 40, **changed: object) -> study.Data:
    labels, groups = [i % 3 for i in range(size)], ["ab"[i % 2] for i in range(size)]
    x = np.arange(2.0 * size).reshape(size, 2)
    found = labelled("rows", x, labels, groups, classes=["0", "1", "2"], groups=["a", "b"])
    return replace(found, **changed)


def payment(budget: int = 2, **unit: object) -> study.Payment:
    ledger, who = dp.Ledger(MemoryStore()), dp.Unit("person", **unit)
    account = ledger.open("people", unit=who, budget=dp.Budget(budget, 1e-4))
    return study.Payment(account, 0.5, 40)


def test_a_row_moves_one_cell_by_one_and_the_table_costs_its_epsilon() -> None:
    data = rows()
    table = payment().table(data)
    assert table.loss.epsilon(0).upper == pytest.approx(0.5, rel=1e-12)
    assert table.loss.epsilon(0).upper >= 0.5
    assert data.group is not None
    whole = Part(torch.from_numpy(data.x), torch.from_numpy(data.y), data.group)
    less = Part(whole.x[:-1], whole.y[:-1], data.group[:-1])
    said = np.zeros(40, dtype=np.int64)
    counts = [table.counts(answered(data, part, said[: len(part)])) for part in (whole, less)]
    assert np.abs(counts[0] - counts[1]).sum() == 1
    assert counts[0].sum() == 40
    cells = counts[0].reshape(3, 3, 2)
    assert cells[:, 0, 0].sum() == cells[:, 1:, 1].sum() == cells[2].sum() == 0  # right on 0 alone; no others
    assert np.array_equal(
        cells, read_counts(data, replace(table, scale=Fraction(1, 100)).release(answered(data, whole, said)))
    ), "noise of scale 0.01 is 0 but for a chance of 2e-43 a cell"


@pytest.mark.parametrize("cells", [1, 6, 40])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(5)])
def test_sums_of_noise_keep_to_their_reach(cells: int, scale: Fraction) -> None:
    width = 50 * int(scale + 1)
    law = np.exp(-np.abs(np.arange(-width, width + 1)) / float(scale))
    law /= law.sum()
    total = np.ones(1)
    for _ in range(cells):
        total = np.convolve(total, law)
    away, risk = reach(cells, scale, 0.0125), 0.0125
    middle = len(total) // 2
    assert total[middle + away :].sum() <= risk
    nearest = int(np.argmax(np.cumsum(total[::-1])[: len(total)][::-1] <= risk)) - middle
    assert away <= 2 * nearest + 2


def test_the_interval_of_a_share_holds_the_truth_where_noise_keeps_to_its_reach() -> None:
    truth, scale = np.array([[[30, 70], [0, 3]]]), Fraction(2)
    away = reach(2, scale, 0.0125)
    for wrong in (-away, 0, away):
        for right in (-away, 0, away):
            found = noisily(scale)(truth + np.array([[[wrong, right], [0, 0]]]))
            assert found is not None
            assert found.low <= 73 / 103 <= found.high
    assert noisily(scale)(np.array([[[-3, 0]]])) is None
    assert noisily(scale)(np.array([[[1, 2]]])) is None  # of noise alone
    bound = noisily(scale)(np.array([[[0, 400]]]))
    assert bound is not None
    assert (bound.value, bound.high) == (1, 1)
    assert 0.9 < bound.low < 1


def test_every_row_tosses_a_coin_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    coins = np.array([i % 4 == 0 for i in range(41)])
    monkeypatch.setattr(splitting.noise, "bernoulli", lambda share, size: coins[:size])
    less = replace(data, x=data.x[:-1], y=data.y[:-1], group=None if data.group is None else data.group[:-1])
    (train, test), (other_train, other_test) = toss(data, Fraction(1, 5)), toss(less, Fraction(1, 5))
    assert torch.equal(test.x, other_test.x)
    assert torch.equal(train.x[:-1], other_train.x)
    assert len(train) + len(test) == 40


def test_coins_are_those_of_the_noise_and_not_of_torch() -> None:
    found = set()
    for _ in range(3):
        torch.manual_seed(0)
        found.add(tuple(toss(rows(200), Fraction(1, 2))[0].x[:, 0].tolist()))
    assert len(found) == 3  # alike by chance in 2 of 2^200


@pytest.mark.parametrize(
    ("changed", "unit", "problem"),
    [
        ({"public": False}, {}, "must not be taken from the data"),
        ({"unscaled": ("age",)}, {}, "range of age is not stated"),
        ({}, {"column": "id"}, "protects each row"),
        ({}, {"window": "day"}, "protects each row"),
    ],
)
def test_what_would_be_paid_wrongly_is_refused_uncharged(
    changed: dict[str, object], unit: dict[str, object], problem: str
) -> None:
    paid = payment(**unit)
    with pytest.raises(NotSound, match=problem) as refused:
        study.run(rows(**changed), epsilons=[1], delta=1e-6, payment=paid)
    assert refused.value.remedy
    assert float(paid.account.spent) == 0


def test_a_budget_that_is_too_small_is_told_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What would still fit is the ledger's to say, and takes it long for many runs.
    monkeypatch.setattr("dalenius.ledger.charge.fitting", lambda *_: (None, "Choose a larger budget."))
    paid, told = replace(payment(), public_size=200), list[str]()
    options = {"epsilons": [1, 4], "delta": 1e-5, "epochs": 2, "batch_size": 32}
    with pytest.raises(BudgetExceeded):
        study.run(rows(), payment=paid, told=told.append, **options)
    assert told == []
    assert float(paid.account.spent) == 0


def test_test_rows_are_asked_about_one_at_a_time() -> None:
    seen = set[int]()

    class Asked(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not self.training and x.any():
                seen.add(len(x))
            return super().forward(x)

    paid = replace(payment(), public_size=200, account=payment(budget=9).account)
    options = {"epsilons": [1, 4], "delta": 1e-5, "epochs": 2, "batch_size": 32}
    study.run(rows(), payment=paid, model=lambda shape, classes: Asked(2, classes), **options)
    assert seen == {1}


def test_a_model_that_mixes_rows_is_refused_uncharged() -> None:
    class Mixing(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x - x.mean(dim=0))

    paid = replace(payment(budget=9), public_size=200)
    options = {"epsilons": [1, 4], "delta": 1e-5, "epochs": 2, "batch_size": 32}
    with pytest.raises(NotSound):
        study.run(rows(), payment=paid, model=lambda shape, classes: Mixing(2, classes), **options)
    assert float(paid.account.spent) == 0


def test_a_batch_larger_than_what_is_public_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="A batch of 33 is larger than the 32 rows"):
        study.run(rows(400), epsilons=[1], delta=1e-6, batch_size=33, payment=payment())
