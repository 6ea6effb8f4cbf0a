"""Batches have public shapes: a row's tensors depend on no other row, and no error tells of a row."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
from collections import UserDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Subset, TensorDataset

import dalenius as dp
from dalenius.errors import InvalidArgument, NotSound, QueryFailed
from dalenius.learn.batches import Supply, read_dataset
from dalenius.learn.data import row_collation, row_workers
from dalenius.learn.data.padding import Pad, padded

from .runs import run_of

LENGTH = 6


class Rows(Dataset[Any]):
    """Rows as they are given; a function among them is called when its row is read."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> Any:
        row = self.rows[number]
        return row() if callable(row) else row


def supply(rows: Any, collate: Any = None, *, views: int = 1, per_unit: int = 1, **more: Any) -> Supply:
    dataset = rows if isinstance(rows, Dataset) else Rows(rows)
    return Supply(dataset, collate, more.pop("synthetic", None), views=views, each=views * per_unit, **more)


def batch_of(source: Supply, *numbers: int, **more: Any) -> Any:
    return source.rows(np.array(numbers, dtype=np.int64), **more)[0]


def text_collate(rows: list[Any]) -> dict[str, Tensor]:
    """As everybody writes it: as long as the longest row."""
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    mask = pad_sequence([torch.ones(len(row), dtype=torch.int64) for row in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": mask, "length": torch.tensor([len(row) for row in rows])}


# A row does not depend on other rows.

RAGGED = st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=12), min_size=2, max_size=6)


@given(texts=RAGGED, data=st.data())
def test_a_collated_row_does_not_depend_on_the_rest_of_its_batch(texts: list[list[int]], data: Any) -> None:
    lengths = {"input_ids": LENGTH, "attention_mask": LENGTH}
    source = supply(texts, text_collate, pad_to=lengths, row=[1])
    order = data.draw(st.permutations(range(len(texts))))
    some = order[: data.draw(st.integers(1, len(texts)))]
    batch = batch_of(source, *some)
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (max(2, len(some)), LENGTH)
    for place, number in enumerate(some):
        kept = texts[number][:LENGTH]
        assert batch["input_ids"][place].tolist() == kept + [0] * (LENGTH - len(kept))
        assert batch["attention_mask"][place].sum() == len(kept)
        assert batch["length"][place] == len(texts[number])


@given(texts=RAGGED, data=st.data())
def test_other_rows_may_be_anything(texts: list[list[int]], data: Any) -> None:
    """Rows that do not fit, cannot be read, or hold something else change nothing for the others."""
    others = data.draw(
        st.lists(
            st.sampled_from(["text", None, 3, [], [[1], [2, 3]], [0.5], {}, (), b"", [10**40]]), max_size=4
        )
    )
    source = supply([*texts, *others], pad_to=LENGTH)
    batch = batch_of(source, *range(len(texts) + len(others)))
    alone = batch_of(supply(texts, pad_to=LENGTH), *range(len(texts)))
    assert torch.equal(batch[: len(texts)], alone)
    assert batch.dtype == torch.int64 and not batch[len(texts) :].any()


def test_a_collate_function_sees_one_row_at_a_time() -> None:
    seen = []

    def collate(rows: list[Any]) -> Tensor:
        seen.append(len(rows))
        return torch.tensor(rows)

    batch_of(supply([[1, 2], [3, 4], [5, 6]], collate, pad_to={}), 2, 0, 1)
    assert set(seen) == {1}


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3).flatmap(
        lambda shape: st.tuples(
            st.just(shape), st.lists(st.integers(1, 5), min_size=len(shape), max_size=len(shape))
        )
    )
)
def test_padding_keeps_what_there_is_room_for(shapes: tuple[list[int], list[int]]) -> None:
    shape, sizes = shapes
    tensor = torch.rand(shape) + 1
    result = padded(tensor, tuple(sizes), -7)
    kept = tuple(slice(min(pair)) for pair in zip(shape, sizes, strict=True))
    assert list(result.shape) == sizes and torch.equal(result[kept], tensor[kept])
    result = result.clone()
    result[kept] = -7
    assert bool((result == -7).all())


