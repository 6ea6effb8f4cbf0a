"""A row's answer is a function of that row alone, bit by bit; models of which that is not so are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import dalenius as dp
from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn import replaced
from dalenius.learn.evaluation import passes
from dalenius.learn.evaluation.passes import answered, made_up, rehearse
from dalenius.learn.models import Answering, at_rest
from dalenius.learn.rows import Rows

_numbers: Any = np.random
X = torch.randn(150, 1, 8, 8, generator=torch.Generator().manual_seed(1))
Y = torch.zeros(150, dtype=torch.int64)


def convolutional() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 3)
    ).eval()


def with_coins(monkeypatch: pytest.MonkeyPatch, coins: np.ndarray) -> None:
    monkeypatch.setattr(passes.noise, "uniform", lambda size, count: coins[:count] % size)


def test_other_rows_change_no_bit_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answering, gone = Answering(convolutional(), None, range(3)), 17
    coins, left = np.random.default_rng(0).integers(0, 2**20, 150), np.delete(np.arange(150), gone)
    for size in (1, 8, 64):
        with_coins(monkeypatch, coins)
        whole = answered(answering, Rows((X, Y)), size)
        with_coins(monkeypatch, coins[left])
        without = answered(answering, Rows((X[left], Y[left])), size)
        for one, two in zip(whole.parts, without.parts, strict=True):
            np.testing.assert_array_equal(one[left], two)


def test_every_row_is_answered_once() -> None:
    rows = Rows((np.arange(200.0)[:, None], np.zeros(200)))
    for size in (1, 3, 64):
        found = answered(Answering(lambda x: x[:, 0], "numbers", ()), rows, size)
        assert found.values.tolist() == list(range(200))
    nobody = answered(Answering(lambda x: x[:, 0], "numbers", ()), Rows((np.zeros((0, 1)), np.zeros(0))), 8)
    assert len(nobody.values) == 0


def test_a_row_that_fails_takes_no_other_with_it() -> None:
    def touchy(x: Any) -> Any:
        if (x == 5).any():
            raise RuntimeError("a secret")
        return x[:, 0] * 2

    rows = Rows((np.arange(40.0)[:, None], np.zeros(40)))
    found = answered(Answering(touchy, "numbers", ()), rows, 16).values
    assert np.isnan(found[5])
    np.testing.assert_array_equal(np.delete(found, 5), 2 * np.delete(np.arange(40.0), 5))


def test_a_pass_that_gives_too_little_is_no_answer() -> None:
    rows = Rows((np.arange(4.0)[:, None], np.zeros(4)))
    assert np.isnan(answered(Answering(lambda x: x[:1, 0], "numbers", ()), rows, 4).values).all()


class Standardized(nn.Module):
    """By the rows of its batch, also in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(x))


class Attending(nn.Module):
    """To the other rows of its batch."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.softmax(x @ x.T, dim=1) @ x)


class Counting(nn.Module):
    """Its calls, where nothing puts them back."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Counting.calls += 1
        return self.head(x) + self.calls


class Wavering(nn.Module):
    """At random."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.head(x), 0.5, training=True)


MADE = made_up(torch.zeros(1, 8))


@pytest.mark.parametrize("kind", [Standardized, Attending, Counting, Wavering])
def test_a_model_that_mixes_rows_or_changes_its_mind_is_refused(kind: type[nn.Module]) -> None:
    with pytest.raises(NotSound, match="In a rehearsal"):
        rehearse(Answering(kind().eval(), None, range(2)), MADE, 16)


def test_a_sorted_batch_is_found() -> None:
    with pytest.raises(NotSound, match="beside it"):
        rehearse(Answering(lambda x: x[:, 0] - x[:, 0].max(), "numbers", ()), np.array([[1.0], [2.0]]), 4)
    # The remedy: rows one by one are not mixed.
    rehearse(Answering(lambda x: x[:, 0] - x[:, 0].max(), "numbers", ()), np.array([[1.0], [2.0]]), 1)


def test_what_does_not_mix_is_accepted() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2)).train()
    with at_rest(model):
        rehearse(Answering(model, None, range(2)), MADE, 16)
    assert all(one.training for one in model.modules())
    rehearse(Answering(replaced(model).eval(), None, range(2)), MADE, 16)


def test_a_model_that_fails_on_made_up_rows_says_so() -> None:
    with pytest.raises(InvalidArgument, match="fails on made-up rows"):
        rehearse(Answering(nn.Linear(3, 2), None, range(2)), MADE, 4)
    with pytest.raises(InvalidArgument, match="each of 3 classes"):
        rehearse(Answering(nn.Linear(8, 2), None, range(3)), MADE, 4)
    with pytest.raises(InvalidArgument, match="one answer for each row"):
        rehearse(Answering(lambda x: x[:1, 0], "numbers", ()), np.zeros((2, 1)), 4)


def test_made_up_rows_have_the_form_and_nothing_else() -> None:
    one = made_up({"a": torch.full((3, 4), 7.0), "b": torch.full((3, 2), 9)})
    assert one["a"].shape == (2, 4) and one["a"].abs().max() <= 1
    assert set(one["b"].flatten().tolist()) <= {0, 1}
    assert not torch.equal(one["a"][0], one["a"][1])
    assert made_up(np.array(["text"])) is None
    assert made_up(["text"]) is None


class Halves(torch.nn.Module):
    """Each half of a batch is answered by both."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = x.chunk(2)
        return torch.cat([one + two, one + two])


