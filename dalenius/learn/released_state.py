"""`ReleasedState`: check that a model's state holds nothing but what the private optimizer put there.

All that leaves a run is the model's `state_dict`, or averages of it. A trained parameter carries noise after
a step of the optimizer, and is the same until the next step. Everything else in the state (frozen parameters,
buffers, extra state) is what it was when the run began, before the model met a private row. A state that is
anything else may hold private rows as they are, and is refused before it leaves:

    settled    frozen parameters, buffers, extra state: fingerprints at the start of the run and now
    trained    fingerprints right after every step of the optimizer, and right before the next one
    names      none was added, removed or given to another tensor
    averages   as trained parameters: they move within the optimizer's step and at no other time
    momenta    and all other tensors of the optimizer's state, which its next step adds to weights: the same
               tensors, written by no function of torch in between

Comparisons are of bits (`fingerprints`), so that it does not matter how something was written: by `forward`,
through `.data`, by a view of numpy or by a hook. What is private by data flow is refused whatever its bits: a
buffer of zeros that keeps the rows of an empty batch is one of zeros again. On a GPU a comparison between
steps stays there, and is read when the state leaves; on a processor it is read at once. Whether a state is
refused depends on private data only where the state already did.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.averaging import Average
from dalenius.learn.dataflow.kept_tensors import PrivateTensor
from dalenius.learn.dataflow.states import note_written
from dalenius.learn.fingerprints import Fingerprints
from dalenius.learn.marks import tensors_in
from dalenius.learn.model_tensors import check_class
from dalenius.learn.sharded import is_sharded, local, resharded
from dalenius.noise.stream import StreamKey

Form = tuple[object, ...]


class ReleasedState:
    """The state of a model at the start of a run, to be held against what it is later.

    Args:
        model: The model that is trained, as it is before it meets data.
        trained: The parameters that the optimizer moves.
        optimizer: The optimizer that moves them.
        average: The average of the weights that is kept, if any.
        key: The key of the run.
        is_private: Whether a tensor depends on private examples, by data flow.
        watched: Returns a context in which code of the user's is watched. Hooks on the state, and methods
            that give more of it, may look at the batch.
    """

    def __init__(
        self,
        model: nn.Module,
        trained: Mapping[Tensor, str],
        optimizer: torch.optim.Optimizer,
        average: Average | None,
        key: StreamKey,
        is_private: Callable[[Tensor], bool] = lambda _: False,
        watched: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._is_private, self._watched = is_private, watched
        self._model, self._optimizer, self._average = model, optimizer, average
        self._prints = Fingerprints(key)
        self._names = dict(trained)
        state = self._state()
        self._published = set(state)
        self._trained, self._settled = self._parted(state)
        self._moved: dict[torch.device, Tensor] = {}
        self.hold()

    def hold(self) -> None:
        """Take what the optimizer moves as it is now: the optimizer has just moved it."""
        self._forms, self._held = self._now()

    def compare(self) -> None:
        """Note whether anything that the optimizer moves differs from what was held."""
        forms, now = self._now()
        if forms != self._forms or now.keys() != self._held.keys():
            raise _rewritten()
        with torch._C.DisableTorchFunction():
            for device, prints in now.items():
                moved = (prints != self._held[device]).any()
                self._moved[device] = moved | self._moved[device] if device in self._moved else moved

    def check_steps(self, *, wait: bool) -> None:
        """Refuse parameters that moved between steps; without `wait` only those that no GPU holds."""
        for device, moved in self._moved.items():
            if (wait or device.type == "cpu") and bool(moved):
                raise _rewritten()

    def checked(self) -> dict[str, Any]:
        """Return the state of the model to publish, after all checks; trained parameters are themselves."""
        # Hooks and methods of the model's run while its state is collected: bits are compared after that.
        state = self._state()
        trained, now = self._parted(state)
        self.compare()
        self.check_steps(wait=True)
        if set(state) != self._published or now.keys() != self._settled.keys():
            names = sorted((set(state) ^ self._published) | (now.keys() ^ self._settled.keys()))
            self._mark(state, names)
            raise _changed(names, "were added to the model's state or left it")
        moved = [name for name in now if now[name] != self._settled[name]]
        if moved or trained != self._trained:
            self._mark(state, moved or sorted(trained ^ self._trained))
            raise _changed(moved or sorted(trained ^ self._trained), "changed in training")
        return state

    def _mark(self, state: Mapping[str, Any], names: list[str]) -> None:
        """Note that the memory of these values may be private, so that no other run begins with it."""
        known = {**self._buffers(), **state}
        for value in (known.get(name) for name in names):
            if isinstance(value, Tensor):
                note_written(local(value))

    def _state(self) -> dict[str, Any]:
        model = resharded(self._model)
        with self._watched():
            return dict(model.state_dict(keep_vars=True))

    def _buffers(self) -> dict[str, Tensor]:
        with self._watched():
            return dict(self._model.named_buffers())

    def _parted(self, state: Mapping[str, Any]) -> tuple[set[str], dict[str, Form]]:
        """Return the names of trained parameters, and the form of all else, unpublished buffers included.

        A value of the state is a trained parameter, too, if it is the same memory in the same form.
        """
        places = {_place(parameter) for parameter in self._names} - {None}
        trained: set[str] = set()
        settled: dict[str, Form] = {}
        values = {**self._buffers(), **state}
        # Values of other types run code of their own, before bits of tensors are read.
        for name, value in sorted(values.items(), key=lambda pair: isinstance(pair[1], Tensor)):
            if isinstance(value, PrivateTensor):
                settled[name] = ("private examples",)
                continue
            check_class(name, value)
            if any(map(self._is_private, tensors_in(value))):
                settled[name] = ("private examples",)
            elif isinstance(value, Tensor) and (value in self._names or _place(value) in places):
                trained.add(name)
            else:
                settled[name] = self._form(value)
        return trained, settled

    def _form(self, value: Any) -> Form:
        if not isinstance(value, Tensor):
            with self._watched():
                content = _pickled(value)
            return ("a value", blake2b(content).hexdigest())
        prints = self._prints.of([local(value)])
        return (
            str(value.dtype),
            tuple(value.shape),
            *(number for one in prints.values() for number in one.tolist()),
        )

    def _now(self) -> tuple[list[Form], dict[torch.device, Tensor]]:
        """Return the forms of all that the optimizer moves, and fingerprints of weights and averages."""
        averages = () if self._average is None else self._average.tensors
        tensors = [*map(local, self._names), *averages]
        kept = [value for state in self._optimizer.state.values() for value in _members(state)]
        # What watches torch functions has nothing to see here.
        with torch._C.DisableTorchFunction():
            forms: list[Form] = [(tensor.dtype, tensor.shape, tensor.device) for tensor in tensors]
            forms += [(id(value), value._version) for value in kept if isinstance(value, Tensor)]
        return forms, self._prints.of(tensors)


def _members(state: Mapping[str, Any]) -> Iterator[Any]:
    """Give the values of an optimizer's state of one parameter, which may be lists of tensors."""
    for value in state.values():
        yield from value if isinstance(value, list | tuple) else (value,)


def _place(tensor: Tensor) -> Form | None:
    if is_sharded(tensor) or tensor.layout is not torch.strided or not tensor.numel():
        return None
    return tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:
        return repr(value).encode()


def _changed(names: list[str], how: str) -> NotSound:
    return NotSound(
        f"{' and '.join(names[:3])} {how}, and not by the optimizer: whether they follow private rows is not "
        "established, and they have no noise.",
        remedy="Use modules that keep nothing of what they see. Keep these in evaluation mode, as the "
        "vectors of spectral_norm, or register them before training.",
    )


def _rewritten() -> NotSound:
    return NotSound(
        "Trained parameters, their averages or the optimizer's state were changed between two steps of the "
        "optimizer: what was written there has no noise.",
        remedy="Leave weights to the optimizer. A change that depends on weights only, such as clamping, "
        "belongs in a hook: optimizer.register_step_post_hook(…).",
    )