# What is refused, and said before anything is read.


class Unread(Dataset[Any]):
    def __len__(self) -> int:
        return 9

    def __getitem__(self, number: int) -> Any:
        raise AssertionError("read")


@pytest.mark.parametrize("collate", [None, text_collate])
def test_unequal_rows_need_public_lengths(collate: Any) -> None:
    with pytest.raises(NotSound) as caught:
        supply(Unread(), collate)
    assert "pad_to={}" in caught.value.remedy and "pad_to=128" in caught.value.remedy
    supply(Unread(), collate, pad_to={})
    supply(Unread(), collate, pad_to=128)
    with pytest.raises(NotSound, match="pad_to"):
        run_of(nn.Linear(2, 2), Unread(), collate=collate)


def test_tensors_with_a_collate_function_need_them_too() -> None:
    with pytest.raises(NotSound, match="pad_to"):
        supply(TensorDataset(torch.ones(4, 2)), text_collate)


@pytest.mark.parametrize("pad_to", [0, -1, 1.5, True, "12", (), Pad, {1.5: 3}, {"a": "b"}, {"a": 0}, [4]])
def test_lengths_are_whole_numbers(pad_to: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"pad_to|whole|length"):
        supply(Unread(), pad_to=pad_to)


@pytest.mark.parametrize("more", [{"num_workers": -1}, {"num_workers": 0.5}])
def test_workers_are_counted(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="num_workers"):
        supply(Unread(), pad_to={}, **more)


def fail(rows: list[Any]) -> Any:
    raise ValueError(f"secret {rows}")


def transposed(rows: list[Any]) -> Tensor:
    return torch.tensor(rows).T


TEXT = {"input_ids": [1, 2, 3], "labels": [1, 2, 3]}
REFUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "labels without a fill value": (TEXT, None, 5, "must be given"),
    "labels named without one": (TEXT, None, {"labels": 5}, "must be given"),
    "a key that is not there": (TEXT, None, {"ids": 5}, "'input_ids'"),
    "entries of a tensor": (TEXT, None, {"input_ids": {"a": 5}}, "has none"),
    "too many lengths": (TEXT, None, {"input_ids": (5, 5)}, "1 dimensions"),
    "a length of a number": ((1, 2), None, {0: 5}, "0 dimensions"),
    "a fill value the type lacks": (TEXT, None, {"input_ids": Pad(5, value=0.5)}, "int64"),
    "texts": ({"text": "secret"}, None, {}, "str"),
    "texts of a collate function": ("secret", lambda rows: {"a": rows}, {}, "str"),
    "no tensors": ((), None, {}, "no tensor"),
    "a collate function that fails": ("secret", fail, {}, "first"),
    "the batch elsewhere": ([1, 2, 3], transposed, {}, "batch dimension"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_forms_are_refused_in_public_words(name: str) -> None:
    row, collate, pad_to, said = REFUSED[name]
    with pytest.raises(InvalidArgument, match=said) as caught:
        batch_of(supply([row], collate, pad_to=pad_to), 0)
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_errors_on_a_declared_row_are_shown() -> None:
    with pytest.raises(InvalidArgument, match="declared") as caught:
        batch_of(supply([1], fail, pad_to={}, synthetic=[2]), 0)
    assert "secret [2]" in str(caught.value.__cause__)


def test_a_first_row_that_cannot_be_read_is_not_told_of() -> None:
    with pytest.raises(InvalidArgument, match="dataset") as caught:
        batch_of(supply(Unread(), pad_to={}), 0)
    assert caught.value.__cause__ is None
    with pytest.raises(InvalidArgument, match="first row"):
        batch_of(supply([], pad_to={}))
    assert batch_of(supply([], pad_to={}, row=[1, 2])).tolist() == [[0, 0], [0, 0]]


# What rows may be.


@dataclass
class Record:
    x: Tensor
    y: int


class Pair(NamedTuple):
    x: Any
    y: Any


def test_rows_are_dicts_tuples_and_records() -> None:
    rows = [{"a": (torch.ones(2), 3.5), "b": [np.float32(1), torch.zeros(1)], "c": None}] * 3
    batch = batch_of(supply(rows, pad_to={}), 0, 1, 2)
    assert batch["a"][0].shape == (3, 2) and batch["a"][1].dtype == torch.float64 and batch["c"] is None
    assert batch["b"][0].dtype == torch.float32 and batch["b"][1].shape == (3, 1)
    record = batch_of(supply([Record(torch.ones(2), 1)] * 2, pad_to={"x": 3}), 0, 1)
    assert isinstance(record, Record) and record.x.tolist() == [[1, 1, 0]] * 2 and record.y.tolist() == [1, 1]
    for key in ("x", 0):
        pair = batch_of(supply([Pair([1], True)] * 2, pad_to={key: 2}), 0, 1)
        assert isinstance(pair, Pair) and pair.x.tolist() == [[1, 0]] * 2 and pair.y.dtype == torch.bool


def test_mappings_stay_what_they_are() -> None:
    def collate(rows: list[Any]) -> Any:
        return UserDict(text_collate(rows))

    batch = batch_of(supply([[1, 2], [3]], collate, pad_to={"input_ids": 2, "attention_mask": 2}), 1, 0)
    assert isinstance(batch, UserDict) and batch["input_ids"].tolist() == [[3, 0], [1, 2]]
    plain = batch_of(supply([defaultdict(int, a=1)], pad_to={}), 0)
    assert isinstance(plain, dict) and plain["a"].tolist() == [1, 0]


def test_batches_of_a_tokenizer_pass() -> None:
    transformers = pytest.importorskip("transformers")

    def collate(rows: list[str]) -> Any:
        ids = [[ord(letter) for letter in row] for row in rows]
        return transformers.BatchEncoding(
            {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}
        )

    batch = batch_of(supply(["abc", "a", ""], collate, pad_to=2), 0, 1, 2)
    assert isinstance(batch, transformers.BatchEncoding)
    assert batch.input_ids.tolist() == [[97, 98], [97, 0], [0, 0]]
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0], [0, 0]]


