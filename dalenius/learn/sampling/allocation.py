"""Random allocation: in every epoch each unit takes part in exactly one step, chosen by itself.

Theorem (Feldman and Shenfeld 2025; for Gaussian noise Chua et al. 2025). If (P, Q) dominates every step for
removing a unit, and its step is uniform on 1, …, t, independent of all else and unseen, an epoch is dominated
by ((1/t)Σᵢ Q^{i−1} × P × Q^{t−i}, Q^t), and by the reverse for adding one; epochs of fresh choices compose.
(`losses.allocation`.) An epoch that ends early tells less than a whole one, and is charged as one.

Batches are no shuffle cut into pieces: units choose independently, so their sizes vary. There are
t = ⌈size/batch_size⌉ steps in an epoch, and size/t units are expected in each.

All choices of an epoch come from one stream: `period` is the epoch. They are kept until another stream is
met, which its first 256 bits tell. A batch from a fresh stream of its own, as a second attempt needs, is
independent of the epoch, and holds each unit with probability 1/t: a Poisson sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.errors import NotSound
from dalenius.learn.sampling.choices import below
from dalenius.learn.sampling.coins import CHUNK, Ints
from dalenius.learn.sampling.members import Members
from dalenius.learn.sampling.scheme import Sampling
from dalenius.losses.loss import Loss
from dalenius.noise.bits import Bits


@dataclass(frozen=True, eq=False, repr=False)
class _Epoch:
    """Rows in the order of their steps, and these steps."""

    mark: bytes
    steps: Ints
    rows: Ints


@dataclass(eq=False, repr=False)
class _Kept:
    """The epoch that was looked at last."""

    epoch: _Epoch | None = None


@dataclass(frozen=True, init=False)
class RandomAllocation(Sampling, kind="random_allocation"):
    """Each unit in one step of every epoch."""

    @cached_property
    def kept(self) -> _Kept:
        """Kept with the value, and no part of it."""
        return _Kept()

    @property
    def epoch(self) -> int:
        """Steps of an epoch."""
        return -(-self.size // self.batch_size)

    @property
    def rate(self) -> Fraction:
        """One step of an epoch."""
        return Fraction(1, self.epoch)

    def period(self, step: int) -> int:
        """The epoch of the step."""
        return self._checked(step) // self.epoch

    def batch(self, step: int, bits: Bits) -> Ints:
        """Those who chose this step. The stream of an epoch starts anew for each of its steps."""
        place, mark = self._checked(step) % self.epoch, bits.words(4, np.uint64).tobytes()
        epoch = self.kept.epoch
        if epoch is None or epoch.mark != mark:
            epoch = self.kept.epoch = _allocate(self.members, self.epoch, mark, bits)
        start, end = np.searchsorted(epoch.steps, [place, place + 1])
        return epoch.rows[start:end].copy()

    def loss(self, step: Loss) -> Loss:
        """Every epoch that is begun, as a whole."""
        return self._stated(step).random_allocation(self.epoch) * -(-self.steps // self.epoch)

    def stretch(self, step: Loss, start: int, end: int) -> Loss:
        """Return the loss of whole epochs; refuse part of an epoch, in which a unit's step is one choice."""
        if start % self.epoch or (end % self.epoch and end != self.steps):
            raise NotSound(
                "Random allocation gives every unit one step of an epoch, so part of an epoch has no loss of "
                "its own.",
                remedy=f'Pass pay="epoch", a multiple of {self.epoch} steps, or pay="run".',
            )
        return self._stated(step).random_allocation(self.epoch) * -(-(end - start) // self.epoch)

    def again(self, step: Loss) -> Loss:
        """A batch of other choices."""
        return self._stated(step).poisson(self.rate)

    @property
    def how(self) -> str:
        """The steps of an epoch."""
        return f"random allocation: each unit in one of {self.epoch} steps an epoch, {self.steps} steps"


def _allocate(members: Members, steps: int, mark: bytes, bits: Bits) -> _Epoch:
    chosen = np.empty(members.count, np.int64)
    for start in range(0, chosen.size, CHUNK):
        part = chosen[start : start + CHUNK]
        part[:] = below(np.full(part.size, steps, np.int64), bits)
    order = np.argsort(chosen, kind="stable")
    return _Epoch(mark, chosen[order], members.rows_of(order, bits))