def test_rows_that_are_mixed_at_any_distance_are_refused() -> None:
    x, y = torch.randn(100, 2), torch.zeros(100, dtype=torch.long)
    with pytest.raises(NotSound, match="rows beside it"):
        dp.learn.evaluate(Halves(), (x, y), epsilon=1, classes=2)


def test_rows_of_a_data_set_are_answered_one_by_one() -> None:
    """Whatever stacks them, by keys, by types or to the longest, has one at a time."""

    def padded(rows: list) -> object:
        longest = max(len(x) for x, _ in rows)
        inputs = torch.stack([torch.nn.functional.pad(x, (0, longest - len(x))) for x, _ in rows])
        return inputs, torch.tensor([y for _, y in rows])

    short, long = (torch.ones(4), 1), (torch.zeros(400), 0)

    def right(rows: list) -> float:
        def model(x: torch.Tensor) -> torch.Tensor:
            return (x.mean(1) > 0.5).long()

        given = {"epsilon": 1e6, "classes": 2, "metrics": "confusion", "collate": padded}
        found = dp.learn.evaluate(model, rows, **given)["confusion"]
        cells = zip(found["label"], found["prediction"], found["n"], strict=True)
        return float(sum(n for label, prediction, n in cells if label == prediction == 1))

    assert right([short] * 30) > 29
    assert abs(right([short] * 30 + [long]) - right([short] * 30)) < 0.1
    with pytest.raises(InvalidArgument, match="one by one"):
        dp.learn.evaluate(lambda x: x, [short], epsilon=1, classes=2, batch_size=2)


def test_no_row_of_a_data_set_is_read_before_the_charge() -> None:
    class Broken:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, i: int) -> object:
            raise RuntimeError("a row of someone")

    for rows in (Broken(), []):
        dp.learn.evaluate(torch.nn.Linear(2, 2), rows, epsilon=1, classes=2)


class Flipping(torch.utils.data.Dataset[tuple[Any, int]]):
    """Rows that are flipped at random, by generators that all code shares."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, number: int) -> tuple[Any, int]:
        coins = float(_numbers.rand()), float(torch.rand(()))
        return torch.tensor([number, *coins]), number


def test_what_is_random_in_a_row_of_a_data_set_follows_from_its_number_alone() -> None:
    def shown(number: int, seed: int, before: int) -> list[float]:
        seen: list[list[float]] = []

        def answer(x: torch.Tensor) -> torch.Tensor:
            seen.append([*x[0].tolist(), float(torch.rand(()))])
            return x[:, 0]

        for row in (*range(before), number):
            passes._attempt(Answering(answer, "numbers", ()), Rows(Flipping(), seed=seed), np.array([row]))
        return seen[-1]

    assert shown(7, 1, before=0) == shown(7, 1, before=5)
    assert shown(7, 1, before=0) != shown(7, 2, before=0)
    assert shown(7, 1, before=0)[1:] != shown(8, 1, before=0)[1:]


def test_the_generators_of_the_caller_stay_where_they_are() -> None:
    before = _numbers.get_state()[1].tolist(), torch.get_rng_state().tolist()
    rows = Rows(Flipping(), seed=3)
    answered(Answering(lambda x: torch.rand(len(x)), "numbers", ()), rows, 1)
    rows.targets()
    assert before == (_numbers.get_state()[1].tolist(), torch.get_rng_state().tolist())
