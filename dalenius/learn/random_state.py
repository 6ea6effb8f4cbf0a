"""The state of torch's random generators in a private pass.

How far a generator has moved on tells how many examples there were, and a state that is put back, or a seed
that is set, would give several examples the same numbers, or known ones. In a watched loop states and seeds
are therefore private values, and every draw for a batch is checked to come from the seed of the run: not from
one that the loop has set, be it the same number (`is_own`). While the loss of one example runs, states and
seeds can neither be read nor set.

The generator of the processor is replaced by one that stands for it. Those of GPUs are reached by functions
of `torch.cuda`, which are replaced by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import PrivateNumber
from dalenius.learn.dataflow.provenance import user_line

_random: Any = torch.random
_REAL: Any = torch._C.default_generator
_GPU_MODULES: tuple[Any, ...] = torch.cuda, torch.cuda.random
_SETTING = "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all"
_READING = "get_rng_state", "get_rng_state_all", "initial_seed"
CPU, GPU = "cpu", "cuda"
_OWNED = "_dalenius_owned"
_owned = {CPU: True, GPU: True}
"""Whether the last seed of the generators of a kind was set by a run."""


def own_seed() -> None:
    """Note that a run has just seeded all generators."""
    _owned[CPU] = _owned[GPU] = True


def is_own() -> bool:
    """Return whether the generators in use have the seed that a run has given them."""
    return _owned[CPU] and (_owned[GPU] or not torch.cuda.is_initialized())


def run_seed() -> int:
    """Return the seed of the generator of the processor, in a watched loop as well."""
    return int(_REAL.initial_seed())


def check_own() -> None:
    """Refuse random numbers for a batch from a seed that the loop has set."""
    if not is_own():
        raise NotSound(
            f"Random numbers for the batch are drawn{user_line()} from a seed that the loop has set: which "
            "number an example gets would depend on how many others are in the batch, and be known to "
            "whoever knows the seed.",
            remedy="Leave out torch.manual_seed around what is computed from the batch: the key of the run "
            "seeds every step.",
        )


def states() -> list[Tensor]:
    """Return the states of all generators in use."""
    with torch._C.DisableTorchFunction():
        drawn = [_REAL.get_state()]
        if torch.cuda.is_initialized():
            drawn += [generator.get_state() for generator in torch.cuda.default_generators]
        return drawn


def have_drawn(before: list[Tensor]) -> bool:
    """Return whether any generator has moved on since `states` returned `before`."""
    with torch._C.DisableTorchFunction():
        after = states()
        return len(after) != len(before) or not all(map(torch.equal, before, after))


_outside: list[list[Tensor]] = []
"""For each watched loop that is open, the states of generators before the first of them."""


@contextmanager
def kept_outside() -> Iterator[None]:
    """Put generators back where they were, once the last watched loop of the process has ended.

    They have the secret seed of a run then, and how far they have gone tells how many examples there were.
    Where the loop has set a seed of its own since the last step, they are left alone: no example has drawn
    from it.
    """
    _outside.append(_outside[0] if _outside else states())
    try:
        yield
    finally:
        before = _outside.pop()
        if not _outside:
            _put_back(before)


def _put_back(before: list[Tensor]) -> None:
    """Set the states of the generators that run on the seed of a run."""
    with torch._C.DisableTorchFunction():
        if _owned[CPU]:
            _REAL.set_state(before[0])
        if not _owned[GPU] or not torch.cuda.is_initialized():
            return
        for number, generator in enumerate(torch.cuda.default_generators):
            if number + 1 < len(before):
                generator.set_state(before[number + 1])
            else:
                # It was first used in the loop.
                generator.seed()


class _Watched(torch.Generator):
    """Stands for torch's generator, and hands its state and seed out as private values.

    Args:
        real: torch's generator.
        watch: What is done with states and seeds.
    """

    real: torch.Generator
    watch: _Watch

    def get_state(self) -> Tensor:
        """Return the state, as a private tensor."""
        return self.watch.handed_out(self.real.get_state(), CPU)

    def set_state(self, new_state: Tensor) -> torch.Generator:
        """Set the state."""
        self.watch.restore(new_state, CPU)
        return self.real.set_state(new_state)

    def manual_seed(self, seed: int) -> torch.Generator:
        """Begin anew from a seed."""
        self.watch.seed(CPU)
        return self.real.manual_seed(seed)

    def seed(self) -> int:
        """Begin anew from a seed of the operating system's."""
        self.watch.seed(CPU)
        return self.real.seed()

    def initial_seed(self) -> int:
        """Return the seed, as a private number while it is that of a run."""
        return self.watch.secret(self.real.initial_seed(), CPU)


