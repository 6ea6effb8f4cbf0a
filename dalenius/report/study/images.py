"""Rows from a folder that has a folder of images for each class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.privacy import numbers
from dalenius.report.study.data import Data, labelled, spelled, stated_names

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

WHITE = 2**16 - 1
"""Of an image with sixteen bits a point."""
SIZE = 32
"""Images are made so many points wide and high."""
ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def read_images(place: Path, *, classes: Sequence[str] | None, size: int) -> Data:
    """Images in three colors, of one size. Where classes are stated, one that cannot be read is black.

    Sixteen bits of grey, as X-rays have, are mapped as a whole to eight.
    """
    stated = None if classes is None else stated_names(classes, "classes")
    side = numbers.count(size, "size", least=4, most=1024)
    found = [one.name for one in sorted(place.iterdir()) if one.is_dir() and one.name[:1] != "."]
    if classes is None and len(found) < 2:
        raise InvalidArgument(
            f"{place} does not have a folder of images for each class.",
            remedy="Put the images of each class into a folder of its own.",
        )
    rows, labels = [], []
    for name in found:
        if stated is None or spelled(name) in stated:
            for file in sorted((place / name).iterdir()):
                if file.suffix.lower() in ENDINGS and file.is_file():
                    rows.append(_read(file, side, forgiving=classes is not None))
                    labels.append(name)
    x = np.stack(rows) if rows else np.zeros((0, 3, side, side))
    if classes is None and not rows:
        raise InvalidArgument(
            f"There are no images in the folders of {place}.",
            remedy="Put images such as .png or .jpg right into the folder of each class, not deeper.",
        )
    return labelled(place.name, x, labels, None, classes=classes, groups=None)


def _read(file: Path, side: int, *, forgiving: bool) -> NDArray[np.float64]:
    try:
        from PIL import Image
    except ImportError as absent:
        raise MissingExtra(
            "Reading images needs Pillow, which comes with matplotlib.",
            remedy="Run: pip install 'dalenius[plot]'",
        ) from absent
    try:
        with warnings.catch_warnings(), Image.open(file) as image:
            # What is odd about one image is not to be told of it alone.
            warnings.simplefilter("ignore")
            small = _colors(image).resize((side, side))
        return np.moveaxis(np.asarray(small, dtype=np.float64) / 255, 2, 0)
    except Exception:
        if forgiving:
            return np.zeros((3, side, side))
        raise InvalidArgument(
            f"{file} cannot be read as an image.", remedy="Take it out, or save it with 8 or 16 bits a point."
        ) from None


def _colors(image: Picture) -> Picture:
    """The image in three colors of eight bits."""
    from PIL.Image import fromarray

    if image.mode == "F":
        raise ValueError("Nobody says what is white.")
    if image.mode.startswith("I"):
        grey = np.clip(np.asarray(image, dtype=np.float64), 0, WHITE) * (255 / WHITE)
        return fromarray(grey.astype(np.uint8)).convert("RGB")
    return image.convert("RGB")
