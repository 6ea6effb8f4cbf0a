"""Trained weights to be published, with their receipt, in one file that runs nothing when it is read.

The file is of the safetensors format: the tensors of the model's state, and texts, among them the receipt.
Of tensors that share their memory the first is written; `safetensors.torch.load_model` ties them again.

What may be in that state is checked before (`released_state`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dalenius.errors import InvalidArgument
from dalenius.learn import tensor_file
from dalenius.release.receipt import Receipt

RECEIPT, STEPS = "receipt", "steps"
"""Names of texts in the file."""


def write_weights(
    path: str | os.PathLike[str], state: Mapping[str, Any], receipt: Receipt, *, steps: str
) -> None:
    """Replace the file, whole or not at all."""
    target = writable(path)
    tensors, tied = _apart(state)
    stated = {"format": "pt", RECEIPT: json.dumps(receipt.plain()), STEPS: steps}
    half = target.with_name(target.name + ".new")
    try:
        _save(tensors, half, {**tied, **stated})
        os.replace(half, target)
    finally:
        half.unlink(missing_ok=True)


def writable(path: str | os.PathLike[str]) -> Path:
    """Return a path to write a file to, after a check that its folder is there.

    Raises:
        InvalidArgument: It is no path, it is a folder, or its folder is not there.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument("The path is not a text or a Path.", remedy='Pass such as "model.safetensors".')
    target = Path(path)
    if target.is_dir() or not target.name:
        raise InvalidArgument(
            f"{target} is a folder.", remedy="Pass the name of a file in it, such as model.safetensors."
        )
    if not target.parent.is_dir():
        raise InvalidArgument(
            f"There is no folder {target.parent} to write {target.name} to.",
            remedy="Make the folder first: Path(…).mkdir(parents=True).",
        )
    return target


def read_receipt(path: str | os.PathLike[str]) -> Receipt:
    """The receipt of exported weights."""
    try:
        return Receipt.read(**json.loads(tensor_file.texts(path)[RECEIPT]))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InvalidArgument(
            f"{Path(path).name} is not there or has no receipt.",
            remedy="Pass a file that private.export wrote.",
        ) from None


def _apart(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors that share no memory, and for names that were left out the names that have theirs."""
    tensors: dict[str, Tensor] = {}
    tied: dict[str, str] = {}
    seen: dict[tuple[object, ...], str] = {}
    for name, one in state.items():
        if not isinstance(one, Tensor):
            raise InvalidArgument(
                f"{name} of the model's state is no tensor.", remedy="Use modules without extra state."
            )
        place = (one.device, one.data_ptr(), one.shape, one.stride(), one.dtype)
        if one.numel() and place in seen:
            tied[name] = seen[place]
            continue
        seen[place] = name
        tensors[name] = one.detach().cpu().clone(memory_format=torch.contiguous_format)
    return tensors, tied


def _save(tensors: dict[str, Tensor], path: Path, texts: dict[str, str]) -> None:
    """By the package where there is one."""
    try:
        from safetensors.torch import save_file
    except ImportError:
        tensor_file.write(path, tensors, texts)
    else:
        save_file(tensors, path, metadata=texts)
