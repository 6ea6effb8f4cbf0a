"""`State`: a run at rest, to be resumed. It is SECRET: with the key in it all noise of the run is known.

The file can be read by its owner alone from the moment it is there (mode 0600), and is replaced as a whole:
after a crash it is the old one or the new one. It holds tensors, numbers and texts, and is read as such;
nothing in it is run. What the noise was used for since is in the journal beside it (`journal`).

Resuming is exact where loop, data and arithmetic are the same: the state of torch's generators, which dropout
draws from, is in the file too. Schedules of learning rates and anything else that a loop keeps is the loop's
to save.

A state that is copied together with its journal, or restored with it from a backup, is told by the ledger of
the account that paid, where each use of noise is noted (`ledger.uses`): of two runs that go on from it one is
refused. A run without an account has no such ledger. Two copies of it that go on use the same noise for
different sums, and the difference of what they release has no noise: nothing bounds what that tells.

A state that other users can read, change or replace is refused (`secret_files`).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from dalenius.errors import InvalidArgument, UnknownKind
from dalenius.learn.adding import Plan
from dalenius.learn.averaging import Average
from dalenius.learn.gradients import Watched
from dalenius.learn.journal import sync_folder
from dalenius.learn.sampling import Sampling
from dalenius.ledger.account import Account
from dalenius.release.receipt import Entry
from dalenius.secret_files import check_secret_file

FORMAT, VERSION = "dalenius-run", 2
_PLAIN = {str, int, float, bool, type(None), Tensor, Parameter}


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Everything that a run goes on from; `facts` are public and must be the same when it does."""

    facts: Mapping[str, Any]
    model: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    steps: int
    secret: str
    tainted: bool
    clip: float
    reduction: str
    entry: Mapping[str, Any] | None
    lines: int
    paid: int
    average: Mapping[str, Any] | None = None
    chance: Mapping[str, Any] = field(default_factory=dict)
    entrances: Sequence[str] = ()
    """How passes were made so far (`gradients`), for receipts."""

    def write(self, path: Path) -> None:
        """Replace the file, whole or not at all."""
        content = {part.name: detached(getattr(self, part.name)) for part in fields(self)}
        if not _plain(content):
            raise InvalidArgument(
                "The model or the optimizer holds more than tensors, numbers and texts.",
                remedy="Use modules without extra state, and plain numbers for learning rates.",
            )
        half = path.with_name(path.name + ".new")
        half.unlink(missing_ok=True)
        handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "wb") as file:
                torch.save({"format": FORMAT, "version": VERSION, **content}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(half, path)
        except BaseException:
            half.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)

    @staticmethod
    def read(path: Path) -> State:
        """From a file that `write` made."""
        check_secret_file(path.resolve(), "run")
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise InvalidArgument(
                f"There is no {path.name} to resume.", remedy="Pass the name that was given to save."
            ) from None
        except Exception:
            raise _unknown(path) from None
        names = {part.name for part in fields(State)}
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise _unknown(path)
        version = content.pop("version", None)
        if version == 1 and isinstance(content.get("facts"), dict):
            # Runs of the first version were charged as a whole.
            content["paid"] = content["facts"].get("sampling", {}).get("steps")
            content["facts"]["pay"] = "run"
        elif version != VERSION:
            raise _unknown(path)
        content.setdefault("entrances", ())
        if set(content) != names:
            raise _unknown(path)
        return State(**content)

    def check(self, facts: Mapping[str, Any]) -> None:
        """Refuse a run of other public facts."""
        others = [name for name in facts if facts[name] != self.facts.get(name)]
        if others:
            raise InvalidArgument(
                f"The saved run had another {', another '.join(others)}.",
                remedy="Pass what it was begun with, or begin a new run, which is charged by itself.",
            )

    def check_account(self, account: Account | None) -> None:
        """Refuse an account other than the one that paid."""
        line = None if self.entry is None else Entry(**self.entry)
        if line is None and account is None:
            return
        if line is None or account is None or not account.holds(line):
            raise InvalidArgument(
                "The saved run was not charged to an account."
                if line is None
                else f"The saved run was charged to {line}, which is not in the account given.",
                remedy="Leave account out." if line is None else "Pass the account that paid for it.",
            )


def facts_of(
    plan: Plan,
    sampling: Sampling,
    model: Watched,
    optimizer: torch.optim.Optimizer,
    *,
    average: Average | None,
    **more: Any,
) -> dict[str, Any]:
    """Return what a run that goes on must have in common with the run that was saved; all of it is public.

    Args:
        plan: What is done in every step.
        sampling: How batches are drawn.
        model: The model and its trained parameters.
        optimizer: The optimizer, of which the type and the number of parameters count.
        average: The average of the weights that is kept, if any.
        more: Further facts by name, as plain values.
    """
    return {
        "clip": repr(plan.clipping),
        "noise_multiplier": str(plan.noise_multiplier),
        "sampling": sampling.plain(),
        "average": None if average is None else average.how,
        "model": {name: _form(value) for name, value in model.inner.state_dict().items()},
        "trained": list(model.names.values()),
        "optimizer": [type(optimizer).__name__, *(len(group["params"]) for group in optimizer.param_groups)],
        **more,
    }


def _form(value: Any) -> list[Any]:
    return [str(value.dtype), *value.shape] if isinstance(value, Tensor) else []


def line_of(entry: Entry | None) -> dict[str, Any] | None:
    """The account's line as plain values."""
    return None if entry is None else asdict(entry)


def chance() -> dict[str, Any]:
    """The state of torch's generators, which dropout draws from; noise does not."""
    found: dict[str, Any] = {"cpu": torch.get_rng_state()}
    return found | ({"cuda": torch.cuda.get_rng_state_all()} if torch.cuda.is_initialized() else {})


def set_chance(found: Mapping[str, Any]) -> None:
    """Put them back; those of devices that are not here are left out."""
    torch.set_rng_state(found["cpu"])
    for number, state in enumerate(found.get("cuda", ())):
        if number < torch.cuda.device_count():
            torch.cuda.set_rng_state(state, number)


def _plain(value: Any) -> bool:
    """Whether it can be read back without running anything."""
    if type(value) in (dict, OrderedDict):
        return all(_plain(key) and _plain(one) for key, one in value.items())
    return all(map(_plain, value)) if type(value) in (list, tuple) else type(value) in _PLAIN


def detached(state: Any) -> Any:
    """Return a state with its tensors without their graphs and tags, whatever their classes would return."""
    if isinstance(state, Mapping):
        return {name: detached(value) for name, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(map(detached, state))
    if not isinstance(state, Tensor):
        return state
    with torch._C.DisableTorchFunction():
        return Tensor.detach(state)


def _unknown(path: Path) -> UnknownKind:
    return UnknownKind(
        f"{path.name} is not the state of a run, or one of a version that this library cannot read.",
        remedy="Pass a file that private.save wrote, and use the version of the library that wrote it.",
    )
