"""`Watched`: a model whose backward passes leave, for each example, its norm and its share of a sum.

One forward and one backward pass, as ever. `shares` then says how long every example's gradient is, and
`Shares.add` sums them with a weight for each. An ordinary gradient is given to no parameter: one that has got
one was used outside of the model's forward pass, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn import gpu
from dalenius.learn.bundles import Group, grouped, left_over
from dalenius.learn.dataflow.private_numbers import PrivateInteger, PrivateNumber
from dalenius.learn.dataflow.provenance import SELECTED_ROWS
from dalenius.learn.layers import Layers, Summing
from dalenius.learn.marks import replaced, tensors_in
from dalenius.learn.parts import HALF, Part, full
from dalenius.learn.random_state import check_own, have_drawn, states
from dalenius.learn.sharded import resharded
from dalenius.learn.sharding import Shards
from dalenius.learn.tape import Tape

BACKWARD, LOSS = "backward", "loss"
"""How a pass is made: by `backward()`, watched, or by a function of one example (`example_loss`)."""


class Shares:
    """The gradients of the examples of one pass, by parameter."""

    def __init__(self, parts: Mapping[Tensor, Part], examples: int, *, padding: int = 0) -> None:
        self._parts, self.examples, self.parameters = parts, examples, parts.keys()
        self.padding = padding
        """So many of the examples, the last ones, were made up."""
        self._groups: list[Group] = []

    def norms(self, norm: str = "l2", *, apart: bool = True) -> dict[Tensor, Tensor]:
        """For each parameter and example, the squared L2 norm of its gradient, or the L1 norm.

        If not `apart`, one parameter may stand for several, of which only the sum is asked.
        """
        if norm != "l2":
            return {one: part.absolute() for one, part in self._parts.items()}
        if not self._groups:
            self._groups = grouped(self._parts, apart=apart)
            self._parts = left_over(self._parts, self._groups)
        found = {one: part.squared() for one, part in self._parts.items()}
        for group in self._groups:
            found |= group.norms()
        return found

    def forget(self, bad: Tensor) -> None:
        """Leave the marked examples out: what they have is not a number."""
        for part in self._parts.values():
            part.forget(bad)
        for group in self._groups:
            group.forget(bad)

    def add(
        self,
        weights: Mapping[Tensor, Tensor] | Tensor,
        totals: Mapping[Tensor, Tensor],
        *,
        fresh: Set[Tensor] = frozenset(),
    ) -> None:
        """Add to each parameter's total the gradients of all examples, each times its weight.

        What is in a total that is `fresh` does not count.
        """

        def own(parameter: Tensor) -> Tensor:
            return weights if isinstance(weights, Tensor) else weights[parameter]

        for parameter, part in self._parts.items():
            part.add(own(parameter), totals[parameter], keep=parameter not in fresh)
        for group in self._groups:
            group.add(own, totals, fresh)


class Lifted(torch.autograd.Function):
    """What a model returns. Gradients come back times a gain, if half precision would round 1/n of theirs."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, gain: float, weights: Tensor | None) -> Tensor:
        """The same, in single precision at least."""
        ctx.gain, ctx.weights, ctx.dtype = gain, weights, result.dtype
        return full(result) if result.dtype in HALF else result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Multiplied before it is cut to the precision of the model."""
        g = full(gradients[0])
        if ctx.weights is not None:
            g = g * ctx.weights
        # Outputs may be long, as those over a vocabulary are: not once more for nothing.
        if ctx.gain == 1.0:
            return g.to(ctx.dtype), None, None
        return torch.mul(g, ctx.gain, out=gpu.room(g.shape, g, ctx.dtype)), None, None


def _eager(call: Any) -> Any:
    """Not compiled, from outside or inside: a compiled graph has no place for the parts of examples."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch.compiler.set_stance("force_eager"):
            return call(*args, **kwargs)

    return torch.compiler.disable(run)


