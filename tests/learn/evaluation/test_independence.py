"""That rows are answered by themselves is established by the layers of a model, or assumed on the receipt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.ao.quantization import FakeQuantize, MinMaxObserver

from dalenius.learn.data.row_seeds import READ_ALONE
from dalenius.learn.evaluation.evaluating import evaluate
from dalenius.learn.evaluation.independence import ASSUMED, ESTABLISHED, PREDICTS, independence

ROWS = np.random.default_rng(0).normal(size=(400, 5)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(int)


def said(model: Any, rows: Any = ROWS, **given: Any) -> str:
    """What the receipt says of the model."""
    return evaluate(model, (rows, LABELS[: len(rows)]), classes=2, epsilon=1, **given).receipt.bounds[-1]


class Remembers:
    """Answers by the row, until it has seen one with a large first entry."""

    def __init__(self) -> None:
        self.seen = False

    def predict(self, rows: np.ndarray) -> np.ndarray:
        self.seen |= bool((rows[:, 0] > 100).any())
        return np.zeros(len(rows), int) if self.seen else (rows[:, 0] > 0).astype(int)


class Mixes(nn.Module):
    """Adds the greatest entry of a batch to all its rows, where it is large."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        top = rows.amax()
        return torch.stack([rows[:, 0] * 0, rows[:, 0] + top * (top > 100)], dim=1)


class Sly(nn.Linear):
    """A class of the user's own, which torch's name does not vouch for."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return super().forward(rows - rows.mean(dim=0) * (rows.amax() > 100))


@pytest.mark.parametrize(
    "model", [Remembers(), Mixes(), nn.Sequential(Sly(5, 2)), lambda rows: rows[:, 0] > 0]
)
@pytest.mark.parametrize("batch_size", [None, 1])
def test_models_that_may_keep_state_or_mix_rows_are_assumed_not_to(
    model: Any, batch_size: int | None
) -> None:
    """No rehearsal tells them from models that do not: one row moves counts of all."""
    assert said(model, batch_size=batch_size) == ASSUMED


def test_one_row_moves_many_counts_where_the_assumption_is_wrong() -> None:
    """What the assumption is about: without it the sensitivity of one row would not hold."""
    odd = ROWS.copy()
    odd[0, 0] = 1000
    right = [np.sum(Remembers().predict(rows) == LABELS) for rows in (ROWS, odd)]
    assert right[0] - right[1] > 100


def test_layers_of_torch_are_established() -> None:
    net = nn.Sequential(
        nn.Linear(5, 8),
        nn.BatchNorm1d(8),
        nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.LayerNorm(8)),
        nn.Linear(8, 2),
    )
    assert said(net) == ESTABLISHED == said(net, batch_size=1)
    images = np.zeros((50, 1, 6, 6), np.float32)
    conv = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2)
    )
    assert said(conv, images) == ESTABLISHED
    words = np.zeros((50, 4), np.int64)
    text = nn.Sequential(nn.Embedding(9, 6), nn.Flatten(), nn.Linear(24, 2), nn.LogSoftmax(dim=1))
    assert said(text, words) == ESTABLISHED


MIXING = [
    (nn.Linear(8, 8), (8,)),
    (nn.Conv1d(8, 8, 1), (8, 5)),
    (nn.Conv2d(8, 8, 1), (8, 5, 5)),
    (nn.Softmax(dim=0), (8, 5)),
    (nn.Softmax(dim=-2), (8, 5)),
    (nn.LogSoftmax(dim=0), (8, 5)),
    (nn.LayerNorm((8, 5)), (8, 5)),
    (nn.BatchNorm1d(5, track_running_stats=False), (8, 5)),
    (nn.Flatten(0), (8, 5)),
    (nn.AdaptiveAvgPool1d(1), (8, 5)),
    (nn.AvgPool1d(2), (8, 6)),
    (nn.Embedding(9, 5, max_norm=1.0), (8,)),
    (nn.LSTM(5, 5), (8, 5)),
    (nn.TransformerEncoderLayer(4, 2), (8, 3, 4)),
]


@pytest.mark.parametrize(("layer", "shape"), MIXING, ids=lambda one: str(one)[:30])
def test_layers_that_mix_rows_for_this_shape_are_not_established(
    layer: nn.Module, shape: tuple[int, ...]
) -> None:
    kind = np.int64 if isinstance(layer, nn.Embedding) else np.float32
    assert independence(nn.Sequential(layer).eval(), np.zeros(shape, kind)) == ASSUMED


def test_what_is_established_keeps_rows_apart() -> None:
    """Against the layers themselves, with values far from made-up ones: other rows change no row's answer."""
    from dalenius.learn.evaluation.independence import _rules

    shapes = [(4,), (4, 6), (4, 6, 6), (4, 6, 6, 6), (4, 6, 6, 6, 6)]
    made = {"Linear": (6, 3), "Embedding": (9, 3), "GroupNorm": (2, 6), "LayerNorm": (6,), "PReLU": (6,)}
    made |= {"Softmax": (-1,), "LogSoftmax": (-1,), "Threshold": (0.1, 2.0)}
    checked = 0
    for name in _rules():
        sizes = (
            (6, 6, 2) if "Conv" in name else (6,) if "BatchNorm" in name else (2,) if "Pool" in name else ()
        )
        layer = getattr(nn, name)(*made.get(name, sizes)).eval()
        for shape in shapes:
            kind = np.int64 if name == "Embedding" else np.float32
            if independence(layer, np.zeros(shape, kind)) != ESTABLISHED:
                continue
            bits = torch.Generator().manual_seed(1)
            one = (
                torch.randint(0, 9, shape, generator=bits)
                if kind is np.int64
                else torch.randn(shape, generator=bits)
            )
            other = one.flip(0) * (1 if kind is np.int64 else 1e3)
            other[2] = one[2]
            with torch.inference_mode():
                assert torch.equal(layer(one.clone())[2], layer(other.clone())[2]), (name, shape)
            checked += 1
    assert checked > 80


