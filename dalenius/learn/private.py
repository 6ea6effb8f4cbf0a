"""`Private`: a training run under a budget, from the first batch to the weights that are published.

    private = dp.learn.Private(model, optimizer, dataset, batch_size=256, epochs=10, clip=1, epsilon=3,
                               delta=1e-5, account=people, public_size=60_000)
    for x, y in private.loader:
        private.zero_grad()
        criterion(private.model(x), y).backward()
        private.step()
    private.export("model.safetensors")             # to publish
    private.save("run.state")                       # SECRET: to go on by Private.resume("run.state", …)

The whole run is charged before its first batch is drawn. The sampler that draws batches is the one whose loss
is charged. The first batches are made up: a rehearsal (`rehearsal`), whose steps move nothing. A step
that was broken off is made again with the noise it had, or charged again (`attempts`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.adam import tell
from dalenius.learn.adding import Plan
from dalenius.learn.attempts import Attempts
from dalenius.learn.averaging import Average
from dalenius.learn.batches import Collate, Supply, read_dataset
from dalenius.learn.clipping import Clipping, PerLayer, read_clipping
from dalenius.learn.closures import Closure, Evaluated, check_closure, evaluations, several
from dalenius.learn.correlated import correlated
from dalenius.learn.export import Still
from dalenius.learn.gradients import Watched
from dalenius.learn.keeping import Kept
from dalenius.learn.loader import Loader
from dalenius.learn.optimizer import check_parameters, planned, read_reduction, step_loss
from dalenius.learn.parts import Part
from dalenius.learn.recording import Recorded
from dalenius.learn.rehearsal import Rehearsal
from dalenius.learn.replacing import check_modules
from dalenius.learn.room import Room
from dalenius.learn.sampling import Sampling
from dalenius.learn.sampling.reading import asked
from dalenius.learn.several import Processes, plain
from dalenius.learn.shared import sum_of
from dalenius.learn.state import State, chance, set_chance
from dalenius.ledger.account import Account
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release.receipt import Entry

SAMPLE = 0
"""The first number of the paths of streams that batches are drawn from."""
CHANCE = 7
"""The first number of the paths of streams that seed torch's generators, a step each."""
CHUNK = 512
"""The most examples of one backward pass, where nothing else is said and no GPU says what it has room for."""
LARGEST = 1 << 15
"""The most examples that a GPU is asked for at once."""
WHOLE = 10**12
"""More rows than there are."""