class Watched(nn.Module):
    """The model, watched. Called as the model is; the batch is the first dimension of its inputs."""

    def __init__(self, model: nn.Module, *, rows_per_example: int = 1, batch_dim: int = 0) -> None:
        super().__init__()
        self.inner, self.each, self._dim = model, rows_per_example, batch_dim
        named = resharded(model).named_parameters()
        names: dict[Tensor, str] = {one: name for name, one in named if one.requires_grad}
        self._names, self._tape = names, Tape(names)
        self._shards = Shards.of(model, names, self._tape)
        self._half = any(one.dtype in HALF for one in model.parameters())
        self._compiled = any(type(one).__name__ == "OptimizedModule" for one in model.modules())
        self.watching, self.coarse = True, False
        self.weights: Tensor | None = None
        self._rows: int | None = None
        """How many rows the batch has, which is private."""
        self.apart = False
        """Whether rows may be missing, so that all it returns has to be of one row each."""
        self.lifts, self._padding = False, 0
        self.turn = self._expected = self._loops = 0
        self._entrance, self._watch = BACKWARD, ExitStack()
        self.busy = self.bare = False
        """Whether a forward pass is under way, and whether results are left as they are."""

    @property
    def names(self) -> Mapping[Tensor, str]:
        """The trained parameters and what they are called."""
        return self._names

    @property
    def gain(self) -> float:
        """What the gradients of the pass at hand are multiplied by."""
        return self._tape.gain

    @gain.setter
    def gain(self, gain: float) -> None:
        self._tape.gain = gain

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the model's."""
        if self._compiled or torch.compiler.is_compiling():
            return _eager(self._forward)(*args, **kwargs)
        return self._forward(*args, **kwargs)

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [*tensors_in(args), *tensors_in(kwargs)]
        if not tensors:
            raise InvalidArgument("The model was given no tensor.", remedy="Pass it a batch of inputs.")
        if not torch.is_grad_enabled():
            return self.inner(*args, **kwargs)
        tape = self._tape
        if not tape.looping:
            with tape.unwatched():
                self._open(tensors)
        self.busy, tape.inside = True, tape.inside + 1
        try:
            with tape.watching():
                result = self.inner(*args, **kwargs)
        finally:
            self.busy, tape.inside = False, tape.inside - 1
        with tape.unwatched():
            return self._returned(result, tensors, tape.rows)

    def _open(self, tensors: list[Tensor]) -> None:
        """Begin a pass, whose examples are the inputs' first dimension."""
        rows = tensors[0].shape[self._dim]
        self._tape.open(rows // self.each, rows)
        self._padding = 0
        for one in tensors:
            if one.dim() > self._dim and one.shape[self._dim] == rows:
                self._tape.give(one, self._dim)
            else:
                self._tape.give_mixed(one, "An input", "has no entry for each row of the batch")

    def _returned(self, result: Any, tensors: list[Tensor], rows: int) -> Any:
        half = any(one.dtype in HALF for one in tensors_in(result))
        self.coarse = self.coarse or half
        gain = 1.0
        if not self._tape.looping:
            # In a loop that is watched, backward() begins with the gain.
            coarse = half or self._half or torch.is_autocast_enabled(tensors[0].device.type)
            gain = self.gain = float(rows) if self.lifts and coarse else 1.0

        def left(one: Tensor) -> Tensor:
            return self._tape.follow_copy(one, self._left(one, rows, gain)) if one.requires_grad else one

        return replaced(result, left)

    def _left(self, result: Tensor, rows: int, gain: float) -> Tensor:
        """In single precision; what comes back is multiplied by the gain, and is nothing to missing rows."""
        state = None if self._tape.looping else self._tape.state(result)
        if state is not None and state.origin is not None and state.origin.reason == SELECTED_ROWS:
            # In a loop the loss is followed as well, and refused if it is not a sum over examples.
            raise NotSound(
                f"The model returns a tensor that mixes examples: {state.origin}.",
                remedy="Return outputs in which every row follows from one example.",
            )
        if self.apart and not (
            self._tape.leads(result) if self._tape.looping else result.dim() and len(result) == rows
        ):
            raise NotSound(
                "The model returns something that is not one thing for each row.",
                remedy="Return outputs with the batch as first dimension, and compute losses in the loop.",
            )
        if self.weights is None:
            return result if self.bare else Lifted.apply(result, gain, None)
        weights = self.weights.to(result.device).view(-1, *(1,) * (result.dim() - 1))
        return Lifted.apply(result, gain, weights)

    # A loop that is watched.

    @contextmanager
    def looped(self) -> Iterator[None]:
        """Watch a training loop: all that is called inside.

        Of two loops that overlap, as where the first was broken off, neither ends the other's watch.
        """
        first = not self._loops
        if first:
            self._watch.enter_context(self._tape.watching())
            self._watch.enter_context(self._tape.guarded_generators())
        self._loops, self._tape.looping = self._loops + 1, True
        try:
            with nullcontext() if first else self._tape.watching():
                yield
        finally:
            self._loops -= 1
            if not self._loops:
                self._tape.looping = False
                self._watch.close()
                self._tape.guard()

    @property
    def looping(self) -> bool:
        """Whether a training loop is watched."""
        return self._tape.looping

    def expect(self, entrance: str) -> None:
        """Note that a pass which is adopted later begins now, on the batch at hand.

        Args:
            entrance: BACKWARD or LOSS: how the pass is made.
        """
        self._entrance, self._expected = entrance, self.turn

    @property
    def entrance(self) -> str:
        """How the pass was made that is to be taken in."""
        return self._entrance if self._tape.adopted else BACKWARD

    def begin(self, batch: Any, examples: int, *, padding: int = 0) -> None:
        """Begin a pass over a batch, of whose examples the last `padding` count nothing."""
        rows = examples * self.each
        self._tape.begin(examples, rows)
        self._padding = padding
        for one in tensors_in(batch):
            if not one.dim() or one.shape[0] != rows:
                raise InvalidArgument(
                    "A tensor of the batch does not have one entry for each row.",
                    remedy="Let every row of the data set give tensors, and collate rows one by one.",
                )
            self._tape.give(one)

    def check_watching(self) -> None:
        """Refuse to go on where the loop is no longer watched, or where modes of the user's hide from it."""
        self._tape.check_watching()
        self._tape.check_hooks()

    def keep_private(self, storages: Iterable[Any]) -> None:
        """Note that memory which was made elsewhere holds private values."""
        for storage in storages:
            self._tape.hold_storage(storage)

    @property
    def has_written(self) -> bool:
        """Whether private values were written into public memory."""
        return self._tape.has_written

    @property
    def vouched(self) -> frozenset[type]:
        """Registered custom functions that private tensors came from."""
        return frozenset(self._tape.vouched)

    def forget(self) -> None:
        """Forget the backward passes since the last step, as zeroed gradients are forgotten."""
        self._tape.forget()

    def note_failure(self, name: str) -> None:
        """Note that something failed on private examples: no step is made after that.

        Args:
            name: What failed, as the beginning of a sentence.
        """
        self._tape.note_failure(name)

    def unwatched(self) -> AbstractContextManager[None]:
        """Leave what is called inside alone."""
        return self._tape.unwatched()

    def watched(self) -> AbstractContextManager[None]:
        """Watch what is called inside, also where all around it is left alone."""
        return self._tape.unwatched(False)

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Note random numbers drawn inside for a batch, and refuse those of a seed of the loop's."""
        before = states()
        yield
        if self._tape.looping and have_drawn(before):
            self._tape.note_drawn()
            check_own()

    def leads(self, tensor: Tensor) -> bool:
        """Return whether row i of a tensor follows from row i of the batch and public values alone."""
        return self._tape.leads(tensor)

    def admits(self, tensor: Tensor) -> bool:
        """Return whether a recorded pass may take a tensor as one of its batch, or as a constant."""
        return self._tape.admits(tensor)

    def is_private(self, value: Any) -> bool:
        """Return whether a value depends on private examples."""
        if isinstance(value, Tensor):
            with torch._C.DisableTorchFunction():
                return not self._tape.is_public(value)
        return isinstance(value, PrivateNumber | PrivateInteger)

    def is_watched(self, value: Any) -> bool:
        """Return whether a value depends on private examples, or on how many they are."""
        if isinstance(value, Tensor):
            return self._tape.is_watched(value)
        return isinstance(value, PrivateNumber | PrivateInteger)

    @contextmanager
    def passing(self, inputs: Sequence[Tensor]) -> Iterator[None]:
        """Watch a function of a batch, all of whose tensors are given, up to its loss."""
        before, self._tape.looping = self._tape.looping, True
        try:
            with self._tape.unwatched(False), self._tape.watching():
                self.begin(inputs, len(inputs[0]) // self.each)
                yield
        finally:
            self._tape.looping = before

    def accept(self, loss: Tensor) -> frozenset[int]:
        """Refuse a loss whose gradient is not a sum over examples, and settle the gain of its gradient.

        Returns:
            −1 if it is a mean over examples, 0 if it is a sum.
        """
        self._tape.accept(loss)
        self._tape.lift()
        return frozenset(self._tape.powers)

    def total(self, value: Tensor) -> Tensor:
        """Return a mean over the batch as a tensor that is known to be private."""
        self._tape.note_total(value)
        return value

    @property
    def reduction(self) -> str | None:
        """Whether the backward passes since the last step were of means or of sums, as the analysis says."""
        return next(("mean" if power else "sum" for power in self._tape.powers), None)

    def _check(self) -> None:
        """What is trained is what was to be trained when noise was planned, in full precision."""
        known = {*map(id, self.names), *map(id, self._tape.names)}
        late = [
            name
            for name, one in self.inner.named_parameters()
            if id(one) not in known and (one.requires_grad or one.grad is not None)
        ]
        if late:
            raise NotSound(
                f"{' and '.join(late[:3])} was not trained when the run began, and would get no noise.",
                remedy="Unfreeze parameters before, or begin a new run with them.",
            )
        if torch.get_float32_matmul_precision() != "highest":
            raise NotSound(
                "Products of matrices are made in less than single precision, which norms do not allow for.",
                remedy='Call torch.set_float32_matmul_precision("highest").',
            )

    def shares(self) -> Shares:
        """Of the backward pass that was just made."""
        self._check()
        if (
            self._rows is not None
            and not self._tape.looping
            and self._tape.seen - {self._rows // self.each + self._padding}
        ):
            raise NotSound(
                "The loop gives the model more or fewer rows than it was given, and each would count as an "
                "example of its own.",
                remedy="Pass views=… for several views of an example, which are clipped as one, and call the "
                "model under torch.no_grad() for anything else.",
            )
        parts, examples = self.passed()
        return Shares(parts, examples, padding=self._padding)

    def passed(self) -> tuple[Mapping[Tensor, Part], int]:
        """The parts of the backward pass that was just made, and how many examples it had."""
        self._tape.check_hooks()
        self._tape.check_failures()
        strays = [name for one, name in self.names.items() if one.grad is not None]
        strays += [] if self._shards is None else self._shards.strays()
        if strays:
            raise NotSound(
                f"{' and '.join(strays[:3])} got a gradient that is not known example by example.",
                remedy="Call zero_grad() before every pass, and use parameters in the forward pass of the "
                "private model only, without checkpointing; weight decay belongs to the optimizer.",
            )
        unseen = self._tape.looping and not self._tape.powers
        parts = self._tape.parts() if self._shards is None else self._shards.parts()
        if unseen and parts:
            raise NotSound(
                "A backward pass was made that was not watched, so that it is not known what it was of.",
                remedy="Call loss.backward() inside of the loop over private.loader, in the same thread.",
            )
        return parts, self._tape.examples

    def by_layers(self, summing: Summing | None) -> None:
        """Make the clipped sums of layers on the way back; parts are kept while `summing` is None."""
        if self._shards is None:
            self._tape.layers = self._tape.layers or Layers(self.names)
            self._tape.layers.summing = summing

    # For passes that are recorded.

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """All parts, also those of layers that are clipped by themselves."""
        layers, self._tape.layers = self._tape.layers, None
        try:
            yield
        finally:
            self._tape.layers = layers

    @property
    def sharded(self) -> bool:
        """Whether parameters come and go during a pass."""
        return self._shards is not None

    @property
    def _examples(self) -> int:
        """How many examples the last pass had, which is private."""
        return self._tape.examples

    def state(self) -> list[Tensor]:
        """Parameters and buffers."""
        return [*self.inner.parameters(), *self.inner.buffers()]

    def adopt(
        self,
        parts: Mapping[Tensor, Part],
        examples: int,
        *,
        gain: float,
        padding: int,
        powers: Iterable[int] = (-1,),
    ) -> None:
        """Take parts as those of a pass that was just made.

        Args:
            parts: The parts, by parameter.
            examples: How many examples the pass had.
            gain: What gradients were multiplied by.
            padding: How many of the examples, the last ones, count nothing.
            powers: −1 if the pass was of a mean over examples, 0 if of a sum.
        """
        if self._tape.looping:
            if self._expected != self.turn:
                raise NotSound(
                    "A step was made, or another batch was asked for, inside of the function that computes "
                    "the loss: its examples would be counted in another step.",
                    remedy="Compute the loss in the function, and call private.step() after it.",
                )
            self._tape.check_taken_in()
            self._tape.drop()
            self._tape.examples, self._tape.rows = examples, examples * self.each
            self._tape.powers, self._tape.adopted = set(powers), True
        else:
            self._tape.open(examples, examples * self.each)
        self.gain, self._padding = gain, padding
        with self.keeping():
            for parameter, part in parts.items():
                self._tape.put(parameter, part)

    @contextmanager
    def standing_in(self, others: Mapping[Tensor, Tensor]) -> Iterator[None]:
        """Other tensors in the place of parameters and buffers."""
        homes: list[dict[str, Any]] = [
            home for one in self.inner.modules() for home in (one._parameters, one._buffers)
        ]
        before, tape, names = [dict(home) for home in homes], self._tape, self._names
        self._names = {others[one]: name for one, name in names.items()}
        self._tape = tape.of(self._names)
        try:
            for home in homes:
                home.update({name: others[one] for name, one in home.items() if one is not None})
            yield
        finally:
            self._tape, self._names = tape, names
            for home, held in zip(homes, before, strict=True):
                home.update(held)