def test_labels_are_filled_with_what_is_said() -> None:
    rows = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}, {"input_ids": [4], "labels": [4]}]
    batch = batch_of(supply(rows, pad_to={"input_ids": 2, "labels": dp.learn.Pad(2, value=-100)}), 0, 1)
    assert batch["labels"].tolist() == [[1, 2], [4, -100]] and batch["input_ids"].tolist() == [[1, 2], [4, 0]]
    whole = batch_of(supply([{"x": [1.0], "labels": 2}] * 2, pad_to=2), 0, 1)
    assert whole["labels"].tolist() == [2, 2]


def test_several_dimensions_are_padded_and_others_are_left() -> None:
    rows = [torch.ones(3, 4, 5), torch.ones(7, 2, 5), torch.ones(3, 4, 6)]
    batch = batch_of(supply(rows, pad_to=(4, 3)), 0, 1, 2)
    assert batch.shape == (3, 4, 3, 5)
    assert batch.sum((1, 2, 3)).tolist() == [3 * 3 * 5, 4 * 2 * 5, 0]
    assert batch_of(supply(rows, pad_to=(None, 3)), 0, 1).sum((1, 2, 3)).tolist() == [45, 0]


def test_types_are_those_of_the_form_where_no_value_is_lost() -> None:
    assert batch_of(supply([0.5, 1, True], pad_to={}), 0, 1, 2).tolist() == [0.5, 1, 1]
    assert batch_of(supply([1, 0.5, 2j], pad_to={}), 0, 1, 2).tolist() == [1, 0, 0]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    assert batch_of(supply([frozen, frozen[:2], np.array(["a"])], pad_to=3), 0, 1, 2).sum() == 4


def test_gradients_do_not_lead_into_a_data_set() -> None:
    assert not batch_of(supply([torch.ones(2, requires_grad=True) * 2], pad_to={}), 0).requires_grad


