"""The private mean: what one row can do to its sum, the law of its noise, its charge, and what it is for."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dalenius as dp
from dalenius import learn, losses
from dalenius.errors import BudgetExceeded, InvalidArgument
from dalenius.learn.features.centering import Centering

SIZE = 4


@settings(max_examples=60, deadline=None)
@given(arrays(np.float32, (6, SIZE), elements=st.floats(width=32)), st.integers(0, 5))
def test_a_row_moves_the_sum_by_at_most_what_is_charged(rows: np.ndarray, gone: int) -> None:
    """Exactly, in integers, whatever is in it: huge, infinite and no numbers too."""
    asked = Centering(SIZE, Fraction(3, 10), Fraction(2))
    moved = asked.total(torch.from_numpy(rows)) - asked.total(torch.from_numpy(np.delete(rows, gone, 0)))
    steps = asked.mechanism.charged.need("l2")
    assert sum(int(one) ** 2 for one in moved) <= steps**2


def test_the_bound_is_attained() -> None:
    asked = Centering(1, Fraction(1), Fraction(2))
    assert int(asked.total(torch.tensor([[5.0]]))[0]) >= (1 - 1e-6) * asked.mechanism.charged.need("l2")


def test_rows_within_the_bound_are_summed_as_they_are() -> None:
    rows = torch.rand(3000, 8)
    asked = Centering(8, Fraction(3), Fraction(1))
    found = asked.total(rows) * float(asked.mechanism.step)
    assert np.abs(found - rows.double().sum(0).numpy()).max() < 3000 * 3 / 2**24


def test_the_loss_is_that_of_the_noise_multiplier() -> None:
    found = learn.mean_of(torch.rand(10, 5), norm=2, noise_multiplier=4, public_size=10)
    promised = losses.Gaussian(noise_multiplier=4).epsilon(1e-5).upper
    assert promised <= found.loss.epsilon(1e-5).upper <= promised * (1 + 1e-6)


def test_noise_has_the_scale_that_was_asked_for() -> None:
    """4,000 entries: their variance is off by 0.12 or more less than once in 10^6 times (chi-squared)."""
    found = learn.mean_of(torch.zeros(1, 4000), norm=2, noise_multiplier=3, public_size=10)
    spread = np.std(found.value) / (2 * 3 / 10)
    assert abs(spread**2 - 1) < 0.12


def test_it_is_the_mean_for_little_noise() -> None:
    rows = torch.rand(500, 2, 3)
    found = learn.mean_of(rows, norm=3, noise_multiplier=1e-3, public_size=500)
    assert torch.allclose(torch.tensor(found.value).float(), rows.flatten(1).mean(0), atol=1e-3)
    assert (found["mean_low"] <= found.value).all() and (found.value <= found["mean_high"]).all()
    assert any("500" in note for note in found.receipt.postprocessing)


def opened(folder: Path, epsilon: float) -> dp.ledger.Account:
    budget = dp.Budget(epsilon=epsilon, delta=1e-5)
    return dp.Ledger(folder / "x.ledger").open("people", unit=dp.Unit("person"), budget=budget)


def test_it_is_charged(tmp_path: Path) -> None:
    account = opened(tmp_path, 1)
    found = learn.mean_of(
        torch.rand(9, 3), norm=1, noise_multiplier=30, public_size=9, account=account, by="me"
    )
    assert found.receipt.entry is not None and found.receipt.unit == dp.Unit("person")
    assert len(list(account.entries())) >= 1


def test_nothing_is_read_where_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = opened(tmp_path, 0.1)
    monkeypatch.setattr(Centering, "total", lambda *_: pytest.fail("data was read"))
    with pytest.raises(BudgetExceeded):
        learn.mean_of(torch.rand(9, 3), norm=1, noise_multiplier=1, public_size=9, account=account, by="me")


def test_wrong_input_is_told_what_to_do() -> None:
    rows = torch.rand(9, 3)
    for bad in (torch.rand(3), torch.zeros(3, 3, dtype=torch.int64)):
        with pytest.raises(InvalidArgument):
            learn.mean_of(bad, norm=1, noise_multiplier=1, public_size=9)
    for norm, noise, size in ((0, 1, 9), (1, 0, 9), (1, 1, 0), (math.nan, 1, 9)):
        with pytest.raises(InvalidArgument):
            learn.mean_of(rows, norm=norm, noise_multiplier=noise, public_size=size)
