"""What is kept of a run: weights to publish, and a secret state to go on from."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.attempts import SEAL, Attempts, sealed
from dalenius.learn.costing import Costed
from dalenius.learn.export import Still, write_weights
from dalenius.learn.sharded import local, placed_all, placed_for, whole
from dalenius.learn.shared import join
from dalenius.learn.state import State, chance, line_of
from dalenius.noise.stream import StreamKey
from dalenius.release.receipt import Entry


class Kept(Costed):
    """A run that can be exported, saved and taken up again."""

    steps: int
    reduction: str
    chunk: int
    _views: int
    _begun: bool
    _still: Still | None
    _chance: Any

    def export(self, path: str | os.PathLike[str], *, trained: bool = False) -> None:
        """Write weights and receipt, to publish: the averages, where the run keeps an average.

        With `trained` only parameters that were trained, such as an adapter's. At any time, as the run is
        charged as a whole. Of several processes all call it, and the first writes.
        """
        self._check_still()
        average, model = self.average, self.model.inner
        steps, receipt = f"{self.steps} of {self.sampling.steps} steps", self.receipt
        said = replace(receipt, postprocessing=(*receipt.postprocessing, f"exported after {steps}"))
        state = whole(model.state_dict()) if average is None else average.published()
        if trained:
            state = {name: state[name] for name in self.model.names.values() if name in state}
        self.processes.first("weights", lambda: write_weights(path, state, said, steps=steps))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SECRET state, to resume from, and begin the journal beside it. Always to one name.

        Of several processes all call it, and the first writes.
        """
        if not self._begun:
            raise InvalidArgument(
                "The run has not begun: nothing is charged, and there is nothing to go on from.",
                remedy="Save inside of the loop over private.loader, or after it.",
            )
        self._check_still()
        if self._evaluations > 1:
            raise NotSound(
                "Of several gradients in a step it is not noted which noise they got.",
                remedy="Export the weights, or use an optimizer without closures.",
            )
        place = Path(path).absolute()
        lines = self._attempts.keep(place, self._key)
        state = State(
            facts=self._facts,
            model=whole(self.model.inner.state_dict()),
            optimizer=whole(self.optimizer.state_dict()),
            steps=self.steps,
            secret=self._key.secret.hex(),
            tainted=self._key.tainted,
            clip=self._sum.clip,
            reduction=self.reduction,
            entry=line_of(self._entry),
            lines=lines,
            average=None if self.average is None else self.average.state_dict(),
            chance=self._chance or chance(),
        )
        self.processes.first("a state", lambda: state.write(place))

    def close(self) -> None:
        """Let go of a run that was saved, so that it can be resumed elsewhere. It makes no more steps."""
        self._attempts.close()

    def _go_on(self, state: State, place: Path) -> None:
        if not self.rehearses and self.reduction != state.reduction:
            raise InvalidArgument(
                f"The saved run took the {state.reduction} over rows.",
                remedy=f'Pass reduction="{state.reduction}".',
            )
        key = StreamKey(bytes.fromhex(state.secret), tainted=state.tainted)
        self._attempts = Attempts.resumed(
            place, key, lines=state.lines, steps=state.steps, processes=self.processes
        )
        try:
            self.model.inner.load_state_dict(placed_all(state.model, self.model.inner.state_dict()))
            self.optimizer.load_state_dict(placed_for(state.optimizer, self.optimizer))
            if self.average is not None:
                self.average.load_state_dict(dict(state.average or {}))
        except BaseException:
            self.close()
            raise
        self._key, self._begun, self._chance = key, True, state.chance
        self.steps, self.reduction, self._sum.clip = state.steps, state.reduction, state.clip
        self._entry = None if state.entry is None else Entry(**state.entry)

    def _join(self, rows: int, settings: list[dict[str, Any]]) -> None:
        """All processes train the same, from the weights of the first."""
        if self.processes.count == 1:
            return
        given = {"number of rows": rows, "optimizer's settings": settings, "reduction": self.reduction}
        join(self.processes, {**self._facts, **given}, self.model.inner)
        first, *others = self.processes.each("accounts", self._payer)
        if any(one is not None and one != first for one in others):
            raise InvalidArgument(
                "The account of the first process is charged, and another has another.",
                remedy="Pass one account in the process of rank 0, or the same in all, of a ledger that all "
                "machines share.",
            )

    def _payer(self) -> tuple[str, str] | None:
        """The account and the line that opened it, by which it is known."""
        if self.account is None:
            return None
        with self.account.ledger.store.read() as snapshot:
            opened = next(iter(snapshot.entries(account=self.account.name)))
        return self.account.name, opened.hash

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """What a run that goes on must have in common with the one that was saved; all of it is public."""
        plan, kept = self._sum.plan, self.model.inner.state_dict()
        return {
            "clip": repr(plan.clipping),
            "noise_multiplier": str(plan.noise_multiplier),
            "sampling": self.sampling.plain(),
            "views": self._views,
            "chunk": self.chunk,
            "rehearse": self.rehearses,
            "average": None if self.average is None else self.average.how,
            "model": {name: _form(one) for name, one in kept.items()},
            "trained": list(self.model.names.values()),
            "optimizer": [type(self.optimizer).__name__, *map(_moved, self.optimizer.param_groups)],
        }

    @cached_property
    def _said(self) -> str:
        return json.dumps(self._facts)

    def _seal(self) -> bytes:
        """Of all that noise is about to be added to."""
        kind = self._attempts.kind(self.steps)
        said = f"{self._sum.clip.hex()} {self._sum.short} {self._sum.drawn} {self._said}".encode()
        path, weights = (SEAL, self.steps, self._attempts.now(self.steps)), map(local, self.model.names)
        if self.processes.count == 1:
            return sealed(self._key.stream(*path), said, weights, self._sum.exact(), kind)
        bits = self._key.stream(*path, self.processes.rank)
        tags = self.processes.each("a seal", lambda: sealed(bits, said, weights, self._sum.exact(), kind))
        every = torch.frombuffer(bytearray(b"".join(tags)), dtype=torch.uint8)
        return sealed(self._key.stream(*path), said, (), [every], kind)

    def _check_still(self) -> None:
        if self._still is not None:
            self.processes.each("buffers", self._still.check)


def _form(value: Any) -> list[Any]:
    return [str(value.dtype), *value.shape] if isinstance(value, torch.Tensor) else []


def _moved(group: dict[str, Any]) -> int:
    return len(group["params"])
