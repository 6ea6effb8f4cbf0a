"""`Private`: a training run under a budget, from the first batch to the weights that are published.

    private = dp.learn.Private(model, optimizer, dataset, batch_size=256, epochs=10, clip=1, epsilon=3,
                               delta=1e-5, account=people, public_size=60_000)
    for x, y in private.loader:
        private.zero_grad()
        criterion(private.model(x), y).backward()
        private.step()
    private.export("model.safetensors")

The whole run is charged before its first batch is drawn. The sampler that draws batches is the one whose loss
is charged. The first three batches are made up: a rehearsal (`rehearsal`), whose steps move nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from dalenius.errors import InvalidArgument
from dalenius.learn.adding import Sum
from dalenius.learn.batches import Collate, blank, collated, made_up, read_dataset
from dalenius.learn.clipping import Clipping, read_clipping
from dalenius.learn.gradients import Watched
from dalenius.learn.loader import Loader
from dalenius.learn.optimizer import check_parameters, planned, step_loss
from dalenius.learn.rehearsal import Rehearsal
from dalenius.learn.replacing import check_modules
from dalenius.learn.sampling import Poisson, RandomAllocation, Sampling, TruncatedPoisson
from dalenius.ledger.account import Account
from dalenius.losses.calibration import calibrate
from dalenius.losses.loss import Loss
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release.receipt import Entry, Receipt

SAMPLE = 0
"""The first number of the paths of streams that batches are drawn from."""
CHUNK = 512
"""The most examples of one backward pass, where nothing else is said."""
SCHEMES: dict[str, type[Sampling]] = {
    "poisson": Poisson,
    "truncated_poisson": TruncatedPoisson,
    "random_allocation": RandomAllocation,
}


class Private:
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
        views: int = 1,
        chunk: int = CHUNK,
        collate: Collate | None = None,
        synthetic: Sequence[Any] | None = None,
        rehearse: bool = True,
        reduction: str = "mean",
    ) -> None:
        check_modules(model)
        self.dataset, self._collate = read_dataset(dataset), collate
        more: dict[str, Any] = {} if cap is None else {"cap": cap}
        self.sampling = (
            sampling
            if isinstance(sampling, Sampling)
            else _scheme(sampling)(
                len(self.dataset),
                batch_size=batch_size,
                steps=steps,
                epochs=epochs,
                public_size=public_size,
                units=units,
                rows_per_unit=rows_per_unit,
                **more,
            )
        )
        self._views, self.chunk = numbers.count(views, "views"), numbers.count(chunk, "chunk")
        self._rows_each = self._views * (self.sampling.rows_per_unit or 1)
        self.optimizer, self.model = optimizer, Watched(model, rows_per_example=self._rows_each)
        check_parameters(self.model, optimizer)
        self.delta = None if delta is None else numbers.delta(delta)
        clipping = read_clipping(clip)
        self.noise_multiplier = self._noise(clipping, noise_multiplier, epsilon)
        plan = planned(self.model, clipping, self.noise_multiplier, self.sampling.expected, self.chunk)
        self._sum = Sum(self.model.names, plan)
        self.step_loss = step_loss(plan, self.noise_multiplier)
        self.account, self._by, self._purpose = account, by, purpose
        self._synthetic = None if synthetic is None else list(synthetic)
        self.rehearses, self.reduction = rehearse, reduction
        self.rehearsal: Rehearsal | None = None
        self._entry: Entry | None = None
        self._key = StreamKey.fresh()
        self.loader, self.steps, self.waiting, self._begun = Loader(self), 0, False, False
        if account is not None:
            account.check(self.loss, by=by, purpose=purpose)

    # What it costs.

    @property
    def loss(self) -> Loss:
        """Of the whole run, which is charged before its first step."""
        return self.sampling.loss(self.step_loss)

    @property
    def spent(self) -> Loss:
        """The same: a run is charged as a whole."""
        return self.loss

    @property
    def receipt(self) -> Receipt:
        """What is said of all that leaves: by weights that are published, or anything computed from them."""
        plan = self._sum.plan
        return Receipt(
            loss=self.loss,
            mechanism=f"DP training, noise multiplier {float(self.noise_multiplier):g}",
            numerics=str(plan.numerics),
            unit=None if self.account is None else self.account.unit_for(self.loss),
            entry=self._entry,
            bounds=(plan.clipping.how, *self.sampling.notes),
            postprocessing=(type(self.optimizer).__name__,),
            tainted=self._key.tainted,
            delta=self.delta,
            warnings=() if self.rehearses else ("the loop was not rehearsed",),
        )

    def _noise(self, clipping: Clipping, noise_multiplier: Number | None, epsilon: Number | None) -> Fraction:
        if (noise_multiplier is None) == (epsilon is None):
            raise InvalidArgument(
                "A run has a target epsilon or a noise multiplier.",
                remedy="Pass one of epsilon and noise_multiplier.",
            )
        if noise_multiplier is not None:
            return numbers.positive(noise_multiplier, "noise_multiplier")

        def family(multiplier: Fraction) -> Loss:
            plan = planned(self.model, clipping, multiplier, self.sampling.expected, self.chunk)
            return self.sampling.loss(step_loss(plan, multiplier))

        delta = 0 if self.delta is None else self.delta
        return calibrate(family, epsilon=epsilon or 0, delta=delta, name="noise_multiplier")

    # The loop.

    def zero_grad(self) -> None:
        """As the optimizer's."""
        self.optimizer.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Once for every batch that the loader gives; the parameters move after the last chunk of a batch."""
        if not self.waiting:
            raise InvalidArgument(
                "There is no batch to make a step on.",
                remedy="Iterate over private.loader, and call private.step() once for each of its batches.",
            )
        self.waiting = False
        if self.rehearsal is not None:
            self.rehearsal.heard()
            return
        shares = self.model.shares()
        scale = shares.examples if self.reduction == "mean" else 1 / self._rows_each
        self._sum.add(shares, scale=scale, real=self._real)
        if self._last:
            self._release()

    def _release(self) -> None:
        self._sum.release(self._key, self.steps)
        self.optimizer.step()
        self.steps += 1
        self._sum.clear()

    # What the loader asks for.

    def rehearsed(self) -> None:
        """After the rehearsal."""
        assert self.rehearsal is not None and self.rehearsal.reduction is not None
        self.reduction, self.rehearsal = self.rehearsal.reduction, None
        self.zero_grad()

    def begin(self) -> None:
        """Before the first batch: the charge."""
        if self._begun:
            return
        self._begun = True
        if self.account is not None:
            with self.account.reserve(self.loss, by=self._by, purpose=self._purpose) as reservation:
                self._entry = reservation.line()
                reservation.end("commit")

    def drawn(self) -> NDArray[np.int64]:
        """The rows of the step at hand."""
        bits = self._key.stream(SAMPLE, self.sampling.period(self.steps))
        return self.sampling.batch(self.steps, bits)

    def hand_out(self, part: NDArray[np.int64] | None, *, last: bool) -> None:
        """Before a chunk is used: whose rows are real, and whether it is the last one of its batch."""
        alone = self.rehearsal is not None and self.rehearsal.alone
        self.model.watching, self.waiting, self._last = not alone, True, last
        empty = part is not None and len(part) == 0
        self._real = torch.zeros(1, dtype=torch.float64) if empty else None
        missing = None if part is None or part.ndim == 1 or empty else (part.reshape(-1) < 0)
        self.model.weights = (
            None if missing is None else torch.as_tensor(~missing).repeat_interleave(self._views)
        )

    def rows(self, part: NDArray[np.int64]) -> Any:
        """A chunk as tensors."""
        if len(part) == 0:
            return blank(self.made_up((0,)))
        rows = np.maximum(part.reshape(-1), 0)
        if part.ndim > 1 and (part < 0).any():
            # A unit that lacks a row repeats one of its own, which counts nothing.
            first = np.broadcast_to(part[:, :1], part.shape).reshape(-1)
            rows = np.where(part.reshape(-1) < 0, np.maximum(first, 0), rows)
        return collated(self.dataset, np.repeat(rows, self._views).tolist(), self._collate)

    def made_up(self, chosen: Sequence[int]) -> Any:
        """Made-up examples, every one with as many rows as a real one."""
        each = self._rows_each
        if self._synthetic is None:
            self._synthetic = made_up(self.dataset, 2 * each)
        items = [self._synthetic[(i * each + j) % len(self._synthetic)] for i in chosen for j in range(each)]
        return (self._collate or torch.utils.data.default_collate)(items)


def _scheme(name: str) -> type[Sampling]:
    if name not in SCHEMES:
        raise InvalidArgument(
            f"sampling is one of {', '.join(SCHEMES)}.", remedy='Pass sampling="poisson", or a sampler.'
        )
    return SCHEMES[name]
