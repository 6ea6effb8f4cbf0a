"""The form of a row: its structure, and the shapes and types of its tensors.

A form is read once, from a declared row or from the first one, and is public. Every row is then walked along
the form, so that no container, key, shape or type of another row ever reaches a batch. Containers may be
dicts and what else is a mapping (such as Hugging Face's `BatchEncoding`), dataclasses, tuples, named tuples
and lists; leaves are tensors, arrays, numbers, lists of numbers (vectors) and None.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dalenius.errors import InvalidArgument
from dalenius.learn.data.padding import LABELS, Named, Pad, Padding, padded


class Unfit(ValueError):
    """A row is not of the form. It never leaves this package: the row is replaced."""


@dataclass(frozen=True)
class Leaf:
    """A tensor of a row, without a batch dimension.

    Args:
        shape: its public shape.
        dtype: its public type.
        device: where it is.
        pad: what it is padded or cut to; None where rows must have `shape` as they are.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    pad: Pad | None = None

    def fitted(self, value: Any, *, batched: bool) -> Tensor:
        """Return `value` as a tensor of this shape and type, or raise Unfit.

        Args:
            value: a leaf of a row.
            batched: whether the first dimension of `value` is a batch of one.
        """
        tensor = row_tensor(value, batched=batched)
        if tensor.dtype is self.dtype and tensor.shape == self.shape and tensor.device == self.device:
            return tensor
        if tensor.dim() != len(self.shape):
            raise Unfit
        if tensor.dtype != self.dtype:
            # A float is not rounded to an integer, nor an imaginary part dropped.
            if tensor.numel() and not torch.can_cast(tensor.dtype, self.dtype):
                raise Unfit
            tensor = tensor.to(self.dtype)
        tensor = tensor.to(self.device)
        if self.pad is not None:
            there = list(self.pad.sizes) + [None] * (tensor.dim() - len(self.pad.sizes))
            sizes = tuple(
                was if size is None else size for was, size in zip(tensor.shape, there, strict=True)
            )
            tensor = padded(tensor, sizes, self.pad.fill) if sizes == self.shape else tensor
        if tuple(tensor.shape) != self.shape:
            raise Unfit
        return tensor

    def blank(self) -> Tensor:
        """Return zeros."""
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


@dataclass(frozen=True)
class Branch:
    """A container of a row.

    Args:
        kind: its class, which batches have as well.
        keys: the names or positions of its entries.
        parts: the forms of its entries, in the order of `keys`.
    """

    kind: type[Any]
    keys: tuple[Any, ...]
    parts: tuple[Form, ...]

    def entries(self, value: Any) -> Sequence[Any]:
        """Return the entries of `value` in the order of `keys`; entries the form lacks are left out."""
        if issubclass(self.kind, tuple | list):
            if not isinstance(value, tuple | list) or len(value) != len(self.keys):
                raise Unfit
            return value
        if issubclass(self.kind, Mapping):
            return [value[key] for key in self.keys]
        return [getattr(value, key) for key in self.keys]

    def built(self, entries: list[Any]) -> Any:
        """Return a container of this kind, without a call of its own code: that would see a whole batch.

        Mappings are dicts, but for those that wrap one, such as BatchEncoding, which are made empty.
        """
        if issubclass(self.kind, tuple):
            return tuple.__new__(self.kind if hasattr(self.kind, "_fields") else tuple, entries)
        if issubclass(self.kind, list):
            return entries
        named = dict(zip(self.keys, entries, strict=True))
        if issubclass(self.kind, Mapping):
            return _wrapped(self.kind, named) if issubclass(self.kind, UserDict) else named
        record = object.__new__(self.kind)
        for field in fields(self.kind):
            value = named.get(field.name, field.default)
            if value is not MISSING:
                object.__setattr__(record, field.name, value)
        return record


def _wrapped(kind: type[Any], named: dict[Any, Any]) -> Any:
    try:
        container = kind({})
        container.data = named
    except Exception:
        # Made in another way: which class it is, is public.
        return named
    return container


Form = Leaf | Branch | None
"""The form of a row or of a part of a row; None stands for None."""


def read_form(value: Any, padding: Padding, *, batched: bool, path: str = "row", named: bool = True) -> Form:
    """Return the form of an example row, its tensors padded as `padding` says.

    Args:
        value: a row, or what collating it gave.
        padding: what `pad_to` says of it.
        batched: whether tensors have a batch dimension, of length one.
        path: what the value is called in errors.
        named: whether `padding` was given for this value by name, and not for a whole row.

    Raises:
        InvalidArgument: something in the row cannot be put into a batch, or `pad_to` does not match it.
    """
    entries = members(value)
    if entries is None:
        if isinstance(padding, Named) and padding.entries:
            raise InvalidArgument(
                f"pad_to names entries of {path}, which has none.",
                remedy="Pass a length in place of the dict.",
            )
        pad = padding if isinstance(padding, Pad) else None
        return None if value is None else _read_leaf(value, pad, batched=batched, path=path, named=named)
    own = _by_key(entries, padding, path)
    parts = tuple(
        read_form(
            entry,
            own[key],
            batched=batched,
            path=f"{path}[{key!r}]",
            named=isinstance(padding, Named),
        )
        for key, entry in entries
    )
    return Branch(type(value), tuple(key for key, _ in entries), parts)


