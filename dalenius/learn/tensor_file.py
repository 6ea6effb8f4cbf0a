"""The safetensors format, for machines without the package: tensors and texts in one file.

Eight bytes say how long the header is. The header is JSON and says of each tensor its kind, its shape and
where its bytes are among those that follow, in the order of its entries, the least byte first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dalenius.errors import MissingExtra

KINDS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
"""Types of torch by the format's names for them."""
MOST = 100_000_000
"""Bytes of a header, at most."""


def write(path: Path, tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> None:
    """Contiguous tensors of the processor, those of wider entries first, so that all are aligned."""
    ordered = sorted(tensors.items(), key=lambda named: (-named[1].element_size(), named[0]))
    header: dict[str, Any] = {"__metadata__": dict(texts)}
    end = 0
    for name, one in ordered:
        start, end = end, end + one.nbytes
        header[name] = {"dtype": _kind(one), "shape": list(one.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, one in ordered:
            if one.numel():
                file.write(one.reshape(-1).view(torch.uint8).numpy().data)


def _kind(one: Tensor) -> str:
    name = str(one.dtype).removeprefix("torch.")
    if name not in KINDS:
        raise MissingExtra(
            f"Tensors of {name} are exported by safetensors only.",
            remedy="Run: pip install 'dalenius[learn]'",
        )
    return KINDS[name]


def texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """Those in a file; none where it is not of this format."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            text = file.read(size) if 2 <= size <= MOST else b""
            header = json.loads(text) if len(text) == size else {}
    except (OSError, ValueError, RecursionError):
        return {}
    found = header.get("__metadata__") if isinstance(header, dict) else None
    return found if isinstance(found, dict) else {}
