"""One operator of torch with its arguments by name, and how its tensors align along the batch axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    PLACED,
    POSITION,
    PRIVATE,
    TOTAL,
    UNIFORM,
    VARIED,
    VIRTUAL,
    State,
    locate,
    mixed,
    multiplicity,
    outer_at,
    times_batch,
)

Place = tuple[int, int]
"""A dimension, and how many blocks precede the batch axis within it."""
ALONG = "works along the batch"
VARIES = "combines examples with public values that differ along the batch"
APART = "combines two batch axes that do not coincide"


_POSITION_NAMES = (
    "arange view _unsafe_view reshape _reshape_alias flatten unsqueeze squeeze permute transpose t expand "
    "alias detach clone _to_copy lift_fresh contiguous"
)
_KEEPS_POSITION = frozenset(_POSITION_NAMES.split())
MOST_POWER = 2
"""Powers of the size of a batch that values may be multiplied or divided by."""
WIDE = frozenset((torch.int32, torch.int64))
"""Types that hold the position of every example."""


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Yield the tensors among arguments or results, also of lists."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for entry in value:
            yield from tensors_of(entry)


class Operation:
    """A call of an operator on tensors that have shapes and no content.

    Args:
        func: The operator.
        args: Its positional arguments.
        kwargs: Its named arguments.
        result: What it returned.
        states: The states of tensors, by identity.
    """

    examples = VIRTUAL
    """The number of examples that shapes are computed with."""

    def __init__(self, func: Any, args: Any, kwargs: Any, result: Any, states: dict[int, State]) -> None:
        schema = func._schema
        self.name: str = schema.name.removeprefix("aten::").removesuffix("_")
        self.in_place: bool = schema.name.endswith("_") and not schema.name.endswith("__")
        self.given: dict[str, Any] = {
            argument.name: argument.default_value
            for argument in schema.arguments
            if argument.has_default_value()
        }
        self.given |= {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)}
        self.given |= kwargs
        self.tensors = list(tensors_of((*args, *kwargs.values())))
        self.results = list(tensors_of(result))
        self.states = states
        self.known = [state for tensor in self.tensors if (state := states.get(id(tensor))) is not None]
        self.kinds = {state.kind for state in self.known}
        self.private = not self.kinds.isdisjoint(PRIVATE)

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name)

    def state(self, tensor: Any) -> State | None:
        """Return the state of an argument."""
        return self.states.get(id(tensor))

    def kind(self, tensor: Any) -> int:
        """Return the kind of an argument's state, 0 if it is public."""
        state = self.states.get(id(tensor))
        return 0 if state is None else state.kind

    def place(self, tensor: Tensor) -> Place | None:
        """Return where a tensor has its batch axis; None if it has none or it spans dimensions."""
        state = self.states.get(id(tensor))
        if state is None:
            return None
        # The shape before the operator, which may have changed it in place.
        shape = tuple(tensor.shape) if state.shape is None else state.shape
        if state.kind == UNIFORM:
            long = [i for i, size in enumerate(shape) if size and size % self.examples == 0]
            return (long[0], 1) if len(long) == 1 else None
        return locate(shape, state.outer, self.examples) if state.kind in PLACED else None

    # Outcomes.

    def put(self, tensor: Tensor, state: State | None) -> None:
        """Give a result its state."""
        shape = tuple(tensor.shape)
        long = times_batch(shape)
        if state is None and long:
            state = State(VARIED)
        if state is not None and state.kind == POSITION:
            # Only a view that neither changes nor repeats positions keeps them.
            size = self.tensors[0].numel() if self.tensors else tensor.numel()
            kept = self.name in _KEEPS_POSITION and tensor.numel() == size and tensor.dtype in WIDE
            state = state if kept else State(VARIED)
        if state is not None and state.kind == AXIS and long > 1:
            state = mixed(self.name, "has an entry for every pair of examples")
        if state is not None and state.kind == AXIS and not long and tensor.numel():
            state = mixed(self.name, "has no entry for every example")
        if state is not None and (state.power or state.kind == TOTAL):
            state = self._linear(tensor, state)
        if state is None:
            self.states.pop(id(tensor), None)
        else:
            self.states[id(tensor)] = state._replace(shape=shape)

    def _linear(self, tensor: Tensor, state: State) -> State:
        """Return the state of a sum, or of values times a power of n; MIXED where they are not such.

        Rounding to whole numbers, or bits of another type, are not linear. Higher powers of n overflow, or
        vanish, at some n: values times n⁹ that are divided by it again would be infinite for that n alone.
        """
        bits = self["rounding_mode"] is not None or ("view" in self.name and self["dtype"] is not None)
        whole = not (tensor.is_floating_point() or tensor.is_complex())
        if bits or (whole and (state.power or any(map(torch.is_floating_point, self.tensors)))):
            return mixed(
                self.name, "rounds sums over examples, or values that the size of the batch has scaled"
            )
        if abs(state.power) > MOST_POWER:
            return mixed(self.name, "multiplies or divides by the size of the batch over and over")
        return state

    def put_all(self, state: State | None) -> None:
        """Give all results one state."""
        for tensor in self.results:
            self.put(tensor, state)

    def mix(self, reason: str) -> None:
        """Give all results the state MIXED, if anything private went in; otherwise they are public."""
        self.put_all(mixed(self.name, reason) if self.private else None)

    def put_placed(self, tensor: Tensor, kind: int, place: Place) -> None:
        """Give a result a batch axis at a place of its own shape."""
        self.put(tensor, State(kind, outer_at(tuple(tensor.shape), *place)))

    def joint(self, *tensors: Tensor) -> int:
        """Return the kind of what is computed from tensors that have the batch, if any, at one place.

        What follows from positions, or from public values that differ along the batch, is not alike for all
        examples.
        """
        kinds = {self.kind(tensor) for tensor in tensors}
        if AXIS in kinds:
            return AXIS
        return COPIES if kinds <= {0, COPIES, UNIFORM} else VARIED

    # Alignment.

    def varies(self, tensor: Tensor, place: Place, dims: int) -> bool:
        """Return whether a public tensor may differ along a place of a result with so many dimensions."""
        dimension = place[0] - (dims - tensor.dim())
        if dimension < 0 or tensor.shape[dimension] == 1 or tensor.stride(dimension) == 0:
            return False
        state = self.state(tensor)
        if state is not None and state.kind == UNIFORM:
            return False
        own = self.place(tensor) if state is not None and state.kind == COPIES else None
        return own != (dimension, place[1])

    def alike(self, tensor: Tensor) -> bool:
        """Return whether a public tensor with a batch axis has the same entries at fixed indices for any n.

        That is so of rows that are alike, in a dimension of their own or each in several entries, one example
        after the other. Of several batches end to end, n says which is at a fixed index.
        """
        place = self.place(tensor) if self.kind(tensor) == COPIES else None
        return place is not None and place[1] == 1 and times_batch(tuple(tensor.shape)) == 1

    def common(self, tensors: Sequence[Tensor], dims: int) -> Place | str | None:
        """Return the place of the batch axis in a result that tensors are broadcast to, aligned right.

        A text says why there is none though private tensors are among them; None if all are public.
        """
        places = set()
        if any(self.kind(tensor) == TOTAL for tensor in tensors):
            return "combines a sum over examples with single ones"
        for tensor in tensors:
            if self.kind(tensor) == AXIS:
                place = self.place(tensor)
                if place is None:
                    return "needs the batch in one dimension"
                places.add((place[0] + dims - tensor.dim(), place[1]))
        if len(places) > 1:
            return APART
        if not places:
            return None
        place = places.pop()
        others = (tensor for tensor in tensors if self.kind(tensor) != AXIS)
        return VARIES if any(self.varies(tensor, place, dims) for tensor in others) else place

    def follow(self, tensors: Sequence[Tensor], *, dims: int | None = None) -> None:
        """Give every result the batch axis that broadcast arguments have in common, or mix."""
        for result in self.results:
            size = result.dim() if dims is None else dims
            place = self.common(tensors, size)
            if isinstance(place, tuple):
                self.put_placed(result, AXIS, place)
            elif place is None and not self.private:
                self.put(result, self._public(tensors, result))
            else:
                self.put(result, mixed(self.name, place or ALONG))

    def copied(self, tensors: Sequence[Tensor], dims: int) -> Place | None:
        """Return where public tensors, broadcast to so many dimensions, are alike for all examples."""
        for tensor in tensors:
            own = self.place(tensor) if self.kind(tensor) in (COPIES, UNIFORM) else None
            if own is not None:
                place = own[0] + dims - tensor.dim(), own[1]
                if not any(self.varies(other, place, dims) for other in tensors):
                    return place
        return None

    def _public(self, tensors: Sequence[Tensor], result: Tensor) -> State | None:
        """Return the state of a pointwise function of public tensors."""
        if not self.kinds:
            return None
        varied = [tensor for tensor in tensors if self.kind(tensor) != UNIFORM and tensor.numel() != 1]
        if not varied:
            return State(UNIFORM)
        place = self.copied(tensors, result.dim())
        return None if place is None else State(COPIES, outer_at(tuple(result.shape), *place))

    def keep_total(self, power: int) -> None:
        """Give all results the state of a total, which must not be spread over examples again."""
        for tensor in self.results:
            spread = any(size and size % self.examples == 0 for size in tensor.shape)
            self.put(
                tensor,
                mixed(self.name, "spreads a sum over examples along the batch")
                if spread
                else State(TOTAL, power=power),
            )

    def batch_factor(self) -> int:
        """Return how often the size of the batch is a factor of the numbers among the arguments."""
        return sum(multiplicity(value) for value in self.given.values() if isinstance(value, int | float))

    def takes_size(self) -> bool:
        """Return whether a number among the arguments depends on the size of the batch."""
        values = self.given.values()
        numbers = [
            entry for value in values for entry in (value if isinstance(value, list | tuple) else [value])
        ]
        return any(multiplicity(entry) for entry in numbers if isinstance(entry, int | float))

    def length(self) -> int:
        """Return the largest number of sizes of an argument that depend on the batch."""
        return max((times_batch(state.shape) for state in self.known if state.shape is not None), default=0)

    def shrinks(self) -> bool:
        """Return whether a result has fewer sizes that depend on the batch than an argument."""
        before = self.length()
        return any(times_batch(tuple(tensor.shape)) < before for tensor in self.results)

    def raise_power(self, by: int) -> None:
        """Note that the values of all results are times n**by."""
        for tensor in self.results:
            state = self.state(tensor)
            if state is not None and state.kind == AXIS:
                self.put(tensor, state._replace(power=state.power + by))

    def powers(self) -> set[int]:
        """Return the powers of the size of the batch that private arguments are multiplied by."""
        states = (self.state(tensor) for tensor in self.tensors)
        return {state.power for state in states if state is not None and state.kind == AXIS}

    def dimension(self, name: str, tensor: Tensor) -> int:
        """Return a dimension given by name as a number that is not negative."""
        value = self[name]
        return (0 if value is None else int(value)) % max(tensor.dim(), 1)

    def dimensions(self, name: str, tensor: Tensor) -> set[int]:
        """Return dimensions given by name; all of them where none is given."""
        value = self[name]
        if value is None or (isinstance(value, list | tuple) and not value):
            return set(range(tensor.dim()))
        values = value if isinstance(value, list | tuple) else [value]
        return {int(number) % max(tensor.dim(), 1) for number in values}

    def total_power(self, tensor: Tensor) -> int | None:
        """Return the power of a total, None for anything else."""
        state = self.state(tensor)
        return state.power if state is not None and state.kind == TOTAL else None