def _by_key(entries: list[tuple[Any, Any]], padding: Padding, path: str) -> dict[Any, Padding]:
    """Return what `pad_to` says of each entry; fields of a named tuple may be given by position, too."""
    if not isinstance(padding, Named):
        return {key: padding for key, _ in entries}
    keys = [key for key, _ in entries]
    places = {key: key for key in keys} | {i: key for i, key in enumerate(keys) if i not in keys}
    unknown = [key for key in padding.entries if key not in places]
    if unknown:
        raise InvalidArgument(
            f"pad_to names {unknown[0]!r}, and {path} has {', '.join(map(repr, keys))}.",
            remedy="Name entries that rows have after collating, or leave the name out.",
        )
    return dict.fromkeys(keys) | {places[key]: spec for key, spec in padding.entries.items()}


def _read_leaf(value: Any, pad: Pad | None, *, batched: bool, path: str, named: bool) -> Leaf:
    try:
        tensor = row_tensor(value, batched=batched)
    except Exception:
        kind = type(value).__name__
        raise InvalidArgument(
            f"{path} is a {kind} that cannot be put into a batch of rows.",
            remedy="Give tensors, arrays, numbers or lists of numbers, "
            + ("each with a batch dimension of one first." if batched else "by a collate function, say."),
        ) from None
    there = tuple(tensor.shape)
    if pad is None or (not there and not named):
        return Leaf(there, tensor.dtype, tensor.device)
    if len(pad.sizes) > len(there):
        raise InvalidArgument(
            f"pad_to gives {path} {len(pad.sizes)} lengths; it has {len(there)} dimensions in a row.",
            remedy="Give one length for each dimension that differs between rows.",
        )
    if pad.value is None and path.endswith(f"[{LABELS!r}]"):
        length = pad.sizes[0] if len(pad.sizes) == 1 else pad.sizes
        raise InvalidArgument(
            f"What {path} is filled up with must be given: 0 is a class as any other.",
            remedy=f'Pass pad_to={{…, "labels": dp.learn.Pad({length}, value=-100)}} for labels that '
            "the loss ignores.",
        )
    _check_fill(pad, tensor.dtype, path)
    given = pad.sizes + (None,) * (len(there) - len(pad.sizes))
    sizes = tuple(was if size is None else size for was, size in zip(there, given, strict=True))
    return Leaf(sizes, tensor.dtype, tensor.device, pad)


def _check_fill(pad: Pad, dtype: torch.dtype, path: str) -> None:
    try:
        exact = float(torch.full((), pad.fill, dtype=dtype).item()) == pad.fill or dtype.is_floating_point
    except Exception:
        exact = dtype.is_complex
    if not exact:
        raise InvalidArgument(
            f"{path} is of type {dtype}, which has no {pad.fill:g}.",
            remedy="Pass a fill value that the type has.",
        )


def members(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the keys and entries of a container, or None for a leaf. A list of numbers is a leaf."""
    if isinstance(value, Mapping):
        return list(value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in fields(value) if field.init]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, tuple) or (isinstance(value, list) and not _is_vector(value)):
        return list(enumerate(value))
    return None


def _is_vector(value: Any) -> bool:
    """Say whether a list holds numbers, or such lists, and nothing else. An empty one is a vector."""
    return all(
        _is_vector(entry) if isinstance(entry, list) else isinstance(entry, int | float | complex | np.number)
        for entry in value
    )


def row_tensor(value: Any, *, batched: bool) -> Tensor:
    """Return a leaf of a row as a tensor without a batch dimension.

    Args:
        value: a tensor, an array, a number, or a list of numbers.
        batched: whether the first dimension, where there is one, is a batch of one.

    Raises:
        Exception: the value is not a leaf, or its batch is not of one.
    """
    if type(value) is Tensor and not value.requires_grad:
        tensor = value
    elif isinstance(value, Tensor):
        tensor = value.detach().as_subclass(Tensor)
    elif isinstance(value, float):
        tensor = torch.tensor(value, dtype=torch.float64)
    elif isinstance(value, bool | int | complex) or (isinstance(value, list) and _is_vector(value)):
        tensor = torch.tensor(value)
    elif hasattr(value, "__array__"):
        # Copied: torch warns of arrays that cannot be written to.
        tensor = torch.from_numpy(np.asarray(value).copy())
    else:
        raise Unfit
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        raise Unfit
    if batched and tensor.dim():
        if tensor.shape[0] != 1:
            raise Unfit
        return tensor[0]
    return tensor


def leaves_of(form: Form, value: Any, *, batched: bool) -> list[Tensor]:
    """Return the tensors of a row in the order of its form, or raise where the row is not of that form.

    Args:
        form: the form.
        value: a row, or what collating it gave.
        batched: whether its tensors have a batch dimension, of length one.
    """
    if isinstance(form, Leaf):
        return [form.fitted(value, batched=batched)]
    leaves: list[Tensor] = []
    if isinstance(form, Branch):
        for part, entry in zip(form.parts, form.entries(value), strict=True):
            leaves += leaves_of(part, entry, batched=batched)
    return leaves


def blank_leaves(form: Form) -> list[Tensor]:
    """Return the tensors of a row of zeros."""
    if isinstance(form, Leaf):
        return [form.blank()]
    return [] if form is None else [leaf for part in form.parts for leaf in blank_leaves(part)]


def rebuilt(form: Form, leaves: Iterator[Any]) -> Any:
    """Return containers of the form around `leaves`, which are as many as the form has."""
    if isinstance(form, Leaf):
        return next(leaves)
    return None if form is None else form.built([rebuilt(part, leaves) for part in form.parts])
