"""What is published is weights and their receipt."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file
from torch import nn

from dalenius import Budget, Ledger, Unit
from dalenius.errors import InvalidArgument, MissingExtra, NotSound
from dalenius.learn.averaging import Average
from dalenius.learn.export import read_receipt, write_weights

from .resumable import KEY, STEPS, arguments, begun, train


class Tied(nn.Module):
    """A decoder that is the encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(torch.tanh(self.encoder(x)))


class Remembers(nn.Module):
    """Keeps the last rows it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x.detach()[0].clone()
        return self.layer(x)


def with_model(model: nn.Module) -> dict[str, Any]:
    return {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}


def test_weights_and_receipt_come_back(tmp_path: Path) -> None:
    budget = Budget(epsilon=200, delta=1e-5)
    account = Ledger.memory().open("people", unit=Unit("person"), budget=budget)
    private = begun(account=account, delta=1e-5)
    train(private)
    path = tmp_path / "model.safetensors"
    private.export(path)
    receipt = read_receipt(path)
    assert receipt.loss == private.cost and receipt.entry == private.receipt.entry
    assert receipt.cost == private.receipt.cost and receipt.unit == private.receipt.unit
    assert receipt.postprocessing == ("Adam", f"exported after {STEPS} of {STEPS} steps")
    assert receipt.tainted
    state = private.model.inner.state_dict()
    found = load_file(path)
    assert found.keys() == state.keys() and all(torch.equal(found[name], state[name]) for name in state)
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_nothing_secret_is_in_the_file(tmp_path: Path) -> None:
    private = begun()
    train(private, until=4)
    private.save(tmp_path / "run.state")
    private.export(tmp_path / "model.safetensors")
    content = (tmp_path / "model.safetensors").read_bytes()
    assert KEY.secret not in content and KEY.secret.hex().encode() not in content
    assert KEY.secret.hex().encode() in (tmp_path / "run.state").read_bytes()
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert file.metadata().keys() == {"format", "receipt", "steps"}
        assert file.metadata()["steps"] == f"4 of {STEPS} steps"


def test_an_export_can_be_made_before_the_first_step(tmp_path: Path) -> None:
    begun().export(tmp_path / "model.safetensors")
    assert f"exported after 0 of {STEPS} steps" in read_receipt(tmp_path / "model.safetensors").postprocessing


def test_tied_tensors_are_written_once_and_tied_again(tmp_path: Path) -> None:
    private = begun(**with_model(Tied()))
    train(private, until=2)
    private.export(tmp_path / "model.safetensors")
    assert list(load_file(tmp_path / "model.safetensors")) == ["encoder.weight"]
    fresh = Tied()
    load_model(fresh, tmp_path / "model.safetensors")
    assert torch.equal(fresh.decoder.weight, private.model.inner.encoder.weight)


def test_views_of_one_memory_and_other_layouts_are_written_apart(tmp_path: Path) -> None:
    model, whole = nn.Module(), torch.arange(12.0)
    model.register_buffer("one", whole[:6])
    model.register_buffer("two", whole[4:].view(4, 2).t())
    model.register_buffer("none", torch.zeros(0))
    model.register_buffer("nothing", torch.zeros(0))
    write_weights(tmp_path / "model.safetensors", model.state_dict(), begun().receipt, steps="0")
    found = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(found[name], one) for name, one in model.state_dict().items())


def test_where_averages_are_kept_they_are_what_is_published(tmp_path: Path) -> None:
    given = arguments()
    private = begun(**{**given, "average": Average(given["model"], decay=0.5)})
    train(private, until=3)
    private.export(tmp_path / "model.safetensors")
    found = load_file(tmp_path / "model.safetensors")
    state = private.average.model().state_dict()
    assert all(torch.equal(found[name], state[name]) for name in state)
    assert private.average.how in read_receipt(tmp_path / "model.safetensors").postprocessing


def test_a_buffer_that_keeps_rows_is_refused_before_a_charge(tmp_path: Path) -> None:
    private = begun(**with_model(Remembers()))
    with pytest.raises(NotSound, match="last changed in training"):
        train(private)
    assert not private._payment.begun
    for keep in (private.export, private.save):
        with pytest.raises(NotSound, match="last changed in training"):
            keep(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_file_without_a_receipt_is_refused(tmp_path: Path) -> None:
    save_file({"a": torch.ones(1)}, tmp_path / "plain.safetensors")
    (tmp_path / "text").write_text("nothing of the kind")
    for name in ("plain.safetensors", "text"):
        with pytest.raises(InvalidArgument, match="has no receipt"):
            read_receipt(tmp_path / name)


def test_without_safetensors_the_file_is_one_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {
        "small": torch.tensor([True, False, True]),
        "none": torch.zeros(0, 3),
        "number": torch.tensor(2.5, dtype=torch.float64),
        "half": torch.arange(6, dtype=torch.bfloat16).view(2, 3),
        "plain": torch.randn(4, 3).t(),
        "whole": torch.arange(3),
    }
    receipt = begun().receipt
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "safetensors.torch", None)
        write_weights(tmp_path / "model", {**state, "again": state["plain"]}, receipt, steps="0")
    found = load_file(tmp_path / "model")
    assert found.keys() == state.keys()
    for name, one in state.items():
        assert found[name].dtype == one.dtype and torch.equal(found[name], one)
    with safe_open(tmp_path / "model", framework="pt") as file:
        assert file.metadata()["again"] == "plain"
    assert read_receipt(tmp_path / "model") == receipt and os.listdir(tmp_path) == ["model"]


def test_a_type_that_only_safetensors_writes_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtra, match=r"dalenius\[learn\]"):
        write_weights(
            tmp_path / "model", {"a": torch.ones(2, dtype=torch.complex64)}, begun().receipt, steps="0"
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ["5", "[1]", "{}", "hello", "[" * 100_000])
def test_a_file_with_another_receipt_is_refused(tmp_path: Path, text: str) -> None:
    header = json.dumps({"__metadata__": {"receipt": text}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(InvalidArgument, match="no receipt"):
        read_receipt(path)


@pytest.mark.parametrize("header", [b"[" * 200_000, b'{"__metadata__": {}}'])
def test_a_file_with_no_header_is_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes((len(header) + 1).to_bytes(8, "little") + header)
    with pytest.raises(InvalidArgument, match="no receipt"):
        read_receipt(path)
