"""Small runs in several processes, which are forked and meet by gloo."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.utils.data import Dataset

from dalenius import Budget, Ledger, Unit
from dalenius.learn.adaptive import Quantile
from dalenius.learn.clipping import Absolute, PerLayer
from dalenius.learn.optimizer import PrivateOptimizer
from dalenius.learn.private import Private
from dalenius.learn.sharded import whole
from dalenius.learn.shared import SharedSum
from dalenius.ledger.account import Account
from dalenius.noise.stream import StreamKey

ROWS, STEPS, EXPECTED, EVERY = 60, 4, 12, 2
KEY = StreamKey(bytes(range(32)), tainted=True)
RULES = {"quantile": Quantile(0.1), "layers": PerLayer(0.1), "absolute": Absolute(0.1)}
PATIENCE = timedelta(minutes=30)
Job = Callable[[int, int, Path], Any]


class Rows(Dataset[tuple[Tensor, Tensor]]):
    """Data that note which of them were asked for."""

    def __init__(self, moved: float = 0.0) -> None:
        bits = torch.Generator().manual_seed(1)
        self.x = torch.randn(ROWS, 4, generator=bits, dtype=torch.float64)
        self.y = (self.x[:, 0] > 0).long()
        # The last rows are mostly those of the last process.
        self.x[-ROWS // 4 :] += moved
        self.asked: list[int] = []

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        self.asked.append(row)
        return self.x[row], self.y[row]


def network(*, seed: int = 0, dropout: float = 0.0) -> nn.Sequential:
    """Of sizes that two processes do not share evenly."""
    torch.manual_seed(seed)
    layers = nn.Linear(4, 7), nn.Tanh(), nn.Dropout(dropout), nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 2)
    return nn.Sequential(*layers).double()


def people(folder: Path, epsilon: float = 200) -> Account:
    ledger = Ledger(folder / "ledger")
    return ledger.open("people", unit=Unit("person"), budget=Budget(epsilon=epsilon, delta=1e-5))


def arguments(model: nn.Module, **more: Any) -> dict[str, Any]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    given = {"batch_size": EXPECTED, "steps": STEPS, "public_size": ROWS, "clip": 0.1, "noise_multiplier": 1}
    rest = {"model": model, "optimizer": optimizer, "data": Rows(), "chunk": 5, "by": "ana", "pad_to": {}}
    return {**given, **rest, **more}


def begun(model: nn.Module, **more: Any) -> Private:
    private = Private(**arguments(model, **more))
    private._key = KEY
    compare, data = private.supply.compare, private.supply._dataset

    def unnoted(*given: Any) -> None:
        """Rows that are compared are asked for by number, whoever is in the batch."""
        asked = list(getattr(data, "asked", ()))
        compare(*given)
        if hasattr(data, "asked"):
            data.asked[:] = asked

    private.supply.compare = unnoted  # type: ignore[method-assign]
    return private


def train(private: Private, after: Callable[[Private], None] = lambda _: None) -> None:
    done = private.steps
    for x, y in private.loader:
        private.zero_grad()
        nn.functional.cross_entropy(private.model(x), y).backward()
        private.step()
        if private.steps > done:
            done = private.steps
            after(private)


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: one.detach().clone() for name, one in whole(model.state_dict()).items()}


def watch(private: Private | PrivateOptimizer) -> list[dict[str, Any]]:
    """For each step this process's part of the sum, before and after noise, and the bound."""
    found: list[dict[str, Any]] = []
    release, total = private._sum.release, private._sum
    assert isinstance(total, SharedSum)

    def watched(key: Any, *path: int, **more: Any) -> None:
        if total._own is None:
            total.meet(key, *path)
        own, clip = total.exact(), total.clip
        before = torch.cat(own).clone()
        release(key, *path, **more)
        found.append({"before": before, "after": torch.cat(own), "clip": clip})

    private._sum.release = watched  # type: ignore[method-assign]
    return found


def charges(account: Account) -> int:
    return sum(entry.event == "reserve" for entry in account.entries())


def error_of(call: Callable[[], Any]) -> tuple[str, str]:
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


def ddp(model: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model)


def shard() -> Callable[..., Any]:
    """How a module is sharded among all processes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return partial(fully_shard, mesh=init_device_mesh("cpu", (distributed.get_world_size(),)))


def fsdp(model: nn.Sequential) -> nn.Module:
    """Layers by themselves."""
    how = shard()
    for layer in model:
        how(layer)
    return how(model)


def forked(job: Job, count: int, folder: Path) -> list[Any]:
    """What each of so many processes gave, or None where it died or failed."""
    folder.mkdir(exist_ok=True)
    meeting = folder / "meeting"
    meeting.unlink(missing_ok=True)
    children = []
    for rank in range(count):
        child = os.fork()
        if child == 0:
            _child(job, rank, count, folder)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    found = []
    for rank in range(count):
        result = folder / f"{rank}.result"
        found.append(pickle.loads(result.read_bytes()) if result.exists() else None)
        result.unlink(missing_ok=True)
    return found


def _child(job: Job, rank: int, count: int, folder: Path) -> None:
    try:
        torch.set_num_threads(1)
        place = f"file://{folder / 'meeting'}"
        distributed.init_process_group(
            "gloo", init_method=place, rank=rank, world_size=count, timeout=PATIENCE
        )
        found = job(rank, count, folder)
        (folder / f"{rank}.result").write_bytes(pickle.dumps(found))
        distributed.barrier()
        distributed.destroy_process_group()
    except BaseException:
        with open(folder / f"{rank}.error", "a") as file:
            traceback.print_exc(file=file)
        os._exit(1)
    os._exit(0)
