"""Rows of a file or folder: an npz of arrays, a Parquet table, or a folder of images for each class."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.report.study.columns import Ends, read_parquet
from dalenius.report.study.data import Data, labelled
from dalenius.report.study.images import SIZE, read_images

CHANNELS = (1, 3, 4)
"""How many colors an image may have."""
UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    AttributeError,
    TypeError,
    RuntimeError,
    BadZipFile,
    zlib.error,
)
"""What numpy and zip files raise for a file that is no .npz."""


def read(
    path: str | Path,
    *,
    label: str | None = None,
    group: str | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    ranges: Mapping[str, Ends] | None = None,
    size: int = SIZE,
) -> Data:
    """The rows of an .npz (x, y, perhaps group), a .parquet file, or a folder with a folder for each class.

    `label` and `group` name columns or arrays; `features` and `ranges` are for Parquet, `size` for images.
    """
    place = Path(path)
    if not place.exists():
        raise InvalidArgument(f"There is no file or folder {place}.", remedy="Check the path.")
    if place.is_dir():
        _nothing(place, label=label, group=group, features=features, ranges=ranges, groups=groups)
        return read_images(place, classes=classes, size=size)
    if place.suffix.lower() == ".parquet":
        return read_parquet(
            place,
            label=label,
            group=group,
            features=features,
            classes=classes,
            groups=groups,
            ranges=ranges or {},
        )
    if place.suffix.lower() == ".npz":
        _nothing(place, features=features, ranges=ranges)
        return _read_npz(place, label or "y", group, classes, groups)
    raise InvalidArgument(
        f"{place} is no .npz, no .parquet and no folder.",
        remedy="Pass an .npz with x and y, a .parquet file, or a folder of images for each class.",
    )


def _nothing(place: Path, **given: object) -> None:
    for name, value in given.items():
        if value:
            raise InvalidArgument(f"{name} means nothing for {place}.", remedy=f"Leave {name} out.")


def _read_npz(
    place: Path, label: str, group: str | None, classes: Sequence[str] | None, groups: Sequence[str] | None
) -> Data:
    arrays = _arrays(place, ("x", label, group or "group"))
    for name in ("x", label, *([] if group is None else [group])):
        if name not in arrays:
            raise InvalidArgument(
                f"{place} has no array {name!r}.",
                remedy="Write np.savez(path, x=features, y=labels), or name the array of labels as label.",
            )
    x, y, whose = arrays["x"], arrays[label], arrays.get(group or "group")
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3, 4):
        raise InvalidArgument(
            "x must be an array of numbers: rows of features, or images.",
            remedy="Save x as an array of two dimensions, or of three or four for images.",
        )
    if 0 in x.shape[1:]:
        raise InvalidArgument("The rows of x hold nothing.", remedy="Save x with a feature or more.")
    for name, one in ((label, y), (group or "group", whose)):
        if one is not None and one.shape != (len(x),):
            raise InvalidArgument(
                f"{name} must have one entry for each row of x.", remedy=f"Save {name} with len(x) entries."
            )
    return labelled(place.name, _pictured(x), y, whose, classes=classes, groups=groups)


def _arrays(place: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    try:
        with place.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            found = {name: file[name] for name in names if name in file.files}
    except UNREADABLE:
        found = None
    # What is in a zip and no array is handed out as bytes.
    if found is None or not all(isinstance(one, np.ndarray) for one in found.values()):
        raise InvalidArgument(
            f"{place} cannot be read as arrays.",
            remedy="Write it with np.savez(path, x=features, y=labels); arrays of objects are not read.",
        )
    return found


def _pictured(x: NDArray[Any]) -> NDArray[np.float64]:
    """Bytes as shares of 255; images with their colors first."""
    found = np.asarray(x, dtype=np.float64) / (255 if x.dtype == np.uint8 else 1)
    if found.ndim == 3:
        return found[:, None]
    if found.ndim == 4 and found.shape[1] not in CHANNELS and found.shape[3] in CHANNELS:
        return np.moveaxis(found, 3, 1)
    return found
