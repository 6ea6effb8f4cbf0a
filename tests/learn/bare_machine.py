"""A training run from its account to its exported weights, told in JSON. As a script:

python bare_machine.py FOLDER bare|whole        bare: only torch, numpy and scipy can be imported
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

ABSENT = {
    *("cryptography", "duckdb", "flint", "matplotlib", "pandas", "polars", "psycopg", "pyarrow", "rich"),
    *("safetensors", "sklearn", "sqlglot", "typer"),
}


class Without:
    """Finds what another finder does, but none of these packages."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, *where: Any) -> Any:
        return None if name.partition(".")[0] in ABSENT else self._finder.find_spec(name, *where)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def bounds() -> dict[str, list[float]]:
    """ε of losses that training is charged by, and what the ledger measures them with."""
    from dalenius import losses

    gaussian = losses.Gaussian(noise_multiplier=2)
    described = {
        "gaussian": gaussian * 10,
        "poisson": gaussian.poisson(0.02) * 100,
        "laplace": losses.Laplace(scale=3) * 5,
        "pure": losses.Pure(0.1) * 20,
        "mixed": losses.Laplace(scale=4) + gaussian,
    }
    found = {name: loss.epsilon(1e-5) for name, loss in described.items()}
    found["renyi"] = gaussian.poisson(0.02).renyi(4)
    return {name: [bound.lower, bound.upper] for name, bound in found.items()}


def drawn() -> dict[str, list[int]]:
    """Noise of a fixed key: read one after the other, by address, and filtered."""
    import numpy as np

    from dalenius.noise import addressed, narrow
    from dalenius.noise.filtered import Filter, Reals
    from dalenius.noise.stream import StreamKey

    key = StreamKey(bytes(range(32)), tainted=True)
    values = {name: np.empty(5000, np.int32) for name in ("stream", "steep", "filtered")}
    narrow.fill_rounded_gaussian(values["stream"], Fraction(100, 3), key.stream(1, 2))
    narrow.fill_rounded_gaussian(values["steep"], Fraction(1, 3), key.stream(1, 3))
    values["address"] = addressed.rounded_gaussian(2**12).draw(key.addressed(1, 4), 70, 5000)
    reals = [Reals(key.stream(5, j), key.stream(6, j), lambda i, j=j: key.stream(7, j, i)) for j in range(2)]
    Filter((64, -31), Fraction(300), 6).fill(values["filtered"], reals)
    return {
        name: [int(one.sum()), int(np.abs(one).sum()), *one[:20].tolist()] for name, one in values.items()
    }


def trained(folder: Path) -> dict[str, Any]:
    """One run charged to a ledger on disk and exported; another saved, broken off, and resumed."""
    import torch
    from torch import nn

    import dalenius as dp

    def given(**noise: float) -> dict[str, Any]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        return {
            "model": model,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
            "data": (x, y),
            "batch_size": 40,
            "steps": 8,
            "clip": 1,
            "public_size": 400,
            "chunk": 16,
            **noise,
        }

    def go_on(private: Any, until: int) -> None:
        for inputs, labels in private.loader:
            private.zero_grad()
            nn.functional.cross_entropy(private.model(inputs), labels).backward()
            private.step()
            if private.steps == until:
                break

    x = torch.randn(400, 4, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long()
    ledger = dp.Ledger(folder / "people.ledger")
    account = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=4, delta=1e-5))
    private = dp.learn.Private(**given(epsilon=3, delta=1e-6), account=account)
    go_on(private, 8)
    private.export(folder / "model.safetensors")
    spent = private.spent.epsilon(delta=1e-6)
    saved = dp.learn.Private(**given(noise_multiplier=1))
    go_on(saved, 3)
    saved.save(folder / "run.state")
    go_on(saved, 5)
    saved.close()
    again = dp.learn.Private.resume(folder / "run.state", **given(noise_multiplier=1))
    go_on(again, 8)
    return {
        "multiplier": str(private.noise_multiplier),
        "spent": [spent.lower, spent.upper],
        "receipt": dp.learn.read_receipt(folder / "model.safetensors").cost,
        "left": account.left.epsilon,
        "entries": len(account.entries()),
        "attempts": again._attempts.more,
        "weights": {name: one.flatten().tolist() for name, one in private.model.inner.state_dict().items()},
        "resumed": [one.flatten().tolist() for one in again.model.inner.parameters()],
    }


def shorter() -> dict[str, Any]:
    """An optimizer in a loop of one's own, one call for a run, correlated noise, and other samplers."""
    import torch
    from torch import nn

    import dalenius as dp

    x = torch.randn(200, 4, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long()
    found = {}
    for name, more in {
        "truncated": {"sampling": "truncated_poisson", "cap": 40},
        "allocation": {"sampling": "random_allocation"},
        "correlated": {"sampling": "cyclic", "bands": 2},
    }.items():
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        private = dp.learn.Private(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            (x, y),
            batch_size=20,
            steps=10,
            clip=1,
            noise_multiplier=1,
            public_size=200,
            **more,
        )
        for inputs, labels in private.loader:
            private.zero_grad()
            nn.functional.cross_entropy(private.model(inputs), labels).backward()
            private.step()
        found[name] = model.weight.flatten().tolist()
        if name != "truncated":
            bound = private.spent.epsilon(delta=1e-6)
            found[name] += [bound.lower, bound.upper]
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    own = dp.learn.PrivateOptimizer(
        model, torch.optim.Adam(model.parameters()), clip=1, noise_multiplier=1, batch_size=64
    )
    own.zero_grad()
    nn.functional.cross_entropy(own.model(x[:64]), y[:64]).backward()
    own.step()
    found["own"] = model.weight.flatten().tolist()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    dp.learn.fit(model, (x, y), batch_size=50, epochs=1, epsilon=8, delta=1e-5, public_size=200)
    found["fit"] = model.weight.flatten().tolist()
    return found


def main(folder: Path, kind: str) -> None:
    if kind == "bare":
        sys.meta_path[:] = map(Without, sys.meta_path)
    import torch

    torch.set_num_threads(1)
    from dalenius.noise import seeded

    with seeded(b"a bare machine"):
        told = {"bounds": bounds(), "drawn": drawn(), "trained": trained(folder), "shorter": shorter()}
    told["absent"] = sorted(ABSENT & {name.partition(".")[0] for name in sys.modules})
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
