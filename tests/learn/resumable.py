"""A tiny run that can be killed anywhere. As a script it forks runs, kills them for real, and resumes them.

resumable.py FOLDER        writes FOLDER/results.json
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dalenius import Budget, Ledger, Unit
from dalenius.errors import DaleniusError
from dalenius.learn.adaptive import Quantile
from dalenius.learn.private import Private
from dalenius.ledger.account import Account
from dalenius.noise.stream import StreamKey

STEPS, EVERY = 10, 3
SAVED, STOPPED = 3, 6
"""A run is saved after so many steps, and stops after so many."""
KEY = StreamKey(bytes(range(32)), tainted=True)
After = Callable[[Private], None]


def people(folder: Path) -> Account:
    ledger = Ledger(folder / "ledger")
    return ledger.open("people", unit=Unit("person"), budget=Budget(epsilon=200, delta=1e-5))


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    bits = torch.Generator().manual_seed(1)
    x = torch.randn(60, 4, generator=bits)
    return x, (x[:, 0] > 0).long()


def arguments(dropout: float = 0.5) -> dict[str, Any]:
    """As they are given to Private, and again to resume."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 2))
    return {
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.1),
        "data": rows(),
        "batch_size": 12,
        "steps": STEPS,
        "public_size": 60,
        "clip": Quantile(1),
        "noise_multiplier": 1,
        "chunk": 5,
        "by": "ana",
    }


def begun(**more: Any) -> Private:
    private = Private(**{**arguments(), **more})
    private._key = KEY
    return private


def train(private: Private, *, until: int = STEPS, after: After = lambda _: None) -> None:
    """Up to a step; `after` is called after every one."""
    done = private.steps
    if done >= until:
        return
    for x, y in private.loader:
        private.zero_grad()
        nn.functional.cross_entropy(private.model(x), y).backward()
        private.step()
        if private.steps > done:
            done = private.steps
            after(private)
        if done >= until:
            return


def weights(private: Private) -> str:
    """All bits of the model."""
    return b"".join(one.numpy().tobytes() for one in private.model.inner.state_dict().values()).hex()


def saving(path: Path) -> After:
    return lambda private: private.save(path) if private.steps % EVERY == 0 else None


def in_memory(epsilon: float = 200) -> Account:
    return Ledger.memory().open("people", unit=Unit("person"), budget=Budget(epsilon=epsilon, delta=1e-5))


def charges(given: Account) -> int:
    return sum(entry.event == "reserve" for entry in given.entries())


def other_rows() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = rows()
    return x + 1, y


def noise_of(private: Private) -> dict[int, list[torch.Tensor]]:
    """For each step, the noise that is added to its sums."""
    found: dict[int, list[torch.Tensor]] = {}
    release = private._sum.release

    def watched(key: Any, step: int, *path: int, **more: Any) -> None:
        before, clip = [one.clone() for one in private._sum.exact()], private._sum.clip
        release(key, step, *path, **more)
        after = [one.grad for one in private.model.names]
        found[step] = [(b * 12 - a) / clip for a, b in zip(before, after, strict=True)]

    private._sum.release = watched  # type: ignore[method-assign]
    return found


def stopped(path: Path, *, paid: Account | None = None, **more: Any) -> dict[int, list[torch.Tensor]]:
    """A run that ended some time after it was saved, and the noise it had used."""
    private = begun(account=paid, **more)
    noise = noise_of(private)
    train(private, until=STOPPED, after=lambda one: one.save(path) if one.steps == SAVED else None)
    private.close()
    return noise


def refused(path: Path, match: str, **given: Any) -> None:
    with pytest.raises(DaleniusError, match=match) as found:
        Private.resume(path, **{**arguments(), **given})
    assert found.value.remedy


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str, number: int) -> None:
    """Die where `owner.name` is called for the so many-th time, before anything happens."""
    original, calls = getattr(owner, name), [0]

    def called(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            die()
        return original(*args, **kwargs)

    setattr(owner, name, called)


def written(private: Private, number: int) -> None:
    """Die while the so many-th line of the journal is written: half of it is there."""
    from dalenius.learn import journal

    original, calls = os.write, [0]

    def half(handle: int, line: bytes) -> int:
        calls[0] += 1
        if calls[0] == number:
            original(handle, line[: len(line) // 2])
            die()
        return original(handle, line)

    journal.os = type("os", (), {**vars(os), "write": staticmethod(half)})  # type: ignore[attr-defined]


POINTS: dict[str, Callable[[Private], None]] = {
    "before a line": lambda private: before(private._attempts, "use", 6),
    "in a line": lambda private: written(private, 4),
    "after a line": lambda private: before(private._sum, "release", 6),
    "after noise": lambda private: before(private.optimizer, "step", 6),
    "after a move": lambda private: before(private._attempts, "done", 8),
    "in the first save": lambda private: before(torch, "save", 1),
    "in a later save": lambda private: before(torch, "save", 2),
    "before the new state is there": lambda private: before(os, "replace", 2),
    "after a save": lambda private: before(private._attempts, "lost", 4),
}


def work(folder: Path, point: str | None = None) -> dict[str, Any]:
    """Begin or resume, train to the end or to a death, and say what came of it."""
    state, account = folder / "run.state", people(folder)
    private = (
        Private.resume(state, account=account, **arguments()) if state.exists() else begun(account=account)
    )
    if point is not None:
        POINTS[point](private)
    train(private, after=saving(state))
    charges = sum(entry.event == "reserve" for entry in account.entries())
    return {"weights": weights(private), "charges": charges, "more": private._attempts.more}


def forked(job: Callable[[], None], *, kill_after: float | None = None) -> bool:
    """Run in a child; whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            job()
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a child failed")
    return os.WIFEXITED(status)


def finished(folder: Path) -> dict[str, Any]:
    """Resume in a child, to the end."""
    forked(lambda: (folder / "result").write_text(json.dumps(work(folder))) and None)
    return json.loads((folder / "result").read_text())


def at_points(folder: Path) -> dict[str, Any]:
    found = {}
    for number, point in enumerate(POINTS):
        own = folder / str(number)
        own.mkdir()
        assert not forked(lambda own=own, point=point: work(own, point) and None), point
        left = (own / "run.state").exists()
        found[point] = {**finished(own), "resumed": left}
    return found


def at_random(folder: Path, kills: int) -> dict[str, Any]:
    """Killed again and again, at any moment."""
    folder.mkdir()
    start = time.monotonic()
    forked(lambda: work(folder) and None)
    whole = time.monotonic() - start
    for name in os.listdir(folder):
        (folder / name).unlink()
    chance, ends = random.Random(), 0
    for _ in range(kills):
        ends += forked(lambda: work(folder) and None, kill_after=chance.uniform(0, whole))
    return {**finished(folder), "ends": ends}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    # What is imported and computed once is there before anything is forked.
    train(begun())
    (folder / "whole").mkdir()
    results = {"whole": finished(folder / "whole"), "points": at_points(folder)}
    results["random"] = at_random(folder / "random", 4)
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
