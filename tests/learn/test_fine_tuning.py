"""The example that adapts a Hugging Face model; and its export."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

import dalenius as dp
from dalenius.errors import NotSound
from dalenius.learn import read_receipt

from .architectures.adapted import LoRA

EXAMPLE = Path(__file__).parents[2] / "examples" / "finetune.py"


def test_the_example_is_twenty_lines() -> None:
    code = EXAMPLE.read_text().partition("def tokens")[2].partition('if __name__ == "__main__"')[0]
    lines = [line for line in code.splitlines()[1:] if line.strip() and '"""' not in line]
    assert len([line for line in lines if not line.startswith("def ")]) <= 20


@pytest.mark.filterwarnings("default")
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    private = runpy.run_path(str(EXAMPLE))["main"]()
    assert private.steps == private.sampling.steps
    receipt = read_receipt("adapter.safetensors")
    assert receipt.cost == "epsilon 7 at delta 1e-05"
    assert receipt.unit == dp.Unit("user", column="user")
    assert "at most 4 rows of a unit in a step, chosen at random" in receipt.bounds


def test_an_adapter_is_exported_without_what_was_frozen(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    model = torch.nn.Sequential(
        LoRA(torch.nn.Linear(4, 6), rank=2), torch.nn.Tanh(), LoRA(torch.nn.Linear(6, 2), rank=1)
    )
    given = [one for one in model.parameters() if one.requires_grad]
    rows, units = (torch.randn(60, 4), torch.randint(2, (60,))), torch.arange(60) % 20
    run = dp.learn.fit(
        model,
        rows,
        optimizer=torch.optim.SGD(given, lr=0.1),
        epsilon=3,
        delta=1e-5,
        public_size=20,
        batch_size=5,
        epochs=1,
        units=units,
        rows_per_unit=2,
        progress=False,
    )
    run.export(tmp_path / "whole.safetensors")
    run.export(tmp_path / "adapter.safetensors", trained=True)
    whole, adapter = (load_file(tmp_path / f"{name}.safetensors") for name in ("whole", "adapter"))
    assert set(adapter) == {f"{i}.{name}.weight" for i in (0, 2) for name in ("down", "up")}
    assert {"0.base.weight", "0.base.bias"} <= set(whole)
    assert all(torch.equal(one, whole[name]) for name, one in adapter.items())
    assert read_receipt(tmp_path / "adapter.safetensors") == read_receipt(tmp_path / "whole.safetensors")


class Scored(torch.nn.Module):
    """A model that gives a loss and not outputs, as Hugging Face's do with `labels`."""

    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.head(x), labels)


@pytest.mark.parametrize("by_unit", [False, True])
def test_a_loss_of_the_model_itself_is_refused_before_it_is_charged_for(
    tmp_path: Path, by_unit: bool
) -> None:
    """Where a unit may lack rows; where each row is one it is as good as any."""
    model, rows = Scored(), (torch.randn(60, 4), torch.randint(2, (60,)))
    budget = dp.Budget(epsilon=4, delta=1e-4)
    people = dp.Ledger(tmp_path / "a.ledger").open("people", unit=dp.Unit("person"), budget=budget)
    units = {"units": torch.arange(60) % 20, "rows_per_unit": 2} if by_unit else {}
    private = dp.learn.Private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        rows,
        batch_size=5,
        steps=2,
        clip=1,
        noise_multiplier=4,
        delta=1e-5,
        public_size=20,
        account=people,
        **units,
    )

    def loop() -> None:
        for x, labels in private.loader:
            private.zero_grad()
            private.model(x, labels).backward()
            private.step()

    if by_unit:
        with pytest.raises(NotSound, match="one thing for each row"):
            loop()
        assert float(people.spent) == 0
    else:
        loop()
        assert private.steps == 2