def test_the_order_of_memory_does_not_depend_on_rows() -> None:
    """A view of a batch works for all batches or for none."""
    planes = torch.ones(4, 4, 3).permute(2, 0, 1)
    for workers in (0, 1):
        with supply([planes, planes.contiguous(), planes], pad_to={}, num_workers=workers) as source:
            for chosen in ([], [0], [0, 2], [0, 1, 2], [1]):
                assert batch_of(source, *chosen).stride() == (48, 16, 4, 1)
    images = torch.ones(5, 3, 4, 4).to(memory_format=torch.channels_last)
    source = supply(TensorDataset(images))
    (large,) = batch_of(source, 0, 1, 2)
    assert all(batch_of(source, *chosen)[0].stride() == large.stride() for chosen in ([], [4], [4, 1]))


@dataclass
class Scaled:
    x: Any

    def __post_init__(self) -> None:
        if isinstance(self.x, Tensor):
            self.x = self.x / self.x.max()


class Summed(dict[str, Any]):
    def __init__(self, entries: dict[str, Any]) -> None:
        super().__init__({key: entry * 0 + entry.sum() for key, entry in entries.items()})


def test_containers_do_not_mix_rows() -> None:
    batch = batch_of(
        supply([Scaled(torch.tensor([1.0, 2.0])), Scaled(torch.tensor([1.0, 4.0]))], pad_to={}), 0, 1
    )
    assert batch.x.tolist() == [[0.5, 1], [0.25, 1]]
    rows = [Summed({"x": torch.tensor([1.0, 2.0])}), Summed({"x": torch.tensor([3.0, 4.0])})]
    assert batch_of(supply(rows, pad_to={}), 0, 1)["x"].tolist() == [[3, 3], [7, 7]]


def test_odd_tensors_are_blank() -> None:
    plain = torch.ones(2)
    odd = [
        plain.to_sparse(),
        plain.to("meta"),
        torch.tensor(1.0),
        torch.full((2,), 1j).conj(),
    ]
    assert batch_of(supply([plain, *odd], pad_to={}), *range(len(odd) + 1)).sum() == 2


# Rows that fail.


def raising(error: BaseException) -> Callable[[], Any]:
    def row() -> Any:
        raise error

    return row


FAILURES = [
    ValueError("secret"),
    SystemExit(3),
    IndexError(),
    MemoryError(),
    RecursionError(),
    StopIteration(),
]


@pytest.mark.parametrize("workers", [0, 1])
def test_rows_that_cannot_be_read_are_blank(workers: int, capfd: Any) -> None:
    rows = [
        (torch.ones(2), 1),
        *map(raising, FAILURES),
        (torch.ones(3), 1),
        (torch.ones(2),),
        (torch.ones(2), 2),
    ]
    with supply(rows, pad_to={}, num_workers=workers) as source:
        x, y = batch_of(source, *range(len(rows)))
    assert x.sum(1).tolist() == [2.0] + [0.0] * (len(FAILURES) + 2) + [2.0]
    assert y.tolist() == [1] + [0] * (len(FAILURES) + 2) + [2]
    assert capfd.readouterr() == ("", "")


def test_an_interruption_is_not_a_row() -> None:
    with pytest.raises(KeyboardInterrupt):
        batch_of(supply([1, raising(KeyboardInterrupt())], pad_to={}), 0, 1)


def test_a_run_goes_on_over_rows_that_fail() -> None:
    rows = [(torch.ones(5), number % 3) if number % 4 else raising(ValueError()) for number in range(40)]
    private = run_of(
        nn.Linear(5, 3), Rows(rows), pad_to={}, synthetic=[(torch.ones(5), 0), (torch.zeros(5), 1)]
    )
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    assert private.steps == 3


# Batches that are filled up.


@pytest.mark.parametrize(
    "rows", [TensorDataset(torch.arange(1.0, 5)), Rows([(1.0,), (2.0,), (3.0,), (4.0,)])]
)
def test_small_batches_are_filled_with_blank_examples(rows: Any) -> None:
    source = supply(rows, pad_to={})
    for chosen in ([], [3], [3, 0], [3, 0, 1]):
        for least in (0, 1, 2, 3):
            (batch,), real = source.rows(np.array(chosen, dtype=np.int64), at_least=least)
            blank = [0.0] * max(0, least - len(chosen))
            assert batch.tolist() == [number + 1.0 for number in chosen] + blank and real == len(chosen)


