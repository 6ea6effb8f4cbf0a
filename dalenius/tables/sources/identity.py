"""Which data a source is: files by what they are on the disk, frames by the memory that they lie in.

A file may have several names: relative and absolute paths, links of either kind, other cases of letters where
the file system does not tell them apart, and patterns that match it. It is one file wherever device and inode
are the same. Nothing here looks at what is in a file, so that nothing depends on private data: a copy of a
file is other data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any

Memory = tuple[tuple[int, int], ...]
"""Stretches of memory, each from an address up to another."""


@dataclass(frozen=True)
class Origin:
    """Where the rows of a table are: a set of names that tell files or tables, or memory."""

    names: frozenset[object] = frozenset()
    memory: Memory = ()

    def meets(self, other: Origin) -> bool:
        """Whether some row may be of both."""
        if self.names & other.names:
            return True
        return any(a < d and c < b for a, b in self.memory for c, d in other.memory)


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern of several, and not the name of a file that has such letters in it."""
    return has_magic(path) and not os.path.exists(path)


def file_of(source: object) -> Path | None:
    """The one file that holds a source; None for frames, servers, connections, patterns of several files."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = os.fspath(source)
    if "://" in path or is_pattern(path):
        return None
    # A link and what it leads to have one account.
    return Path(source).resolve()


def pattern_of(source: object) -> Path | None:
    """The pattern of the files of a source, in one spelling; None where it is none."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return None
    if not is_pattern(os.fspath(source)):
        return None
    parts = Path(os.path.abspath(source)).parts
    plain = list(takewhile(lambda part: not has_magic(part), parts))
    return Path(*plain).resolve().joinpath(*parts[len(plain) :])


def matches(path: str) -> tuple[str, ...]:
    """The files that a path names or that a pattern matches, sorted."""
    return (path,) if os.path.exists(path) else tuple(sorted(glob(path, recursive=True)))


def file_names(paths: Iterable[str]) -> frozenset[object]:
    """What tells files apart, whatever they are called; one that is not there is told by its path."""
    return frozenset(_file_name(path) for path in paths)


def _file_name(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def memory_of(frame: Any) -> Memory:
    """The memory that a frame of pandas or polars, or an Arrow table, lies in; nothing is copied or read."""
    library = type(frame).__module__.partition(".")[0]
    found = _of_pandas(frame) if library == "pandas" else _of_arrow(frame)
    return tuple((start, start + size) for start, size in found if size)


def _of_arrow(frame: Any) -> Iterator[tuple[int, int]]:
    columns = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
    for column in columns.columns:
        for chunk in getattr(column, "chunks", [column]):
            yield from ((one.address, one.size) for one in chunk.buffers() if one is not None)


def _of_pandas(frame: Any) -> Iterator[tuple[int, int]]:
    import numpy as np

    for place in range(frame.shape[1]):
        column = frame.iloc[:, place].array
        arrow = getattr(column, "__arrow_array__", None)
        values = getattr(column, "_ndarray", None)
        if isinstance(values, np.ndarray):
            low, high = np.lib.array_utils.byte_bounds(values)
            yield low, high - low
        elif arrow is not None:
            found = arrow()
            for chunk in getattr(found, "chunks", [found]):
                yield from ((one.address, one.size) for one in chunk.buffers() if one is not None)
