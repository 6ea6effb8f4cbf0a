"""Rows from a folder that has a folder of images for each class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.privacy import numbers
from dalenius.report.study.data import Data, labelled

SIZE = 32
"""Images are made so many points wide and high."""
ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def read_images(place: Path, *, classes: Sequence[str] | None, size: int) -> Data:
    """Images in three colors, of one size. Where classes are stated, one that cannot be read is black."""
    side = numbers.count(size, "size", least=4, most=1024)
    found = [one.name for one in sorted(place.iterdir()) if one.is_dir() and one.name[:1] != "."]
    if classes is None and len(found) < 2:
        raise InvalidArgument(
            f"{place} does not have a folder of images for each class.",
            remedy="Put the images of each class into a folder of its own.",
        )
    rows, labels = [], []
    for name in found:
        if classes is None or name in classes:
            for file in sorted((place / name).iterdir()):
                if file.suffix.lower() in ENDINGS:
                    rows.append(_read(file, side, forgiving=classes is not None))
                    labels.append(name)
    x = np.stack(rows) if rows else np.zeros((0, 3, side, side))
    if classes is None and not rows:
        raise InvalidArgument(
            f"There are no images in the folders of {place}.", remedy="Pass images such as .png or .jpg."
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
            small = image.convert("RGB").resize((side, side))
        return np.moveaxis(np.asarray(small, dtype=np.float64) / 255, 2, 0)
    except Exception:
        if forgiving:
            return np.zeros((3, side, side))
        raise InvalidArgument(f"{file} cannot be read as an image.", remedy="Take it out.") from None
