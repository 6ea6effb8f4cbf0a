"""`Private`: a training run under a budget, from the first batch to the weights that are published.

    private = dp.learn.Private(model, optimizer, data, batch_size=256, epochs=10, clip=1, epsilon=3,
                               delta=1e-5, account=people, public_size=60_000)
    for epoch in range(10):
        for x, y in private.loader:
            private.zero_grad()
            criterion(private.model(x), y).backward()
            private.step()
    private.export("model.safetensors")             # to publish
    private.save("run.state")                       # SECRET: to go on by Private.resume("run.state", …)

A run is made of parts, each with its own module: the settings of a step (`run_settings`), batches
(`batch_draws`, `loader`), charges (`payment`), what leaves (`run_files`, `released_state`), and the noise of
steps that were broken off (`attempts`). By default the whole run is charged before its first noise is drawn;
with pay="epoch" or a number of steps, each stretch is charged by itself. The sampler that draws
batches is the one whose loss is charged.

The loop is watched from each batch that the loader hands out to the step (`tape`, `dataflow`): a loss whose
gradient is not a sum of gradients of single examples is refused. The first charge is made by the first step,
after the loop was accepted and before any noise is drawn, so that a loop that is refused costs nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.adam import tell
from dalenius.learn.attempts import SEAL, Attempts, joint_seal, not_copied
from dalenius.learn.averaging import Average
from dalenius.learn.batch_draws import Draws
from dalenius.learn.batches import Supply, read_dataset
from dalenius.learn.chunk_assignment import assign_chunks
from dalenius.learn.clipping import Clipping, PerLayer
from dalenius.learn.closures import Closure, Evaluated, calls_closures, check_closure, evaluations
from dalenius.learn.custom_functions import vouched
from dalenius.learn.data.row_collation import Collate
from dalenius.learn.dataflow.private_numbers import PrivateInteger, PrivateNumber
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.example_loss import ExampleLoss, LossFunction, Surroundings
from dalenius.learn.export import writable
from dalenius.learn.gradients import BACKWARD, LOSS, Watched
from dalenius.learn.loader import Loader
from dalenius.learn.model_tensors import check_model_tensors
from dalenius.learn.optimizer import check_parameters
from dalenius.learn.optimizer_hooks import moved, watched_steps
from dalenius.learn.parts import Part
from dalenius.learn.payment import Payment, check_account
from dalenius.learn.recording import Recorded
from dalenius.learn.replacing import check_modules
from dalenius.learn.room import Room
from dalenius.learn.run_files import RunFiles
from dalenius.learn.run_settings import Settings
from dalenius.learn.sampling import Sampling
from dalenius.learn.sampling.reading import asked
from dalenius.learn.several import Processes, plain
from dalenius.learn.sharded import local
from dalenius.learn.shared import join, sum_of
from dalenius.learn.state import State, chance, facts_of, line_of
from dalenius.learn.stretches import Length, Stretches
from dalenius.ledger.account import Account
from dalenius.losses.loss import Loss
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release.receipt import Entry, Receipt

CHUNK = 512
"""The most examples of one backward pass, where nothing else is said and no GPU says what it has room for."""
LARGEST = 1 << 15
"""The most examples that a GPU is asked for at once."""
CHUNKS = 12
"""The first number of the paths of streams that assign examples to chunks."""
WHOLE = 10**12
"""More rows than there are."""
CHECKED = "examples are independent, as checked by data flow from each batch to its backward pass"
ASSUMPTIONS: tuple[str, ...] = (
    "all private data of the loop come from private.loader",
    "values read out of torch, such as printed losses, change nothing in the training by way of files, "
    "texts, warnings or plain numbers made of them",
    "all that is done with private tensors is done by functions of torch in the thread of the loop: not by "
    "other threads, by extensions that torch does not see, or by memory shared with other libraries",
    "no private tensor is given to internal functions of torch (names that begin with an underscore) or to "
    "`torch.Generator.set_state`, which this check does not see, or to a profiler or debugger that shows "
    "sizes; and memory that was never written, as that of `torch.Tensor(3, 4)`, is not read",
    "torch computes what its documentation says of the operators that the data flow is derived from",
)
"""What the check of the loop takes for granted, for receipts."""


class Private:
    """A private training run, its noise from `epsilon` and `delta` or by a `noise_multiplier`.

    Args:
        model: The model to train. The run trains this object; call `private.model` in the loop.
        optimizer: A torch optimizer of all trained parameters of the model.
        data: Tensors with one row for each example, or a data set with `__len__` and `__getitem__`.
        batch_size: The expected number of examples of a batch.
        clip: The bound on the L2 norm of an example's gradient, or a clipping rule such as `PerLayer(1)`.
        steps: The number of steps of the run. One iteration over `private.loader` makes all of them. Pass
            this or `epochs`.
        epochs: The number of epochs, in each of which every unit is expected once. One iteration over
            `private.loader` is one epoch.
        epsilon: The ε that the whole run costs at most, at `delta`. Pass this or `noise_multiplier`.
        delta: The δ at which the cost is stated.
        noise_multiplier: The scale of the noise over the clipping bound.
        account: The account to charge. Without one, costs are only added up.
        by: Who charges the account.
        purpose: What the account is charged for.
        pay: "run" charges the whole run before its first step, the tightest account of it. "epoch", or a
            number of steps, charges every such stretch before it begins: a run that stops early has paid
            for no more than the stretches it began.
        public_size: A number of rows (or units) that may be published, from which rates and steps follow.
            Without one, the real number is taken as public.
        sampling: "poisson", "truncated_poisson", "random_allocation" or "cyclic", or a sampling.
        units: For every row the id of the unit that it belongs to, a whole number or a text; by default each
            row is a unit. A row without an id takes no part.
        rows_per_unit: The most rows of a unit that take part in a step. Goes with `units`.
        cap: The most units of a batch. Goes with sampling="truncated_poisson".
        bands: Over how many steps noise is correlated. Goes with sampling="cyclic".
        average: An average of the model's weights to keep and to export.
        views: How often in a row every example is asked for; the mean of its gradients is clipped.
        chunk: The most examples of one backward pass; by default what a GPU has room for, or 512. Chunks are
            on average smaller, so that about one in a million is larger. Below 20 more of them are.
        collate: Makes a batch of one row, given as a list of it; rows are put together afterwards. By default
            torch's `default_collate`.
        pad_to: The public lengths that rows are padded or cut to: an int, or a dictionary by key or position;
            {} where rows have equal shapes. Needed for every data set that is not made of tensors.
        num_workers: How many processes read rows; 0 reads them in this one.
        pin_memory: Whether batches are copied to pinned memory, for a GPU.
        prefetch: Whether the next chunk of a batch is read while one is in use.
        synthetic: Made-up rows, the first of which declares the form of all rows; by default the first row of
            the data does.
        group: The torch.distributed processes that train together; by default all.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        data: Any,
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
        pay: Length = "run",
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
        pad_to: Any = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        prefetch: bool = False,
        synthetic: Sequence[Any] | None = None,
        group: Any = None,
    ) -> None:
        self.processes, model = Processes.of(group), plain(model)
        check_modules(model)
        check_model_tensors(model)
        check_account(account)
        rows = read_dataset(data)
        self.sampling = asked(
            sampling,
            len(rows),
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
        self._rows_each = self._views * (self.sampling.rows_per_unit or 1)
        self.optimizer, self.model = optimizer, Watched(model, rows_per_example=self._rows_each)
        self.model.apart = self.sampling.rows_per_unit is not None
        check_parameters(self.model, optimizer)
        self.reduction = "mean"
        """Whether the loop's losses are means over examples or sums, as the analysis of the loop says."""
        self._entrances: set[str] = set()
        """How passes that were taken in were made: by `backward()`, or by the function of `private.loss`."""
        self._planned = BACKWARD
        """How the first pass is expected to be made, for receipts before it."""
        self._stepping = False
        """Whether a step is under way."""
        self.settings = Settings.read(
            self.sampling,
            self.model,
            clip=clip,
            noise_multiplier=noise_multiplier,
            epsilon=epsilon,
            delta=delta,
            evaluations=evaluations(optimizer, self.processes.count),
        )
        self.room = self._room(chunk)
        self.average = None if average is None else _follow(average, model, optimizer)
        self._pay = pay
        # A closure is evaluated on the whole batch at once.
        self._most = min(LARGEST, int(2 * self.sampling.expected) + 1)
        asked_for = CHUNK if chunk is None else numbers.count(chunk, "chunk")
        self._plan(WHOLE if self._closes else asked_for if self.room is None else self._most)
        self._payment = Payment(
            self.sampling,
            self.settings.step_loss(self._sum.plan),
            account=account,
            by=by,
            purpose=purpose,
            pay=pay,
            processes=self.processes,
        )
        self.supply = Supply(
            rows,
            collate,
            synthetic,
            views=self._views,
            each=self._rows_each,
            pad_to=pad_to,
            num_workers=num_workers,
            pin_memory=pin_memory,
            prefetch=prefetch,
        )
        self._key = self.processes.first("the key", StreamKey.fresh)
        self._attempts, self._draws = Attempts(self.processes), Draws(self.sampling, self.processes)
        self._records = False
        """Whether passes may be recorded."""
        self._files = RunFiles(self.model, optimizer, self.average, self.processes)
        self.steps, self.waiting, self._last = 0, False, False
        self._real: Tensor | None = None
        self.loader = Loader(self, Stretches(self.sampling, "run" if epochs is None else "epoch"))
        self._join(len(rows))
        self._payment.check()

    def __repr__(self) -> str:
        cost = Receipt(loss=self.cost, mechanism="", numerics="", delta=self.delta).cost
        made = f"{self.steps} of {self.sampling.steps} steps made, {self._payment.paid} paid for"
        return (
            f"Private({type(self.model.inner).__name__}, {made}; the run costs {cost}; {self.sampling.how})"
        )

    # What it costs.

    @property
    def cost(self) -> Loss:
        """The loss of the whole run: of all planned steps, and of steps that were made again so far."""
        return self._payment.cost(self._attempts.more)

    @property
    def spent(self) -> Loss:
        """The loss that has been charged so far; without an account, that would have been."""
        return self._payment.spent(self._attempts.more)

    @property
    def account(self) -> Account | None:
        """The account that is charged."""
        return self._payment.account

    @property
    def step_loss(self) -> Loss:
        """What a step costs a unit that takes part in it."""
        return self._payment.step_loss

    @property
    def noise_multiplier(self) -> Fraction:
        """The scale of the noise over the clipping bound."""
        return self.settings.noise_multiplier

    @property
    def delta(self) -> Fraction | None:
        """The δ at which the cost is stated."""
        return self.settings.delta

    @property
    def receipt(self) -> Receipt:
        """What is said of all that leaves: of weights that are published, or anything computed from them.

        It states what has been charged; before the first charge, what the run will cost.
        """
        plan, more = self._sum.plan, self._attempts.more
        loss = self.spent if self._payment.begun else self.cost
        again = (f"steps made again with fresh noise, each charged by itself: {more}",) if more else ()
        made = f"steps made: {self.steps} of {self.sampling.steps}"
        average = () if self.average is None else (self.average.how,)
        apart = ExampleLoss.assumptions if LOSS in self._ways else ()
        recorded = (Recorded.assumption,) if self._records else ()
        vouched_for = vouched(self.model.vouched)
        assumptions = (*ASSUMPTIONS, *apart, *recorded, *vouched_for, *self.supply.assumptions)
        return Receipt(
            loss=loss,
            mechanism=f"DP training, noise multiplier {float(self.noise_multiplier):g}",
            numerics=str(plan.numerics),
            unit=None if self.account is None else self.account.unit_for(loss),
            entry=self._payment.entry,
            bounds=(
                plan.clipping.how,
                *self.sampling.notes,
                made,
                *self._payment.notes,
                *again,
                *self._independence,
                *(f"assumed: {sentence}" for sentence in assumptions),
            ),
            postprocessing=(type(self.optimizer).__name__, *average),
            tainted=self._key.tainted,
            delta=self.delta,
        )

    @property
    def _ways(self) -> set[str]:
        """How passes were made; before the first one, how it is expected to be made."""
        return self._entrances or {self._planned}

    @property
    def _independence(self) -> tuple[str, ...]:
        """Why examples are independent, by the ways in which passes were made."""
        if len(self._ways) == 1:
            return (ExampleLoss.how if LOSS in self._ways else CHECKED,)
        return f"in passes by backward(), {CHECKED}", f"in passes by private.loss, {ExampleLoss.how}"

    def __reduce__(self) -> NoReturn:
        raise not_copied()

    # The loop.

    @property
    def epoch(self) -> int:
        """The number of whole iterations over the loader so far: go on by `range(private.epoch, E)`."""
        return self.loader.epoch

    def batches(self) -> Iterator[Any]:
        """Return an iterator over all batches up to the end of the run, of all its epochs."""
        return self.loader.rest()

    def zero_grad(self) -> None:
        """Set all gradients to None, and forget what backward passes since the last step have added."""
        self.optimizer.zero_grad(set_to_none=True)
        self.model.forget()

    def recorded(self, function: Callable[..., torch.Tensor], *, compile: bool = False) -> Recorded:
        """Return recorded passes of a function from a batch to its loss, to call in place of `backward()`.

        Args:
            function: Computes the loss of a batch, whose tensors it is given.
            compile: Whether torch's compiler makes the recording into kernels of its own.
        """
        self._records = True
        return Recorded(self.model, function, compile=compile, ready=self._check_recording)

    def loss(self, function: LossFunction) -> ExampleLoss:
        """Return forward and backward passes of a loss that sees one example, to call with each batch.

            learn = private.loss(lambda model, example: F.cross_entropy(model(example[0]), example[1]))
            for batch in private.loader:
                private.zero_grad()
                value = learn(batch)
                private.step()

        Args:
            function: Returns the loss of one example, given the model and the example. The example has the
                structure of a batch, its tensors without the batch dimension.

        Returns:
            A callable that takes a batch in place of `backward()` and returns its mean loss, a private value.

        Raises:
            NotSound: The parameters of the model are sharded among processes.
        """
        surroundings = Surroundings(
            paused=self.model.unwatched,
            admitted=self.model.leads,
            drawing=self.model.drawing,
            private=self.model.is_watched,
            logged=self.model.total,
        )
        learn = ExampleLoss(
            self.model,
            function,
            gain=self._rows_gain,
            ready=self._check_learning,
            surroundings=surroundings,
        )
        self._planned = LOSS
        return learn

    def _check_recording(self) -> None:
        self._check_waiting()
        self.model.expect(BACKWARD)

    def _check_learning(self) -> None:
        # A closure is called inside a step.
        if not self._closes:
            self._check_waiting()
        self.model.expect(LOSS)

    def _rows_gain(self, rows: int) -> float:
        """Return by how much the gradient of a sum over rows exceeds that of the expected reduction."""
        return float(rows) if self.reduction == "mean" else 1.0

    def step(self, closure: Closure | None = None) -> None:
        """Take in the gradients of a chunk; after the last one of a batch, add noise and move the parameters.

        Args:
            closure: For an optimizer that evaluates gradients several times in a step: zeroes gradients,
                computes the loss and calls `backward()`.
        """
        check_closure(closure, self._closes)
        self.check_outside_step("private.step() was called")
        self._check_waiting()
        self.waiting, self._stepping = False, True
        self.model.turn += 1
        try:
            if closure is not None and not self._closes:
                closure()
            with self.model.unwatched():
                if self._closes:
                    self._release(closure)
                else:
                    self._take_in()
                    if self._last:
                        self._release()
        finally:
            self._stepping = False

    def check_outside_step(self, what: str) -> None:
        """Refuse something that a closure or a hook of the optimizer does inside of a step.

        Args:
            what: What happened, as the beginning of a sentence.
        """
        if self._stepping:
            raise NotSound(
                f"{what} inside of a step: examples would be counted twice, or in a step that is not "
                "charged.",
                remedy="Let a closure zero gradients, compute the loss of the batch at hand and call "
                "backward(), and nothing else.",
            )

    @property
    def _closes(self) -> bool:
        """Whether the optimizer evaluates a closure in its step."""
        return calls_closures(self.optimizer)

    def _check_waiting(self) -> None:
        if not self.waiting:
            raise InvalidArgument(
                "There is no batch to make a step on.",
                remedy="Iterate over private.loader, and call private.step() once for each of its batches.",
            )

    def _take_in(self) -> None:
        """Add the gradients of a backward pass that was accepted; the first one of a run is paid for now."""
        if not self.model.looping:
            raise NotSound(
                "The loop over private.loader was ended before the step, so that what came before the step "
                "was not watched.",
                remedy="Call private.step() inside of the loop over private.loader.",
            )
        self._draws.check_seed()
        reduction, entrance = self.model.reduction, self.model.entrance
        shares = self.model.shares()
        check_parameters(self.model, self.optimizer)
        if reduction is not None and reduction != self.reduction:
            if self._payment.begun:
                raise NotSound(
                    f"The run was begun with losses that are the {self.reduction} over examples.",
                    remedy="Use one reduction in all of its steps.",
                )
            self.reduction = reduction
        self.optimizer_settings()
        if self._payment.paid <= self.steps:
            self._files.checked()
            self._pay_for_step()
        if shares.parameters:
            self._entrances.add(entrance)
        self._sum.add(shares, scale=self._scale(shares.examples), real=self._real)

    def _scale(self, examples: int) -> float:
        """Return what makes the gradient of a pass over so many examples a sum of those of its examples."""
        return (examples if self.reduction == "mean" else 1 / self._rows_each) / self.model.gain

    def _alone(self, parts: Mapping[Tensor, Part]) -> Mapping[Tensor, Tensor]:
        examples = self.model._examples
        return self._sum.alone(parts, examples, scale=self._scale(examples), real=self._real)

    def _evaluate(self, closure: Closure, step: int, attempt: int, number: int) -> None:
        """Make one of the gradients of a step; the first one is paid for before its noise is taken.

        Args:
            closure: Zeroes gradients, computes the loss and calls `backward()`.
            step: The number of the step.
            attempt: The number of the attempt at it.
            number: The number of the gradient, from 0.
        """
        released = self._files.released
        with self.model.unwatched():
            self._check_moved()
            released.hold()
            self.zero_grad()
            with self.model.watched():
                closure()
            if (step, attempt) != (self.steps, self._attempts.now(step)):
                raise NotSound(
                    "The run was moved to another step while a closure was evaluated.",
                    remedy="Leave private.steps to private.step().",
                )
            released.compare()
            self._sum.clear()
            self._take_in()
            if not number and not self._attempts.use(step, self._seal):
                raise NotSound(
                    "The noise of this step was used for other gradients.",
                    remedy="Ask private.loader for the next batch: it makes the step anew.",
                )
            self._add_noise(step, attempt, number)

    def _before(self, step: int, *number: int) -> Iterator[tuple[int, ...]]:
        """Give the steps before, the last one first, and their attempts, for noise that is correlated."""
        return ((earlier, self._attempts.now(earlier), *number) for earlier in range(step - 1, -1, -1))

    def _add_noise(self, step: int, attempt: int, *number: int) -> None:
        """Add the noise of an attempt at a step to the sum at hand, if a charge covers the step.

        Args:
            step: The number of the step.
            attempt: The number of the attempt at it.
            number: The number of the gradient, where a step evaluates several.
        """
        self._check_covered(step)
        self._sum.release(self._key, step, attempt, *number, before=self._before(step, *number))

    def _check_covered(self, step: int) -> None:
        """Refuse a step that no charge covers, that was made before, or of a run of another process."""
        self._attempts.check(step)
        if self._payment.paid <= step:
            raise NotSound(
                "No charge covers this step.",
                remedy="Call private.step() once for every batch that private.loader gives.",
            )

    def _release(self, closure: Closure | None = None) -> None:
        """Make the step, unless its noise was used for other sums: then the loader draws another attempt."""
        released = self._files.released
        released.compare()
        if self.steps == 0:
            self._files.checked()
        elif self.processes.count == 1:
            released.check_steps(wait=False)
        settings = crc32(repr(self.optimizer_settings()).encode())
        step, attempt = self.steps, self._attempts.now(self.steps)
        self._sum.meet(self._key, step, attempt, self._draws.digest, settings)
        if closure is not None and self._closes:
            # The first evaluation says whether the loop is accepted: it is paid for there.
            tell(self.optimizer, self._sum.plan, self._sum.clip)
            evaluate = partial(self._evaluate, closure, step, attempt)
            with self._watched_steps() as move:
                move(Evaluated(evaluate, self.settings.evaluations))
            released.hold()
        else:
            if not self._attempts.use(step, self._seal):
                return
            tell(self.optimizer, self._sum.plan, self._sum.clip)
            self._add_noise(step, attempt)
            try:
                with self._watched_steps() as move:
                    move()
            except BaseException:
                if not self._moves_private():
                    released.hold()
                raise
            released.hold()
        self._check_covered(step)
        self.steps = step + 1
        self._attempts.done(step)
        self._draws.random_state = None

    def _watched_steps(self) -> AbstractContextManager[Callable[..., Any]]:
        self._check_moved()
        settings = self.optimizer_settings
        return watched_steps(self.optimizer, self.model.watched, self.model.is_private, settings)

    def _moves_private(self) -> bool:
        """Return whether weights, gradients or the optimizer's state hold private examples."""
        return self.model.has_written and any(map(self.model.is_private, moved(self.optimizer)))

    def _check_moved(self) -> None:
        if self._moves_private():
            raise NotSound(
                "Private examples were written into weights, or into the optimizer's state, which its step "
                "adds to weights.",
                remedy="Leave weights and momenta to the optimizer.",
            )

    def _seal(self) -> bytes:
        """Return a tag of all that noise is about to be added to."""
        attempt, kind = self._attempts.now(self.steps), self._attempts.kind(self.steps)
        said = (
            f"{self._sum.clip.hex()} {self._sum.short} {self._sum.drawn} {json.dumps(self._facts)}".encode()
        )
        path, weights = (SEAL, self.steps, attempt), map(local, self.model.names)
        return joint_seal(self._key, path, said, weights, self._sum.exact, kind, self.processes)

    # What leaves, and going on later.

    def export(self, path: str | os.PathLike[str], *, trained: bool = False) -> None:
        """Write weights and receipt, to publish: the averages, where the run keeps an average.

        It may be called at any time: the steps that were made have been charged. The receipt says how many
        they were. Of several processes all call it, and the first writes.

        Args:
            path: The file to write, in the safetensors format.
            trained: Whether to write only parameters that were trained, such as an adapter's.

        Raises:
            NotSound: The state of the model holds something that the optimizer did not put there.
        """
        self._attempts.check_process()
        steps = f"{self.steps} of {self.sampling.steps} steps"
        with self.model.unwatched():
            self._files.export(path, self.receipt, steps=steps, trained=trained)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SECRET state, to resume from, and begin the journal beside it. Always to one name.

        Of several processes all call it, and the first writes.

        Args:
            path: The file to write, which its owner alone can read.

        Raises:
            NotSound: The state of the model holds something that the optimizer did not put there.
        """
        self._attempts.check_process()
        with self.model.unwatched():
            # Only the first process writes: others may have no such folder.
            place = self.processes.first("a path", lambda: str(writable(path).absolute()))
            self._save(Path(place))

    def _save(self, place: Path) -> None:
        state = self._files.checked()
        if not self._payment.begun:
            raise InvalidArgument(
                "The run has not begun: nothing is charged, and there is nothing to go on from.",
                remedy="Save inside of the loop over private.loader, or after it.",
            )
        if self._closes:
            raise NotSound(
                "Of several gradients in a step it is not noted which noise they got.",
                remedy="Export the weights, or use an optimizer without closures.",
            )
        self._files.save(
            place,
            state,
            facts=self._facts,
            lines=self._attempts.keep(place, self._key, self._payment.account),
            steps=self.steps,
            secret=self._key.secret.hex(),
            tainted=self._key.tainted,
            clip=self._sum.clip,
            reduction=self.reduction,
            entry=line_of(self._payment.entry),
            paid=self._payment.paid,
            chance=self._draws.random_state or chance(),
            entrances=sorted(self._entrances),
        )

    def close(self) -> None:
        """Let go of a run that was saved, so that it can be resumed elsewhere. It makes no more steps."""
        self._attempts.close()

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], *given: Any, account: Account | None = None, **named: Any
    ) -> Private:
        """Go on from a saved state. What was paid for is not charged again.

        Args:
            path: The file that `save` wrote.
            given: All else as it was given to `Private`.
            account: The account that paid.
            named: All else as it was given to `Private`.
        """
        check_account(account)
        place, processes = Path(path).absolute(), Processes.of(named.get("group"))
        state = processes.first("a state", lambda: State.read(place))
        private = cls(*given, **named)
        if private.room is not None:
            private.room, private.chunk = None, state.facts["chunk"]
            private._facts["chunk"] = private.chunk
        state.check(private._facts)
        processes.first("the account", lambda: state.check_account(account))
        private._payment.account = account
        private._go_on(state, place)
        return private

    def _go_on(self, state: State, place: Path) -> None:
        key = StreamKey(bytes.fromhex(state.secret), tainted=state.tainted)
        self._attempts = Attempts.resumed(
            place,
            key,
            lines=state.lines,
            steps=state.steps,
            account=self._payment.account,
            processes=self.processes,
        )
        try:
            self._files.load(state)
        except BaseException:
            self.close()
            raise
        self._key, self._draws.random_state = key, state.chance
        self._entrances = set(state.entrances)
        self.steps, self.reduction, self._sum.clip = state.steps, state.reduction, state.clip
        self._payment.go_on(state.paid, None if state.entry is None else Entry(**state.entry))
        if self._attempts.paid is not None:
            self._payment.catch_up(*self._attempts.paid)

    # What the loader asks for.

    def ready(self) -> None:
        """Take the state of the model as it is before it has seen anything."""
        self._files.ready(self._key)

    def begin(self) -> None:
        """Before the first batch of an iteration: compare what processes have."""
        self.supply.compare(self.processes, self._key)
        self._draws.restore()

    def fit_chunk(self) -> None:
        """Take the size of chunks that the GPU has room for, as measured on the first examples."""
        if self.room is not None:
            room, self.room = self.room, None
            self.chunk = min(self.processes.each("a chunk", partial(room.examples, self._most)))
            self._facts["chunk"] = self.chunk

    def drawn(self) -> NDArray[np.int64]:
        """Return the rows of the step at hand, after the charge for its stretch or for another attempt."""
        if self._payment.begun:
            self._pay_for_step()
        self._sum.clear()
        if self._attempts.lost(self.steps):
            self._payment.pay_again()
            self._attempts.again(self.steps)
            self._draws.restore()
        return self._draws.rows(self._key, self.steps, self._attempts.now(self.steps))

    def no_rows(self) -> NDArray[np.int64]:
        """Return the rows of a batch in which there is nobody."""
        each = self.sampling.rows_per_unit
        return np.empty(0 if each is None else (0, each), np.int64)

    def chunks_of(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the chunks of the batch at hand that this process takes.

        Args:
            rows: The rows of the batch, or a line of them for each unit.
        """
        rank, processes = self.processes.rank, self.processes.count
        step, attempt = self.steps, self._attempts.now(self.steps)
        count = -(-self.sampling.chunks(self.chunk) // processes) * processes
        return assign_chunks(rows, count, self._key.stream(CHUNKS, step, attempt))[rank::processes]

    def hand_out(self, batch: Any, part: NDArray[np.int64], *, at_least: int, last: bool) -> None:
        """Begin the pass over a chunk, of which the rows after the real ones are blank and count nothing.

        Args:
            batch: The chunk.
            part: The numbers of its real rows.
            at_least: The number of examples that blank ones fill it up to.
            last: Whether it is the last chunk of its batch.
        """
        examples = max(at_least, len(part))
        self.waiting, self._last = True, last
        self.model.turn += 1
        self.model.lifts = self.reduction == "mean"
        if isinstance(self._sum.plan.clipping, PerLayer):
            self.model.by_layers(self._alone)
        self.model._rows = self._rows_each * examples
        self._real = None
        if len(part) < examples:
            self._real = (torch.arange(examples) < len(part)).double()
        self.model.weights = None
        if part.ndim > 1:
            there = np.concatenate(
                [(part >= 0).reshape(-1), np.ones((examples - len(part)) * part.shape[1], bool)]
            )
            self.model.weights = torch.as_tensor(there).repeat_interleave(self._views)
        self.model.begin(batch, examples)

    def optimizer_settings(self) -> list[dict[str, Any]]:
        """Return the settings of the optimizer, but for its parameters."""
        groups = self.optimizer.param_groups
        for group in groups:
            given = [value for key, value in group.items() if key != "params"]
            if any(isinstance(value, Tensor) and self.model.is_private(value) for value in _entries(given)):
                raise _private_setting("a tensor")
        return [{key: _number(value) for key, value in group.items() if key != "params"} for group in groups]

    def _pay_for_step(self) -> None:
        if self._payment.pay_for(self.steps) and self._payment.stretches.length != "run":
            self._attempts.note_paid(self._payment.paid, self._payment.entry)

    # Plans.

    def _room(self, chunk: int | None) -> Room | None:
        """Return the GPU that is to say how many examples it has room for, if there is one."""
        devices = {parameter.device for parameter in self.model.names if parameter.is_cuda}
        fits = chunk is None and not self._closes and len(devices) == 1
        return Room(devices.pop()) if fits else None

    def _plan(self, chunk: int) -> None:
        """From now on take `chunk` examples at a time."""
        self.chunk = chunk
        plan = self.settings.plan(self.model, chunk, self.processes.count)
        self._sum = sum_of(self.model.names, plan, self.processes)
        self._facts = facts_of(
            plan,
            self.sampling,
            self.model,
            self.optimizer,
            average=self.average,
            views=self._views,
            chunk=chunk,
            pay=self._pay,
        )

    def _join(self, rows: int) -> None:
        """Compare what processes were given; all train from the weights of the first."""
        if self.processes.count == 1:
            return
        settings = self.optimizer_settings()
        given = {"number of rows": rows, "optimizer's settings": settings}
        join(self.processes, {**self._facts, **given}, self.model.inner)
        self._payment.check_payers()


def _follow(average: Average, model: nn.Module, optimizer: torch.optim.Optimizer) -> Average:
    if not isinstance(average, Average):
        raise InvalidArgument(
            "average must be an average of the model's weights.",
            remedy="Pass average=dp.learn.Average(model).",
        )
    if type(average) is not Average:
        raise NotSound(
            f"The average is a {type(average).__name__}, a subclass of Average whose code may put anything "
            "into what is exported.",
            remedy="Pass average=dp.learn.Average(model) itself.",
        )
    if not average.follows(model):
        raise InvalidArgument(
            "The average is of another model than the one that is trained.",
            remedy="Pass average=dp.learn.Average(model), of the same model.",
        )
    return average.follow(optimizer)


def _number(setting: Any) -> Any:
    """Return a setting as a number: a rate that is a tensor may be changed in place."""
    if isinstance(setting, PrivateNumber | PrivateInteger):
        raise _private_setting(f"a value that {setting.source} read out")
    if isinstance(setting, list | tuple):
        return [_number(entry) for entry in setting]
    return setting.item() if isinstance(setting, torch.Tensor) and setting.numel() == 1 else setting


def _entries(setting: Any) -> Iterator[Any]:
    """Give a setting, or the entries of one that is a list."""
    if isinstance(setting, list | tuple):
        for entry in setting:
            yield from _entries(entry)
    else:
        yield setting


def _private_setting(what: str) -> NotSound:
    """Return the refusal of a setting that depends on private examples."""
    return NotSound(
        f"A setting of the optimizer, such as its learning rate (lr), is {what} of private examples"
        f"{user_line()}.",
        remedy="Set it from public values: the number of steps, or a schedule.",
    )