@pytest.mark.parametrize(
    "rows", [TensorDataset(torch.arange(1.0, 5)), Rows([(1.0,), (2.0,), (3.0,), (4.0,)])]
)
def test_units_and_views_are_filled_as_whole_examples(rows: Any) -> None:
    source = supply(rows, pad_to={}, views=2, per_unit=3)
    (batch,), real = source.rows(np.array([[1, 2, -1]]), at_least=2)
    assert batch.tolist() == [2, 2, 3, 3, 2, 2] + [0] * 6 and real == 6
    (batch,), real = source.rows(np.empty((0, 3), dtype=np.int64))
    assert batch.tolist() == [0] * 12 and real == 0


# Plain tensors.


def test_plain_tensors_are_not_read_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("row by row")

    monkeypatch.setattr(TensorDataset, "__getitem__", never)
    monkeypatch.setattr(row_collation.RowCollation, "of", never)
    monkeypatch.setattr(row_workers.RowSource, "__getitems__", never)
    x, y = torch.randn(9, 2), torch.arange(9)
    for more in ({}, {"pad_to": {}}, {"num_workers": 2}, {"prefetch": True}):
        with supply(read_dataset((x, y)), **more) as source:
            batch = batch_of(source, 4, 1, 8)
            assert isinstance(batch, tuple) and source.assumptions == ()
            assert torch.equal(batch[0], x[[4, 1, 8]]) and torch.equal(batch[1], y[[4, 1, 8]])
    inner = Subset(TensorDataset(x, y), [5, 3, 1])
    assert batch_of(supply(Subset(inner, np.array([2, 0]))), 0, 1)[1].tolist() == [1, 5]


def test_a_subset_of_other_rows_needs_lengths() -> None:
    with pytest.raises(NotSound, match="pad_to"):
        supply(Subset(Unread(), [1]))


def test_tensors_can_be_padded_all_the_same() -> None:
    (batch,) = batch_of(supply(TensorDataset(torch.ones(3, 2)), pad_to=3), 0, 1)
    assert batch.tolist() == [[1, 1, 0]] * 2


# Assumptions.


def test_what_is_taken_for_granted_is_said() -> None:
    assert any("first row" in said for said in supply([[1]], pad_to={}).assumptions)
    assert not any("first row" in said for said in supply([[1]], pad_to={}, row=[1]).assumptions)
    assert any("that row alone" in said for said in supply([[1]], pad_to={}, row=[1]).assumptions)


# Workers and reading ahead.


class Augmented(Dataset[Any]):
    """Rows with noise of all generators that data sets draw from, and as many draws as they like."""

    def __len__(self) -> int:
        return 30

    def __getitem__(self, number: int) -> tuple[Tensor, float, float]:
        if number % 7 == 3:
            raise ValueError("secret")
        torch.rand(number)
        return torch.randn(3) + number, random.random(), float(np.random.mtrand._rand.random_sample())


def state_of_generators() -> list[Any]:
    return [
        random.getstate()[1],
        torch.get_rng_state().tolist(),
        np.random.mtrand._rand.get_state()[1].tolist(),
    ]


def same(one: Any, other: Any) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_workers_and_reading_ahead_change_nothing() -> None:
    parts = [np.array(part) for part in ([3, 1, 4], [1, 5, 9, 2, 6], [5], [3, 5, 8, 9, 7, 10, 11, 12, 13])]
    ways = [
        {},
        {"num_workers": 1},
        {"num_workers": 2},
        {"prefetch": True},
        {"num_workers": 2, "prefetch": True},
    ]
    batches: list[Any] = []
    before = state_of_generators()
    for way in ways:
        with supply(Augmented(), pad_to={}, **way) as source:
            seen = []
            for number, part in enumerate(parts):
                batch = source.rows(part, seed=number)[0]
                if number + 1 < len(parts):
                    source.ahead(parts[number + 1], seed=number + 1)
                seen.append(batch)
            batches.append(seen)
    assert state_of_generators() == before
    assert all(same(mine, first) for seen in batches for mine, first in zip(seen, batches[0], strict=True))
    assert not multiprocessing.active_children()


