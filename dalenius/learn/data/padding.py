"""`Pad`, and `pad_to`: the public lengths that the tensors of every row are padded or cut to.

    pad_to=128                                    the first dimension of every tensor of a row
    pad_to={"input_ids": 128, "labels": Pad(128, value=-100)}
                                                  by key; tensors that are not named keep their size
    pad_to={0: (128, 80)}                         by position in a tuple; two dimensions of one tensor
    pad_to={}                                     nothing is padded: all rows have the same shapes

A batch that is padded to its longest row tells how long that row is, and changes what the model computes for
all others. Lengths are therefore parameters of the run, and are never read from the data.

Tensors are filled up, and cut, at the end of a dimension. The fill value is 0 unless a `Pad` says otherwise.
A tensor called "labels" has no default: 0 is a class like any other, so its fill value has to be given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers

Sizes = tuple[int | None, ...]
LABELS = "labels"
"""The key of tensors whose fill value has to be given."""
REMEDY = 'Pass pad_to=128, pad_to={"input_ids": 128, "labels": dp.learn.Pad(128, value=-100)}, or pad_to={}.'


@dataclass(frozen=True)
class Pad:
    """A public size of the tensors of a row.

    >>> Pad(128, value=-100).sizes
    (128,)

    Args:
        length: the length of the first dimension of a row's tensor, or a tuple of lengths of its leading
            dimensions, in which None leaves a dimension as it is.
        value: what is written where a row is shorter. Default: 0, except for a tensor called "labels", for
            which it must be given.
    """

    length: int | Sizes
    value: float | None = None

    def __post_init__(self) -> None:
        lengths = self.length if isinstance(self.length, tuple | list) else (self.length,)
        checked = tuple(None if size is None else numbers.count(size, "pad_to") for size in lengths)
        object.__setattr__(self, "length", checked)
        if not checked:
            raise InvalidArgument(
                "A Pad without a length pads nothing.", remedy="Pass a length, or pad_to={}."
            )
        if self.value is not None and not isinstance(self.value, int | float):
            raise InvalidArgument("The fill value of a Pad must be a number.", remedy="Pass value=-100.")

    @property
    def sizes(self) -> Sizes:
        """The lengths of the leading dimensions; None where a dimension stays as it is."""
        assert isinstance(self.length, tuple)
        return self.length

    @property
    def fill(self) -> float:
        """The fill value."""
        return 0 if self.value is None else self.value


@dataclass(frozen=True)
class Named:
    """What `pad_to` says of the entries of a dict or tuple, by key or position."""

    entries: Mapping[Any, Padding]


Padding = Pad | Named | None
"""What `pad_to` says of a row or of a part of a row; None leaves the part as it is."""


def read_padding(pad_to: Any) -> Padding:
    """Return what `pad_to` says.

    Args:
        pad_to: an int, a tuple of ints, a `Pad`, or a dict of these by key or position, which may be nested.

    Raises:
        InvalidArgument: `pad_to` is none of these.
    """
    if pad_to is None or isinstance(pad_to, Pad):
        return pad_to
    if isinstance(pad_to, Mapping):
        if not all(isinstance(key, str | int) for key in pad_to):
            raise InvalidArgument("Keys of pad_to must be names or positions.", remedy=REMEDY)
        return Named({key: read_padding(value) for key, value in pad_to.items()})
    if isinstance(pad_to, bool) or not isinstance(pad_to, int | tuple):
        raise InvalidArgument("pad_to must be a length, or a dict of lengths.", remedy=REMEDY)
    return Pad(pad_to)


def padded(tensor: Tensor, sizes: tuple[int, ...], fill: float) -> Tensor:
    """Return `tensor` cut or filled up, at the end of each dimension, to `sizes`.

    Args:
        tensor: a tensor with as many dimensions as there are sizes.
        sizes: the shape of the result.
        fill: what is written where `tensor` is too short.
    """
    if tuple(tensor.shape) == sizes:
        return tensor
    kept = tuple(slice(min(there, size)) for there, size in zip(tensor.shape, sizes, strict=True))
    result = tensor.new_full(sizes, fill)
    result[kept] = tensor[kept]
    return result
