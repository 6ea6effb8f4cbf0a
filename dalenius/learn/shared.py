"""`SharedSum`: the sum of a batch whose examples several processes share, and one noise on it.

Each process adds up its own examples. The sums of all parameters of one type, side by side, are cut into as
many parts as there are processes; each gets one part of the total, adds noise to it, and hands it to the
others. So no process ever has the whole sum before noise, each draws its share of the noise, and all have the
same gradient, bit by bit. Of a model whose parameters are sharded (`sharded`), a process keeps its shards.

Gaussian noise is drawn by address, which is the place of an entry among all of them: it is the same however
many processes draw it. Laplace noise has a stream for each process and count of processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.adaptive import Quantile
from dalenius.learn.adding import ADDRESSED, COUNT, NOISE, Plan, Sum
from dalenius.learn.noising import LIMIT, PIECE, WHOLE, add_steps
from dalenius.learn.several import Processes
from dalenius.learn.sharded import cut, is_sharded, shard_like
from dalenius.learn.totals import Side
from dalenius.noise import addressed, kernel
from dalenius.noise.addressed import AddressedSampler
from dalenius.noise.chacha import MOST, Addressed
from dalenius.noise.kernel import Grid
from dalenius.noise.stream import StreamKey

RUN = 9
"""The first number of the path of the stream that tells one run from another."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Sums that lie side by side from `start` on, and how many of them are each process's."""

    number: int
    side: Side
    start: int
    sizes: tuple[int, ...]
    parameter: Tensor | None = None
    """That of which each process has a shard."""

    @property
    def vector(self) -> Tensor:
        """All of them."""
        return self.side.flat[self.start : self.start + sum(self.sizes)]

    def begins(self, rank: int) -> int:
        """The place of a process's first entry among all entries of one type."""
        return self.start + sum(self.sizes[:rank])


class SharedSum(Sum):
    """The sum of a logical batch, of which every process has a part."""

    def __init__(self, names: Mapping[Tensor, str], plan: Plan, processes: Processes) -> None:
        super().__init__(names, plan, flat=True)
        self._processes = processes
        self._stretches = [
            one for number, side in enumerate(self._totals.sides) for one in self._cut(number, side)
        ]
        self._own: list[Tensor] | None = None
        if any(side.size > MOST for side in self._totals.sides):
            raise NotSound(
                f"Noise by address has places for {MOST} numbers of one type.",
                remedy="Train fewer parameters, or parameters of several types.",
            )
        gaussian = plan.clipping.norm == "l2"
        self._by_address = addressed.rounded_gaussian(plan.scale) if gaussian else None

    def _cut(self, number: int, side: Side) -> list[Stretch]:
        if not any(map(is_sharded, side.parameters)):
            return [Stretch(number, side, 0, self._processes.even(side.size))]
        found, start = [], 0
        for one in side.parameters:
            sizes = cut(one, self._processes) if is_sharded(one) else self._processes.even(one.numel())
            found.append(Stretch(number, side, start, sizes, one if is_sharded(one) else None))
            start += one.numel()
        return found

    def clear(self) -> None:
        """Before the first chunk of a batch."""
        self._own = None
        super().clear()

    def meet(self, key: StreamKey, *where: int) -> None:
        """Add up what all processes have, if all are at the same place of the same run."""
        super().exact()
        place = (key.stream(RUN).integer(62), self._clip.hex(), *where)
        found = self._processes.each("a step", lambda: (place, self._short))
        if any(there != place for there, _ in found):
            raise NotSound(
                "Processes are at different steps or runs, drew different batches, or have other settings: "
                "noise would be used twice, or an example counted twice.",
                remedy="Let all of them run the same loop on the same data, in one version of the library.",
            )
        self._short = sum(short for _, short in found)
        self._own = [self._processes.summed(one.vector, one.sizes) for one in self._stretches]

    def exact(self) -> list[Tensor]:
        """After `meet`: the part of this process of the sums before noise."""
        assert self._own is not None, "processes have not met"
        return self._own

    def release(self, key: StreamKey, *path: int, before: Iterable[tuple[int, ...]] = ()) -> None:
        """Add noise to the part of each process, and give every parameter its private gradient."""
        if self._own is None:
            self.meet(key, *path)
        plan, processes = self.plan, self._processes
        for number, (stretch, own) in enumerate(zip(self._stretches, self.exact(), strict=True)):
            self._add(number, stretch, own, key, path)
            if stretch.parameter is None:
                processes.gathered(own, stretch.vector, stretch.sizes)
            else:
                stretch.parameter.grad = shard_like(own, stretch.parameter)
        for parameter, total in self._totals.items():
            if not is_sharded(parameter):
                parameter.grad = total
        self._own = None
        self._totals.let_go()
        if isinstance(plan.clipping, Quantile):
            self._clip = plan.clipping.next(self._clip, self._short, plan.expected, key.stream(COUNT, *path))

    def _add(self, number: int, stretch: Stretch, own: Tensor, key: StreamKey, path: tuple[int, ...]) -> None:
        step, divisor = self._clip / 2**self.plan.numerics.bits, float(self.plan.expected)
        if self._by_address is None:
            place = number, self._processes.rank, self._processes.count
            self._noise.add([own], step, divisor, key.stream(NOISE, *path, *place))
            return
        stream, start = key.addressed(ADDRESSED, *path, stretch.number), stretch.begins(self._processes.rank)
        if self._noise.reaches(own):
            self._noise.add_there(own, step, divisor, stream, start)()
        else:
            add_here(self._by_address, own, step, divisor, stream, start)

    @property
    def drawn(self) -> str:
        """How noise is drawn, and by how many: a step that is made again by others has other sums."""
        how = "in order" if self._by_address is None else "by address"
        sizes = [sum(one.sizes) for one in self._stretches]
        return f"{how} {sizes} by {self._processes.count}"


def add_here(
    sampler: AddressedSampler, total: Tensor, step: float, divisor: float, stream: Addressed, start: int
) -> None:
    """What a GPU adds (`Noise.add_there`), by the processor; the total's first entry is number `start`."""
    grid = Grid(step, LIMIT[torch.int32], step / divisor)
    for part in total.detach().view(-1).split(PIECE):
        noise = sampler.draw(stream, start, start + part.numel())
        if part.device.type == "cpu" and part.dtype in WHOLE:
            kernel.loops.add(part.numpy(), noise, grid)
        else:
            add_steps([part], torch.from_numpy(noise), step, divisor)
        start += part.numel()


def sum_of(names: Mapping[Tensor, str], plan: Plan, processes: Processes) -> Sum:
    """For one process, or for several."""
    if plan.correlated is not None and (processes.count > 1 or any(map(is_sharded, names))):
        raise NotSound(
            "Noise that is correlated from step to step is drawn by one process.",
            remedy="Pass bands=1, or train in one process.",
        )
    if not processes.begun or plan.correlated is not None:
        return Sum(names, plan)
    return SharedSum(names, plan, processes)


def join(processes: Processes, facts: Mapping[str, Any], model: nn.Module) -> None:
    """All train the same, from the weights and buffers of the first; shards are as they were made."""
    processes.agree("one run", facts)
    processes.spread(one for one in (*model.parameters(), *model.buffers()) if not is_sharded(one))
