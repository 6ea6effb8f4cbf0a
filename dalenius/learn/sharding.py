"""`Shards`: a model that `torch.distributed.fsdp.fully_shard` was called on, as the tape sees it.

Between passes such a model has shards for parameters. Before the forward pass of each of its modules a hook
puts parameters in their place that are whole, and gives the inputs that need gradients new tensors, which
have no marks. Here hooks around that one keep the tape from watching it, put the marks back, and tell the
tape which parameters have appeared, and whose they are. Rules give no gradients to parameters, so that there
is nothing to be reduced on the way back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.marks import marks, put_marks, tensors_in
from dalenius.learn.parts import Part
from dalenius.learn.sharded import is_sharded
from dalenius.learn.tape import Tape


class Shards:
    """What shards are of, once their parameters were whole for the first time."""

    def __init__(self, model: nn.Module, names: Mapping[Tensor, str], tape: Tape) -> None:
        from torch.distributed.fsdp import FSDPModule

        self._tape, self._names = tape, names
        self._modules: list[Any] = [one for one in model.modules() if isinstance(one, FSDPModule)]
        self._owners: dict[Tensor, Tensor] = {}
        self._seen: set[Tensor] = set()
        self._marks: list[dict[str, Any]] = []
        self._plain = {one: name for one, name in names.items() if not is_sharded(one)}
        tape.know(self._plain)
        for module in self._modules:
            module.register_forward_pre_hook(self._before, prepend=True, with_kwargs=True)
            module.register_forward_pre_hook(self._appeared, with_kwargs=True)
            module.register_forward_hook(self._leaving, prepend=True)
            module.register_forward_hook(self._left)
        for one in (one for module in self._modules for one in _held(module)):
            _check(one)

    @classmethod
    def of(cls, model: nn.Module, names: Mapping[Tensor, str], tape: Tape) -> Shards | None:
        """Of a model that has any."""
        return cls(model, names, tape) if any(map(is_sharded, names)) else None

    # Around the hooks of the modules.

    def _pause(self, given: Any) -> None:
        self._marks = [marks(one) for one in tensors_in(given)]
        self._tape.paused = True

    def _go_on(self, given: Any) -> None:
        for one, known in zip(tensors_in(given), self._marks, strict=True):
            put_marks(one, known)
        self._tape.paused, self._marks = False, []

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._pause((args, kwargs))

    def _appeared(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._go_on((args, kwargs))
        new = {one._unsharded_param: one.sharded_param for one in _held(module)}
        if not new.keys() <= self._seen:
            self._seen |= new.keys()
            self._owners |= {whole: shard for whole, shard in new.items() if shard in self._names}
            known = {whole: self._names[shard] for whole, shard in self._owners.items()}
            self._tape.know({**self._plain, **known})

    def _leaving(self, module: nn.Module, args: Any, result: Any) -> None:
        self._pause(result)

    def _left(self, module: nn.Module, args: Any, result: Any) -> None:
        self._go_on(result)

    # After a backward pass.

    def strays(self) -> list[str]:
        """Names of parameters that got gradients which are not reduced yet."""
        held = (one for module in self._modules for one in _held(module))
        return [
            self._names[one.sharded_param]
            for one in held
            if one.sharded_param in self._names
            and (_gradient(one) is not None or one.unsharded_accumulated_grad is not None)
        ]

    def parts(self) -> dict[Tensor, Part]:
        """All that is on the tape, by shard; what is derived needs parameters whole once more.

        Nothing stays whole: parameters are about to move.
        """
        for module in self._modules if self._tape.derives else ():
            module.unshard()
        try:
            return self._owned(self._tape.parts())
        finally:
            for module in self._modules:
                module.reshard()

    def _owned(self, parts: Mapping[Tensor, Part]) -> dict[Tensor, Part]:
        return {self._owners.get(one, one): part for one, part in parts.items()}


def _held(module: Any) -> Iterator[Any]:
    """What torch keeps of each parameter of a module."""
    state = module._get_fsdp_state()
    groups = getattr(state, "_fsdp_param_groups", None)
    for group in [state._fsdp_param_group] if groups is None else groups:
        yield from () if group is None else group.fsdp_params


def _gradient(held: Any) -> Tensor | None:
    whole = getattr(held, "_unsharded_param", None)
    return None if whole is None else whole.grad


def _check(held: Any) -> None:
    if held.offload_to_cpu or held.mp_policy.param_dtype is not None:
        raise NotSound(
            "Shards that lie elsewhere, or are whole in another precision, are not known here.",
            remedy="Call fully_shard without an offload policy and without param_dtype; "
            "for half precision use torch.autocast.",
        )