def test_random_rows_depend_on_the_row_and_the_step_alone() -> None:
    source = supply(Augmented(), pad_to={}, row=(torch.zeros(3), 0.0, 0.0))
    one, two = batch_of(source, 1, 2, seed=5), batch_of(source, 9, 8, 2, 1, seed=5)
    assert same([leaf[:2] for leaf in one], [leaf[[3, 2]] for leaf in two])
    assert not torch.equal(one[0], batch_of(source, 1, 2, seed=6)[0])
    twice = batch_of(supply(Augmented(), pad_to={}, views=2), 1, seed=5)
    assert not torch.equal(twice[0][0], twice[0][1]) and torch.equal(twice[0][0], one[0][0])
    torch.manual_seed(5)
    assert same(batch_of(source, 1, 2), one)


@pytest.mark.parametrize("rows", [TensorDataset(torch.arange(9.0)), Augmented()])
def test_rows_read_ahead_that_nobody_asks_for_are_dropped(rows: Any) -> None:
    with supply(rows, pad_to={}, prefetch=True) as source, supply(rows, pad_to={}) as plain:
        for chosen, seed in (([2, 4], 1), ([1, 2], 2), ([4, 2], 1), ([], 1)):
            source.ahead(np.array([1, 2]), seed=1)
            assert same(batch_of(source, *chosen, seed=seed), batch_of(plain, *chosen, seed=seed))
        source.ahead(np.array([1, 2]), seed=1)
        source.close()
        assert same(batch_of(source, 5, seed=0), batch_of(plain, 5, seed=0))
    assert not multiprocessing.active_children()
    assert not any(thread.name.startswith("rows") for thread in threading.enumerate())


def test_reading_ahead_is_off_unless_asked_for() -> None:
    source = supply(Unread(), pad_to={})
    source.ahead(np.array([1]))


def test_a_worker_that_ends_is_not_told_of() -> None:
    rows = [torch.ones(2), lambda: os._exit(3)]
    with supply(rows, pad_to={}, num_workers=1) as source:
        with pytest.raises(QueryFailed) as caught:
            batch_of(source, 1)
        assert str(caught.value) == str(QueryFailed()) and caught.value.__cause__ is None
        assert batch_of(source, 0).sum() == 2


def test_workers_that_cannot_read_what_this_process_can_are_refused() -> None:
    here = os.getpid()
    rows = [lambda: torch.ones(1) if os.getpid() == here else None]
    with (
        supply(rows, pad_to={}, num_workers=1) as source,
        pytest.raises(InvalidArgument, match="worker process"),
    ):
        batch_of(source, 0)


def test_pinned_memory_is_used_where_it_is_there() -> None:
    batch = batch_of(supply([[1.0]], pad_to={}, pin_memory=True), 0)
    assert batch.is_pinned() == torch.cuda.is_available()


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(12, 4), nn.Linear(4, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask[:, :, None].float()
        return self.head((self.table(input_ids) * mask).sum(1) / LENGTH)


def test_a_run_reads_ragged_texts_with_workers() -> None:
    texts = [[(3 * number + place) % 12 for place in range(1 + number % 9)] for number in range(40)]

    def weights(**more: Any) -> Tensor:
        torch.manual_seed(0)
        model = Tagger()
        private = run_of(
            model,
            Rows(texts),
            collate=text_collate,
            pad_to={"input_ids": LENGTH, "attention_mask": LENGTH},
            synthetic=[[1, 0, 1], [0, 1, 0, 1]],
            **more,
        )
        private._key = dp.noise.stream.StreamKey(bytes(32), tainted=True)
        for batch in private.loader:
            private.zero_grad()
            out = private.model(batch["input_ids"], batch["attention_mask"])
            functional.cross_entropy(out, batch["length"] % 3).backward()
            private.step()
        private.supply.close()
        return torch.cat([weight.detach().reshape(-1) for weight in model.parameters()])

    assert torch.equal(weights(), weights(num_workers=2, prefetch=True))
