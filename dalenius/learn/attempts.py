"""`Attempts`: noise is used for one thing only, whatever becomes of a run.

A run that is resumed, or a step that was broken off after its noise was drawn, meets streams that were used
before. The noise of a step may be used again only for sums that are bit for bit those it was used for: what
is released is then what was released. For any others the step is made anew, as its next attempt, with a batch
and noise from streams of their own, and charged by itself before its data are read.

Sums are told by a seal: a tag (`noise.tags`) of the plan, the bound in force, some of the weights and all
sums, under a key for this one attempt. That different sums have one tag is as good as impossible, and a tag
says nothing of sums to those without the key of the run. A seal is held against one of its own kind, so that
a run may go on where another kind is the quick one.
Before a run is saved its key dies with the process, and there are no seals: a step that was broken off is
always made anew.

Once a step is made anew the weights go another way, so all that was noted of later steps is void: these are
made anew as well, each charged, without a look at their sums. So, as long as data, loop and arithmetic are
what they were, how often a run is charged depends on where it was broken off, and on nothing private.

A state that is put back together with its journal looks whole. Where an account paid, its ledger notes each
line of the journal before anything follows from it (`ledger.uses`), and refuses all but one continuation.

Of several processes the first has the journal; all know what is in it, and none goes on before it is there.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.journal import Journal, Line, beside
from dalenius.learn.several import Processes
from dalenius.ledger.account import Account
from dalenius.ledger.uses import Uses
from dalenius.noise import tags
from dalenius.noise.bits import Bits
from dalenius.noise.stream import StreamKey
from dalenius.release.receipt import Entry

LINES, SEAL = 3, 4
"""The first numbers of the paths of streams that the keys of checks and of seals come from."""
SOME = 1024
"""Weights of a tensor that go into a seal: those of two runs that parted differ nearly everywhere."""


class Attempts:
    """Which attempt of a step is the one to make, and what its noise was used for."""

    def __init__(self, processes: Processes | None = None) -> None:
        self._processes = processes or Processes()
        self._journal: Journal | None = None
        self._uses: Uses | None = None
        self._kept = False
        self._now: dict[int, int] = {}
        self._used: dict[int, bytes] = {}
        self._lost: set[int] = set()
        self._again: list[Line] = []
        self._made, self._process = 0, os.getpid()
        self.paid: tuple[int, int] | None = None
        """How many steps were last noted as paid, and the number of the account's line, or 0."""

    def __reduce__(self) -> NoReturn:
        raise not_copied()

    @classmethod
    def resumed(
        cls,
        state: Path,
        key: StreamKey,
        *,
        lines: int,
        steps: int,
        account: Account | None = None,
        processes: Processes | None = None,
    ) -> Attempts:
        """Return the attempts of a saved run, from the journal beside its state.

        Args:
            state: The file of the state.
            key: The key of the run.
            lines: How many lines the journal had when the state was saved.
            steps: How many steps the state has.
            account: The account that paid, in whose ledger uses of noise are noted.
            processes: The processes of the run.
        """
        found = cls(processes)
        noted = found._processes.first("the journal", lambda: found._open(state, key, lines, steps, account))
        found._kept, found._made = True, steps
        for line in noted:
            found._note(line)
        return found

    def _open(
        self, state: Path, key: StreamKey, lines: int, steps: int, account: Account | None
    ) -> list[Line]:
        journal, noted = Journal.open(state, _secret(key.stream(LINES)), least=lines)
        try:
            if any(line.kind == "again" and line.step < steps for line in noted[lines - 1 :]):
                raise NotSound(
                    f"Since {state.name} was saved, an older state was resumed and went another way.",
                    remedy="Resume the state that was saved last.",
                )
            self._uses = Uses.of(account, key)
            if self._uses is not None:
                before, last = journal.ends
                self._uses.resumed(last, before)
        except BaseException:
            journal.close()
            raise
        self._journal = journal
        return noted

    def keep(self, state: Path, key: StreamKey, account: Account | None = None) -> int:
        """Put everything on disk from now on, before a state is saved; return the number of lines.

        Args:
            state: The file of the state.
            key: The key of the run.
            account: The account that paid, in whose ledger uses of noise are noted.
        """
        self._kept = True
        return self._processes.first("the journal", lambda: self._keep(state, key, account))

    def _keep(self, state: Path, key: StreamKey, account: Account | None) -> int:
        if self._journal is None:
            self._journal = Journal.create(state, _secret(key.stream(LINES)))
            self._uses = Uses.of(account, key)
            used = [Line("used", step, self.now(step), seal) for step, seal in self._used.items()]
            for line in (*self._again, *used):
                self._journal.write(line)
            self._note_use()
        elif self._journal.path != beside(state):
            raise InvalidArgument(
                f"This run is saved beside {self._journal.path.name}, where its noise is noted.",
                remedy="Save it under the same name; to keep weights of several moments, export them.",
            )
        self._journal.held()
        return self._journal.count

    def close(self) -> None:
        """Let another process resume the run."""
        if self._journal is not None:
            self._journal.close()

    @property
    def more(self) -> int:
        """How many attempts were charged beside the run."""
        return len(self._again)

    def now(self, step: int) -> int:
        """The attempt that is to be made, 0 being the first."""
        return self._now.get(step, 0)

    def lost(self, step: int) -> bool:
        """Whether the noise of this attempt was used for something that cannot be had again."""
        self.check(step)
        return step in self._lost or self._used.get(step) == b""

    def check(self, step: int) -> None:
        """Refuse a step that was made before, or a run that another process began."""
        if step < self._made or os.getpid() != self._process:
            raise _elsewhere()

    def check_process(self) -> None:
        """Refuse a run that another process began, of which this one is a fork."""
        if os.getpid() != self._process:
            raise _elsewhere()

    def again(self, step: int) -> None:
        """After the charge, before data are read: the step is made anew."""
        self._write(Line("again", step, self.now(step) + 1))

    def note_paid(self, steps: int, entry: Entry | None) -> None:
        """Note, after a charge, that the first `steps` steps have been paid for, and by which line."""
        self._write(Line("paid", steps, 0 if entry is None else entry.number))

    def kind(self, step: int) -> int:
        """The kind of seal to make: that of the one there is, else what is quick in all processes."""
        return len(self._used.get(step, b"")) or self._quick

    @cached_property
    def _quick(self) -> int:
        return max(self._processes.each("a kind of seal", tags.quick))

    def use(self, step: int, seal: Callable[[], bytes]) -> bool:
        """Before noise is added: whether it may be. If not, the attempt is lost."""
        self.check(step)
        found = seal() if self._kept else b""
        if step not in self._used:
            self._write(Line("used", step, self.now(step), found))
            return True
        if found and hmac.compare_digest(found, self._used[step]):
            return True
        self._void(step)
        return False

    def done(self, step: int) -> None:
        """The step was made: nobody comes back to it here."""
        self._made = step + 1
        self._used.pop(step, None)

    def _write(self, line: Line) -> None:
        if self._kept:
            self._processes.first(str(line), lambda: self._to_disk(line))
        self._note(line)

    def _to_disk(self, line: Line) -> None:
        if self._journal is not None:
            self._journal.write(line)
            self._note_use()

    def _note_use(self) -> None:
        """Note the last line of the journal in the ledger, or end the run where that fails."""
        if self._uses is None or self._journal is None:
            return
        try:
            self._uses.note(self._journal.ends[1])
        except BaseException:
            self._journal.close()
            raise

    def _note(self, line: Line) -> None:
        if line.kind == "paid":
            self.paid = line.step, line.attempt
            return
        if line.kind == "used":
            self._used[line.step] = line.seal
            return
        # In this order: wherever it is interrupted, the step has another attempt or still counts as lost.
        self._again.append(line)
        self._now[line.step] = line.attempt
        self._void(line.step)
        self._lost.discard(line.step)

    def _void(self, first: int) -> None:
        """From this step on noise was used on a way that is not gone any more."""
        void = {step for step in self._used if step >= first}
        self._lost |= void
        for step in void:
            self._used.pop(step, None)