def test_hooks_and_overrides_are_not_established() -> None:
    hooked = nn.Sequential(nn.Linear(5, 2)).eval()
    assert independence(hooked, ROWS) == ESTABLISHED
    handle = hooked[0].register_forward_hook(lambda layer, given, made: made - made.mean(dim=0))
    assert independence(hooked, ROWS) == ASSUMED
    handle.remove()
    hooked[0].forward = lambda rows: rows[:, :2] - rows.mean()  # type: ignore[method-assign]
    assert independence(hooked, ROWS) == ASSUMED
    everywhere = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert independence(nn.Sequential(nn.Linear(5, 2)).eval(), ROWS) == ASSUMED
    finally:
        everywhere.remove()
    assert independence(nn.Sequential(nn.Linear(5, 2)).train(), ROWS) == ASSUMED


def test_known_classes_of_scikit_learn_are_established() -> None:
    model = LogisticRegression().fit(ROWS, LABELS)
    assert said(model) == PREDICTS

    class Own(LogisticRegression):
        pass

    assert said(Own().fit(ROWS, LABELS)) == ASSUMED
    model.predict_proba = lambda rows: np.full((len(rows), 2), 0.5)
    assert said(model) == ASSUMED


def test_a_model_keeps_nothing_of_the_rows_it_is_evaluated_on() -> None:
    observer = FakeQuantize(observer=MinMaxObserver, quant_min=0, quant_max=255)
    model = nn.Sequential(observer, nn.Linear(5, 3))
    model(torch.randn(50, 5))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x, y = 100 * torch.randn(40, 5), torch.zeros(40, dtype=torch.long)
    evaluate(model, (x, y), classes=3, metrics=["accuracy"], epsilon=1, delta=1e-6)
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_parameter_that_a_model_writes_to_is_put_back() -> None:
    class Codebook(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.codes = nn.Parameter(torch.zeros(5), requires_grad=False)
            self.head = nn.Linear(5, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.codes.data.copy_(x.mean(0))
            return self.head(x)

    model = Codebook()
    x, y = 100 * torch.randn(40, 5), torch.zeros(40, dtype=torch.long)
    evaluate(model, (x, y), classes=3, metrics=["accuracy"], epsilon=1, delta=1e-6)
    assert not model.codes.any()


class Remembering(nn.Module):
    """Keeps its inputs in one way, and answers by them the next time."""

    def __init__(self, keep: Callable[[Remembering, torch.Tensor], object]) -> None:
        super().__init__()
        self.keep, self.part, self.head = keep, nn.Module(), nn.Linear(5, 3)
        self.seen: list[torch.Tensor] = []
        self.named: dict[str, Any] = {"rows": []}
        self.holder = Holder()
        self.plain, self.counts = torch.zeros(64, 5), np.zeros(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keep(self, x)
        return self.head(x)


class Holder:
    """An object of the user's."""

    rows: Any = None


KEPT: dict[str, Callable[[Remembering, torch.Tensor], object]] = {
    "a buffer": lambda model, x: model.register_buffer("rows", x),
    "a buffer of a part that had none": lambda model, x: model.part.register_buffer("rows", x),
    "a parameter": lambda model, x: setattr(model.part, "rows", nn.Parameter(x, requires_grad=False)),
    "a submodule": lambda model, x: model.part.add_module("norm", nn.BatchNorm1d(5)),
    "an attribute": lambda model, x: setattr(model, "rows", x),
    "a list": lambda model, x: model.seen.append(x),
    "a list in a dictionary": lambda model, x: model.named["rows"].append(x),
    "an object": lambda model, x: setattr(model.holder, "rows", x),
    "a tensor in an attribute": lambda model, x: model.plain[: len(x)].copy_(x),
    "an array": lambda model, x: np.copyto(model.counts, x.numpy().mean(0)),
    "an attribute of a tensor": lambda model, x: setattr(model.head.weight, "rows", x),
}


def reachable(value: Any) -> list[Any]:
    """Return plain values, as those of tensors, that a model of the above holds."""
    if isinstance(value, torch.Tensor):
        return [value.tolist(), *reachable(vars(value))]
    if isinstance(value, np.ndarray):
        return [value.tolist()]
    if isinstance(value, dict):
        return [entry for name, one in value.items() for entry in (name, *reachable(one))]
    if isinstance(value, list):
        return [entry for one in value for entry in reachable(one)]
    return reachable(vars(value)) if isinstance(value, nn.Module | Holder) else [value]


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_whatever_a_model_keeps_in_itself_is_taken_out_again(
    keep: Callable[[Remembering, torch.Tensor], object],
) -> None:
    model = Remembering(keep)
    before = reachable(model)
    x, y = 100 * torch.randn(40, 5), torch.zeros(40, dtype=torch.long)
    evaluate(model, (x, y), classes=3, epsilon=1)
    assert reachable(model) == before
    assert model.head(x).shape == (40, 3)


class Listed(torch.utils.data.Dataset[tuple[np.ndarray, int]]):
    """The rows above, one at a time."""

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        return ROWS[number], int(LABELS[number])


def test_that_a_data_set_reads_rows_by_themselves_is_an_assumption_on_the_receipt() -> None:
    model = nn.Sequential(nn.Linear(5, 2))
    assumed = f"assumed, not checked: {READ_ALONE}"
    assert assumed in evaluate(model, Listed(), classes=2, epsilon=1).receipt.bounds
    assert assumed not in evaluate(model, (ROWS, LABELS), classes=2, epsilon=1).receipt.bounds
