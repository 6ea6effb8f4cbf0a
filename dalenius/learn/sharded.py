"""Parameters of which each process holds a shard, as `torch.distributed.fsdp.fully_shard` makes them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, distributed, nn

from dalenius.errors import NotSound
from dalenius.learn.several import Processes


def is_sharded(tensor: Any) -> bool:
    """Whether it is a DTensor."""
    return hasattr(type(tensor), "device_mesh")


def resharded(model: nn.Module) -> nn.Module:
    """With shards for parameters, also for those that a forward pass left whole."""
    modules: list[Any] = [one for one in model.modules() if hasattr(one, "_get_fsdp_state")]
    for one in modules:
        one.reshard()
    return model


def local(tensor: Any) -> Tensor:
    """What is here of it."""
    return tensor.to_local() if is_sharded(tensor) else tensor


def cut(parameter: Any, processes: Processes) -> tuple[int, ...]:
    """How many of its numbers each process has, which lie one after the other."""
    mesh, group = parameter.device_mesh, processes.group or distributed.group.WORLD
    ranks = distributed.get_process_group_ranks(group)
    if mesh.mesh.tolist() != ranks or not parameter.placements[0].is_shard(0):
        raise NotSound(
            "Parameters are sharded in a way that is not known here.",
            remedy="Call fully_shard(model) on the whole group of the run, by the first dimension.",
        )
    rows, row = parameter.shape[0], parameter.numel() // max(1, parameter.shape[0])
    part = -(-rows // processes.count)
    return tuple(row * max(0, min(part, rows - part * rank)) for rank in range(processes.count))


def shard_like(own: Tensor, parameter: Any) -> Tensor:
    """Numbers of this process as a shard of what is like the parameter, if that has shards."""
    if not is_sharded(parameter):
        return own
    from torch.distributed.tensor import DTensor

    held = local(parameter)
    return DTensor.from_local(
        own.view(held.shape),
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )


def whole(state: Any) -> Any:
    """A state with all of its tensors whole: all processes call it."""
    if type(state) in (dict, OrderedDict):
        return {key: whole(one) for key, one in state.items()}
    if type(state) in (list, tuple):
        return type(state)(map(whole, state))
    return state.full_tensor().cpu() if is_sharded(state) else state


def placed_all(state: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """What is whole, in shards where its place has shards."""
    return {name: placed(one, like.get(name)) for name, one in state.items()}


def placed_for(state: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The same for the state of an optimizer, of which tensors as large as a parameter lie as it does."""
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    kept = {
        number: {key: placed(one, parameters[number]) for key, one in own.items()}
        for number, own in state["state"].items()
    }
    return {**state, "state": kept}


def placed(value: Any, like: Any) -> Any:
    """A tensor that is whole, as a shard where it is to be like one."""
    if not is_sharded(like) or not isinstance(value, Tensor) or value.shape != like.shape:
        return value
    rows = value.chunk(like.device_mesh.size())
    rank = like.device_mesh.get_local_rank()
    own = rows[rank] if rank < len(rows) else value[:0]
    return shard_like(own.to(local(like).device).contiguous().view(-1), like)