def not_copied() -> NotSound:
    """Return the refusal of a copy of a run, or of a part of it."""
    return NotSound(
        "A run is not copied: both would use the same noise.",
        remedy="Copy private.model.inner; or save the run, and resume it when this one has ended.",
    )


def _elsewhere() -> NotSound:
    return NotSound(
        "The step was made before, or the run belongs to another process: noise would be used twice.",
        remedy="Go on where the run is, in the process that began it, or resume it from a state.",
    )


def sealed(
    bits: Bits, public: bytes, weights: Iterable[Tensor], sums: Iterable[Tensor], kind: int = tags.GALOIS
) -> bytes:
    """A tag of what noise is added to, of a kind. `public` says how much of the rest there is."""
    said = len(public).to_bytes(8, "little") + public
    some = (_bytes(one.detach().flatten()[:: one.numel() // SOME + 1]) for one in weights)
    return tags.tag(_secret(bits), chain([said], some, (_bytes(one.detach()) for one in sums)), kind)


def joint_seal(
    key: StreamKey,
    path: Sequence[int],
    public: bytes,
    weights: Iterable[Tensor],
    sums: Callable[[], Iterable[Tensor]],
    kind: int,
    processes: Processes,
) -> bytes:
    """Return the seal of a step's sums, of which each process has a part.

    Args:
        key: The key of the run.
        path: The path of the stream that the seal's key comes from.
        public: What the sums are of, in words.
        weights: The weights that the sums were made with.
        sums: Gives the sums of this process.
        kind: The kind of tag (`noise.tags`).
        processes: The processes of the run, each of which calls it.
    """
    if processes.count == 1:
        return sealed(key.stream(*path), public, weights, sums(), kind)
    bits = key.stream(*path, processes.rank)
    parts = processes.each("a seal", lambda: sealed(bits, public, weights, sums(), kind))
    every = torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.uint8)
    return sealed(key.stream(*path), public, (), [every], kind)


def _secret(bits: Bits) -> bytes:
    return bits.words(4, np.uint64).tobytes()


def _bytes(given: Tensor) -> memoryview:
    return given.cpu().contiguous().view(-1).view(torch.uint8).numpy().data
