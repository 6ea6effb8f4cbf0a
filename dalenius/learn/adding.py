"""`Sum`: the clipped gradients of one logical batch, chunk by chunk, and the noise on them, once.

An example is clipped by itself, whatever it is computed with; noise is added to the sum of all chunks, and
what is released is divided by the expected size of a batch. Nothing else leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import torch
from torch import Tensor

from dalenius.learn.adaptive import STEPS, Quantile
from dalenius.learn.clipping import Clipping
from dalenius.learn.correlated import Correlated
from dalenius.learn.gradients import Shares
from dalenius.learn.noising import Noise, together
from dalenius.learn.numerics import Numerics
from dalenius.learn.parts import Part
from dalenius.learn.totals import Side, Totals
from dalenius.noise.stream import StreamKey

NOISE, COUNT, ADDRESSED = 1, 2, 8
"""The first numbers of the paths of streams: noise on tensors, on the count of short gradients, on a GPU."""


@dataclass(frozen=True)
class Plan:
    """What is done in every step, all of it public."""

    clipping: Clipping
    noise_multiplier: Fraction
    expected: Fraction
    numerics: Numerics
    correlated: Correlated | None = None

    @property
    def scale(self) -> Fraction:
        """Of the noise, in steps of the grid."""
        return self.noise_multiplier * (1 << self.numerics.bits)


class Sum:
    """The sum of a logical batch, kept in the parameters' own buffers."""

    def __init__(self, names: Mapping[Tensor, str], plan: Plan, *, flat: bool = False) -> None:
        self.names, self.plan = names, plan
        self._totals = Totals(names, flat=flat)
        self._fresh: set[Tensor] = set(names)
        self._noise = Noise(plan.clipping.norm, plan.scale)
        self._clip = float(plan.clipping.clip)
        self._short = 0

    @property
    def clip(self) -> float:
        """The bound in force, which is public."""
        return self._clip

    @clip.setter
    def clip(self, clip: float) -> None:
        self._clip = clip

    @property
    def short(self) -> int:
        """What is counted for an adaptive bound: secret."""
        return self._short

    def clear(self) -> None:
        """Before the first chunk of a batch."""
        self._fresh, self._short = set(self.names), 0
        self._totals.renew()

    def add(self, shares: Shares, *, scale: float = 1.0, real: Tensor | None = None) -> None:
        """One chunk: gradients of its backward pass times `scale`. What is not `real` counts nothing."""
        real = _counted(shares, real)
        found = self._weights(shares, scale, real)
        if found is None:
            return
        weights, total, bad = found
        shares.add(weights, self._totals, fresh=self._fresh)
        self._fresh -= shares.parameters
        self._count(total, bad, real)

    def alone(
        self, parts: Mapping[Tensor, Part], examples: int, *, scale: float, real: Tensor | None = None
    ) -> dict[Tensor, Tensor]:
        """The clipped sums of layers that have bounds of their own, not added to any batch yet."""
        shares, totals = Shares(parts, examples), {one: torch.zeros_like(one) for one in parts}
        found = self._weights(shares, scale, real)
        if found is not None:
            shares.add(found[0], totals)
        return totals

    def _weights(
        self, shares: Shares, scale: float, real: Tensor | None
    ) -> tuple[dict[Tensor, Tensor], Tensor, Tensor] | None:
        """What every example's gradient is multiplied by, what it measures, and whether it is no number."""
        norms = shares.norms(self.plan.clipping.norm, apart=self.plan.clipping.apart)
        if not norms or not shares.examples:
            return None
        power = 2 if self.plan.clipping.norm == "l2" else 1
        rows = torch.stack([one.double() for one in norms.values()]) * scale**power
        scaled = dict(zip(norms, rows, strict=True))
        within = self.plan.numerics.within(self._clip)
        factors = self.plan.clipping.factors(scaled, within, self.names)
        total = rows.sum(0)
        bad = ~torch.isfinite(total)
        # A GPU would have to be waited for, to know.
        if bad.is_cuda or bool(bad.any()):
            shares.forget(bad)
        # Parameters that are clipped together share one tensor of factors.
        distinct = {id(factor): factor for factor in factors.values()}
        if real is not None:
            distinct = {key: factor * real.to(factor.device) for key, factor in distinct.items()}
        times = {key: factor * scale for key, factor in distinct.items()}
        return {one: times[id(factor)] for one, factor in factors.items()}, total, bad

    def _count(self, squared: Tensor, bad: Tensor, real: Tensor | None) -> None:
        """How far gradients are within the bound, for one that is adaptive."""
        if isinstance(self.plan.clipping, Quantile):
            inside = self.plan.clipping.inside(squared.sqrt(), self._clip).masked_fill_(bad, -STEPS)
            self._short += int(inside.sum() if real is None else (inside * real.to(inside.device)).sum())

    def meet(self, key: StreamKey, *where: int) -> None:
        """After the last chunk: with the sums of other processes, where there are any (`shared`)."""

    def release(self, key: StreamKey, *path: int, before: Iterable[tuple[int, ...]] = ()) -> None:
        """Add noise of the streams of a path, and give every parameter its private gradient.

        Correlated noise needs the paths of the steps before as well, the last one first.
        """
        plan = self.plan
        step, divisor = self._clip / 2**plan.numerics.bits, float(plan.expected)
        past = list(islice(before, plan.correlated.bands - 1)) if plan.correlated is not None else []
        self.exact()
        here, begun = list[Tensor](), []
        for number, side in enumerate(self._totals.sides):
            if self._reached(side):
                stream = key.addressed(ADDRESSED, *path, number)
                begun.append(self._noise.add_there(side.flat, step, divisor, stream))
            else:
                here += [self._totals[one] for one in side.parameters]
        for number, totals in enumerate(together(here)):
            if plan.correlated is None:
                self._noise.add(totals, step, divisor, key.stream(NOISE, *path, number))
            else:
                paths = [(*one, number) for one in (path, *past)]
                plan.correlated.add(totals, plan.scale, step, divisor, key, paths)
        self._hand_out(begun)
        if isinstance(plan.clipping, Quantile):
            self._clip = plan.clipping.next(self._clip, self._short, plan.expected, key.stream(COUNT, *path))

    def _hand_out(self, begun: Iterable[Callable[[], None]]) -> None:
        """As gradients, while a GPU is still at their noise; no sum stays one if that should fail."""
        try:
            for parameter, total in self._totals.items():
                parameter.grad = total
            self._totals.let_go()
            for finish in begun:
                finish()
        except BaseException:
            for parameter in self.names:
                parameter.grad = None
            raise

    def _reached(self, side: Side) -> bool:
        """Whether its noise is drawn by address, on a GPU, and not in order."""
        return self.plan.correlated is None and self._noise.reaches(side.parameters[0])

    @property
    def drawn(self) -> str:
        """How noise is drawn: a step that is made again in another way has other noise."""
        here = [one for side in self._totals.sides if not self._reached(side) for one in side.parameters]
        cut = [one for group in together(here) if not self._noise.at_once(group) for one in group]

        def how(side: Side) -> str:
            if self._reached(side):
                return "by address"
            return "in pieces" if any(one is part for one in side.parameters for part in cut) else "in order"

        return " ".join(f"{how(side)} {side.size}" for side in self._totals.sides)

    def exact(self) -> list[Tensor]:
        """The sums before noise, which are secret; zero where no example used the parameter."""
        for parameter in self._fresh:
            self._totals[parameter].zero_()
        self._fresh = set()
        return [self._totals[one] for one in self.names]


def _counted(shares: Shares, real: Tensor | None) -> Tensor | None:
    """Which examples count: those that are `real`, and none that a batch was filled up with."""
    if not shares.padding:
        return real
    found = torch.zeros(shares.examples, dtype=torch.float64)
    found[: shares.examples - shares.padding] = 1 if real is None else real
    return found