class Private(Kept):
    """A private training run, its noise from `epsilon` and `delta` or by a `noise_multiplier`."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        dataset: Any,
        *,
        batch_size: int,
        clip: Number | Clipping,
        steps: int | None = None,
        epochs: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        noise_multiplier: Number | None = None,
        account: Account | None = None,
        by: str = "",
        purpose: str = "training",
        public_size: int | None = None,
        sampling: str | Sampling = "poisson",
        units: ArrayLike | None = None,
        rows_per_unit: int | None = None,
        cap: int | None = None,
        bands: int | None = None,
        average: Average | None = None,
        views: int = 1,
        chunk: int | None = None,
        collate: Collate | None = None,
        synthetic: Sequence[Any] | None = None,
        rehearse: bool = True,
        reduction: str = "mean",
        group: Any = None,
    ) -> None:
        self.processes, model = Processes.of(group), plain(model)
        check_modules(model)
        data = read_dataset(dataset)
        self.sampling = asked(
            sampling,
            len(data),
            batch_size=batch_size,
            steps=steps,
            epochs=epochs,
            public_size=public_size,
            units=units,
            rows_per_unit=rows_per_unit,
            cap=cap,
            bands=bands,
        )
        self._views = numbers.count(views, "views")
        self.chunk = CHUNK if chunk is None else numbers.count(chunk, "chunk")
        self._rows_each = self._views * (self.sampling.rows_per_unit or 1)
        self.optimizer, self.model = optimizer, Watched(model, rows_per_example=self._rows_each)
        self.model.apart = self.sampling.rows_per_unit is not None
        check_parameters(self.model, optimizer)
        self._evaluations = evaluations(optimizer, self.processes.count)
        # A closure is evaluated on the whole batch at once.
        self.chunk = self.chunk if self._evaluations == 1 else WHOLE
        there = {one.device for one in self.model.names if one.is_cuda}
        fits = chunk is None and rehearse and self._evaluations == 1 and len(there) == 1
        self.room = Room(there.pop()) if fits else None
        self.delta = None if delta is None else numbers.delta(delta)
        clipping = read_clipping(clip)
        self.noise_multiplier = self._noise(clipping, noise_multiplier, epsilon)
        plan = self._plan(clipping, self.noise_multiplier)
        self._sum = sum_of(self.model.names, plan, self.processes)
        step = step_loss(clipping.norm, self.noise_multiplier, plan.numerics.bits)
        self.step_loss = several(step, self._evaluations)
        self.account, self._by, self._purpose = account, by, purpose
        self.average = None if average is None else average.follow(optimizer)
        self.supply = Supply(data, collate, synthetic, views=self._views, each=self._rows_each)
        self.rehearses, self.reduction = rehearse, read_reduction(reduction)
        self.rehearsal: Rehearsal | None = None
        self._entry: Entry | None = None
        self._key = self.processes.first("the key", StreamKey.fresh)
        self._attempts, self._batch = Attempts(self.processes), 0
        self._chance: Any = None
        self._still: Still | None = None
        self.loader, self.steps, self.waiting, self._begun = Loader(self), 0, False, False
        self._join(len(data), self.settings())
        self.processes.first("the account", self._check_account)

    def _plan(self, clipping: Clipping, multiplier: Fraction) -> Plan:
        noise, expected = correlated(self.sampling, clipping, self._evaluations), self.sampling.expected
        given = self.model, clipping, multiplier, expected, self.chunk
        return planned(*given, correlated=noise, processes=self.processes.count)

    # The loop.

    def zero_grad(self) -> None:
        """As the optimizer's."""
        self.optimizer.zero_grad(set_to_none=True)

    def recorded(self, function: Callable[..., torch.Tensor], *, compile: bool = False) -> Recorded:
        """Passes of a function from a batch to its loss, to call in place of `backward()` (`recording`)."""
        return Recorded(self.model, function, compile=compile, now=self._rehearsing)

    def _rehearsing(self) -> bool:
        """Whether the batch at hand is made up."""
        self._check_waiting()
        return self.rehearsal is not None

    def _check_waiting(self) -> None:
        if not self.waiting:
            raise InvalidArgument(
                "There is no batch to make a step on.",
                remedy="Iterate over private.loader, and call private.step() once for each of its batches.",
            )

    def step(self, closure: Closure | None = None) -> None:
        """Once for every batch that the loader gives; the parameters move after the last chunk of a batch."""
        check_closure(closure, self._evaluations)
        self._check_waiting()
        self.waiting = False
        if closure is not None and (self._evaluations == 1 or self.rehearsal is not None):
            closure()
        if self.room is not None and self.room.measuring:
            self._take_in()
        elif self.rehearsal is not None:
            self.rehearsal.heard()
        elif self._evaluations > 1:
            self._release(closure)
        else:
            self._take_in()
            if self._last:
                self._release()

    def _take_in(self) -> None:
        shares = self.model.shares()
        check_parameters(self.model, self.optimizer)
        self._sum.add(shares, scale=self._scale(shares.examples), real=self._real)

    def _scale(self, examples: int) -> float:
        """What makes the gradient of a pass over so many a sum of those of its examples."""
        return (examples if self.reduction == "mean" else 1 / self._rows_each) / self.model.gain

    def _alone(self, parts: Mapping[Tensor, Part]) -> Mapping[Tensor, Tensor]:
        examples = self.model.examples
        return self._sum.alone(parts, examples, scale=self._scale(examples), real=self._real)

    def _evaluate(self, closure: Closure, number: int) -> None:
        self.zero_grad()
        closure()
        self._sum.clear()
        self._take_in()
        self._sum.release(self._key, self.steps, self._attempts.now(self.steps), number)

    def _release(self, closure: Closure | None = None) -> None:
        """If its noise was used for other sums before, nothing moves: the loader draws another attempt."""
        if self.steps == 0:
            self._check_still()
        place = self.steps, self._attempts.now(self.steps), self._batch, crc32(repr(self.settings()).encode())
        self._sum.meet(self._key, *place)
        if not self._attempts.use(self.steps, self._seal):
            return
        tell(self.optimizer, self._sum.plan, self._sum.clip)
        if closure is not None and self._evaluations > 1:
            self.optimizer.step(Evaluated(partial(self._evaluate, closure), self._evaluations))
        else:
            before = ((step, self._attempts.now(step)) for step in range(self.steps - 1, -1, -1))
            self._sum.release(self._key, self.steps, self._attempts.now(self.steps), before=before)
            self.optimizer.step()
        self.steps += 1
        self._attempts.done(self.steps - 1)
        self._chance = None

    # Going on later.

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], *given: Any, account: Account | None = None, **named: Any
    ) -> Private:
        """Go on from a state: all else is given as it was to `Private`. The run is not charged again."""
        place, processes = Path(path).absolute(), Processes.of(named.get("group"))
        state = processes.first("a state", lambda: State.read(place))
        private = cls(*given, **named)
        if private.room is not None:
            private._fit(state.facts["chunk"])
        state.check(private._facts)
        processes.first("the account", lambda: state.check_account(account))
        private.account = account
        private._go_on(state, place)
        return private

    # What the loader asks for.

    def rehearsed(self) -> None:
        """After the rehearsal."""
        self._check_still()
        assert self.rehearsal is not None and self.rehearsal.reduction is not None
        if self._begun and self.rehearsal.reduction != self.reduction:
            raise NotSound(
                f"The run was begun with a criterion that takes the {self.reduction} over rows.",
                remedy="Use the criterion that it was begun with.",
            )
        self.reduction, self.rehearsal = self.rehearsal.reduction, None
        self.zero_grad()
        if self.room is not None:
            found = partial(self.room.examples, min(LARGEST, int(2 * self.sampling.expected) + 1))
            self._fit(min(self.processes.each("a chunk", found)))

    def _fit(self, chunk: int) -> None:
        """From now on so many examples at a time."""
        self.chunk, self.room = chunk, None
        for fact in ("_facts", "_said"):
            self.__dict__.pop(fact, None)
        plan = self._plan(self._sum.plan.clipping, self.noise_multiplier)
        self._sum = sum_of(self.model.names, plan, self.processes)

    def ready(self) -> None:
        """Before the rehearsal: what buffers are, before they have seen anything."""
        self._still = self._still or Still(self.model.inner)

    def settings(self) -> list[dict[str, Any]]:
        """Of the optimizer, but for its parameters."""
        groups = self.optimizer.param_groups
        return [{key: _plain(one) for key, one in group.items() if key != "params"} for group in groups]

    def begin(self) -> None:
        """Before the first batch: the charge."""
        if not self._begun:
            self._entry = self._charge(self.loss)
            self._begun = True
        self.supply.compare(self.processes, self._key)
        if self._chance is not None:
            set_chance(self._chance)

    def drawn(self) -> NDArray[np.int64]:
        """The rows of the step at hand; those of a further attempt are drawn, and charged, by themselves."""
        step, period = self.steps, self.sampling.period(self.steps)
        self._sum.clear()
        if self._attempts.lost(step):
            self._charge(self.sampling.again(self.step_loss))
            self._attempts.again(step)
            if self._chance is not None:
                set_chance(self._chance)
        self._chance = chance()
        # What is random in the model, such as dropout, is as secret as the sample.
        other = (self.processes.rank,) if self.processes.rank else ()
        torch.manual_seed(self._key.stream(CHANCE, step, self._attempts.now(step), *other).integer(63))
        attempt = self._attempts.now(step) if self.sampling.redrawn else 0
        path = (SAMPLE, period, attempt, step) if attempt else (SAMPLE, period)
        rows = self.sampling.batch(step, self._key.stream(*path))
        self._batch = crc32(rows.tobytes())
        return rows

    def hand_out(self, part: NDArray[np.int64] | None, *, last: bool) -> None:
        """Before a chunk is used: whose rows are real, and whether it is the last one of its batch."""
        alone = self.rehearsal is not None and self.rehearsal.alone
        self.model.watching, self.waiting, self._last = not alone, True, last
        self.model.lifts = self.reduction == "mean" and self.rehearsal is None
        if isinstance(self._sum.plan.clipping, PerLayer):
            self.model.by_layers(self._alone if self.rehearsal is None else None)
        empty = part is not None and len(part) == 0
        self.model.rows = None if part is None else self._rows_each * max(1, len(part))
        self._real = torch.zeros(1, dtype=torch.float64) if empty else None
        missing = None if part is None or part.ndim == 1 or empty else (part.reshape(-1) < 0)
        self.model.weights = (
            None if missing is None else torch.as_tensor(~missing).repeat_interleave(self._views)
        )


def _plain(setting: Any) -> Any:
    """A rate that is a tensor may be changed in place."""
    return setting.item() if isinstance(setting, torch.Tensor) and setting.numel() == 1 else setting