class _Closed(_Watched):
    """Stands for torch's generator where no state or seed may be read or set."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("get_state", "set_state", "manual_seed", "seed", "initial_seed"):
            return _refuse
        return super().__getattribute__(name)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotSound(
        f"The loss of one example reads or sets the seed or state of a random generator{user_line()}: which "
        " numbers an example gets would depend on the examples before it.",
        remedy="Leave seeds to the run, whose key seeds every step.",
    )


class _Watch:
    """What a watched loop does with states and seeds of generators.

    Args:
        mark: Notes that a tensor is private.
        check: Refuses a state that must not be put back.
        active: Returns whether the loop's own code is running, and not that of the run.
    """

    def __init__(
        self, mark: Callable[[Tensor], None], check: Callable[[Tensor], None], active: Callable[[], bool]
    ) -> None:
        self._mark, self._check, self._active = mark, check, active

    def handed_out(self, state: Tensor, kind: str) -> Tensor:
        """Return the state of a generator, as a private tensor in a loop."""
        if self._active():
            self._mark(state)
            setattr(state, _OWNED, _owned[kind])
        return state

    def restore(self, state: Tensor, kind: str) -> None:
        """Refuse a state that must not be put back; with one that was handed out, its seed is back, too."""
        if self._active():
            self._check(state)
            _owned[kind] = getattr(state, _OWNED, False)

    def seed(self, kind: str) -> None:
        """Note that the loop seeds generators."""
        if self._active():
            _owned[kind] = False

    def secret(self, seed: int, kind: str) -> Any:
        """Return a seed, as a private number where it is that of a run and its loop asks."""
        return PrivateNumber(seed, "initial_seed()") if self._active() and _owned[kind] else seed


class _GpuFunction:
    """Takes the place of a function of `torch.cuda`; made for every pass, and so without more than it needs.

    Args:
        name: The name of the function.
        function: The function.
        watch: What is done with states and seeds.
    """

    __slots__ = ("_function", "_name", "_watch")

    def __init__(self, name: str, function: Callable[..., Any], watch: _Watch) -> None:
        self._name, self._function, self._watch = name, function, watch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and see to the states and seeds that it takes and returns."""
        name, watch = self._name, self._watch
        if name.startswith("set_"):
            given = (*args, *kwargs.values())[:1]
            for state in given[0] if given and isinstance(given[0], list | tuple) else given:
                watch.restore(state, GPU)
        elif name in _SETTING:
            watch.seed(GPU)
        result = self._function(*args, **kwargs)
        if name == "initial_seed":
            return watch.secret(result, GPU)
        for state in result if isinstance(result, list) else [result]:
            if isinstance(state, Tensor):
                watch.handed_out(state, GPU)
        return result


class _ClosedFunction(_GpuFunction):
    """Takes the place of a function of `torch.cuda` where no state or seed may be read or set."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        _refuse()


@contextmanager
def watched_generator(
    mark: Callable[[Tensor], None], check: Callable[[Tensor], None], active: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Hand states and seeds of torch's generators out as private values inside.

    Args:
        mark: Notes that a tensor is private.
        check: Refuses a state that must not be put back.
        active: Returns whether the loop's own code is running, and not that of the run.
    """
    watch = _Watch(mark, check, active)
    with _standing_in(_Watched, _GpuFunction, watch):
        yield


@contextmanager
def closed_generator() -> Iterator[None]:
    """Refuse to read or set states and seeds of torch's generators inside."""
    watch = _Watch(lambda _: None, lambda _: None, lambda: False)
    with _standing_in(_Closed, _ClosedFunction, watch):
        yield


@contextmanager
def _standing_in(kind: type[_Watched], gpu: type[_GpuFunction], watch: _Watch) -> Iterator[None]:
    before = torch.default_generator
    stand_in = kind()
    stand_in.real, stand_in.watch = _REAL, watch
    functions = [
        (module, name, getattr(module, name)) for module in _GPU_MODULES for name in (*_SETTING, *_READING)
    ]
    _random.default_generator = torch.default_generator = stand_in
    for module, name, function in functions:
        setattr(module, name, gpu(name, function, watch))
    try:
        yield
    finally:
        _random.default_generator = torch.default_generator = before
        for module, name, function in functions:
            setattr(module, name, function)
