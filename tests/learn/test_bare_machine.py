"""On a machine with torch, numpy and scipy alone training does the same, to the last bit of noise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

SCRIPT = Path(__file__).with_name("bare_machine.py")
CLOSE = 1e-9
"""How far apart ends of enclosures may be, relatively."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("machines")
    begun = {}
    for kind in ("bare", "whole"):
        (folder / kind).mkdir()
        command = [sys.executable, str(SCRIPT), str(folder / kind), kind]
        begun[kind] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = {kind: one.communicate()[0].splitlines() for kind, one in begun.items()}
    # A bar of steps may come first.
    found: dict[str, Any] = {kind: json.loads(lines[-1]) for kind, lines in said.items()}
    return {**found, "folder": folder}


def test_the_machine_is_bare(told: dict[str, Any]) -> None:
    assert told["bare"]["absent"] == []
    assert {"cryptography", "flint", "safetensors"} <= set(told["whole"]["absent"])


def test_noise_is_the_same_to_the_last_bit(told: dict[str, Any]) -> None:
    assert told["bare"]["drawn"] == told["whole"]["drawn"]
    assert told["bare"]["shorter"].keys() == told["whole"]["shorter"].keys()
    for name, found in told["whole"]["shorter"].items():
        assert told["bare"]["shorter"][name][:8] == found[:8], name


def test_weights_are_the_same_and_are_in_the_file(told: dict[str, Any]) -> None:
    bare, whole = told["bare"]["trained"], told["whole"]["trained"]
    assert bare["weights"] == whole["weights"] and bare["multiplier"] == whole["multiplier"]
    assert bare["receipt"] == whole["receipt"] and bare["entries"] == whole["entries"]
    assert bare["resumed"] == whole["resumed"] and bare["attempts"] == whole["attempts"] == 0
    exported = load_file(told["folder"] / "bare" / "model.safetensors")
    assert {name: one.flatten().tolist() for name, one in exported.items()} == bare["weights"]
    others = load_file(told["folder"] / "whole" / "model.safetensors")
    assert all(torch.equal(exported[name], one) for name, one in others.items())


def test_bounds_hold_each_other_and_are_as_narrow(told: dict[str, Any]) -> None:
    pairs = [(told["bare"]["bounds"][name], ends) for name, ends in told["whole"]["bounds"].items()]
    pairs.append((told["bare"]["trained"]["spent"], told["whole"]["trained"]["spent"]))
    for name in ("allocation", "correlated"):
        pairs.append((told["bare"]["shorter"][name][8:], told["whole"]["shorter"][name][8:]))
    for bare, whole in pairs:
        assert bare[0] <= whole[1] and whole[0] <= bare[1]
        assert bare == pytest.approx(whole, rel=CLOSE)
    assert told["bare"]["trained"]["left"] == pytest.approx(told["whole"]["trained"]["left"], rel=CLOSE)
