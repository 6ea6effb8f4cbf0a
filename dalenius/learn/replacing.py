"""Modules that mix examples: refused by name, or replaced on request.

BatchNorm normalizes every example by all of its batch. GroupNorm over the same channels is what takes its
place (Wu and He 2018); `replaced` puts it there, with as many groups as divide the channels, 32 at most.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from dalenius.errors import InvalidArgument, NotSound

GROUPS = 32


def mixing(model: nn.Module) -> list[tuple[str, Any]]:
    """Modules that let one example change what another one gets."""
    return [
        (name, module)
        for name, module in model.named_modules()
        if module.training
        and (isinstance(module, _BatchNorm) or getattr(module, "track_running_stats", False))
    ]


def check_modules(model: nn.Module) -> None:
    """Refuse a model with such a module."""
    if not isinstance(model, nn.Module):
        raise InvalidArgument("model must be a torch module.", remedy="Pass a torch.nn.Module.")
    found = mixing(model)
    if found:
        name, module = found[0]
        raise NotSound(
            f"{name} is a {type(module).__name__}, which normalizes every example by all of its batch.",
            remedy="Use dp.learn.replaced(model), which puts GroupNorm in its place, or freeze it by eval().",
        )


def replaced(model: nn.Module) -> nn.Module:
    """A copy of the model with GroupNorm where BatchNorm was."""
    model = copy.deepcopy(model)
    for name, module in mixing(model):
        model.set_submodule(name, _instead(module))
    return model


def _instead(module: Any) -> nn.Module:
    channels, affine = int(module.num_features), bool(module.affine)
    groups = math.gcd(GROUPS, channels) if isinstance(module, _BatchNorm) else channels
    new = nn.GroupNorm(groups, channels, eps=float(module.eps), affine=affine)
    if affine:
        new.load_state_dict(
            {key: one for key, one in module.state_dict().items() if key in ("weight", "bias")}
        )
    return new
