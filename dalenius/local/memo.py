"""`Memo`: what a device drew once and answers with ever after. Secret, and never sent.

A response that is drawn anew for every report can be averaged away. A memo draws one response for each key,
keeps it, and gives the same again. With a path it is written, whole or not at all and readable by its owner
alone (mode 0600), before it is given for the first time: after a crash no second response exists for a key
of which one was sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

from dalenius.errors import InvalidArgument, NotSound

FORMAT, VERSION = "dalenius-memo", 1


class Memo:
    """Responses by key, for one randomizer, in memory or in a file. See the module."""

    def __init__(self, whose: bytes, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._whose, self._lock, self._process = whose.hex(), Lock(), os.getpid()
        self._kept: dict[str, list[int]] = {}
        if self._path is not None and self._path.exists():
            self._kept = self._read(self._path)

    def __repr__(self) -> str:
        return "<Memo, secret>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NotSound(
            "A memo cannot be copied: each copy would draw responses of its own.",
            remedy="Open it again from its file, by one process at a time.",
        )

    def recall(self, key: str, draw: Callable[[], list[int]]) -> list[int]:
        """The response of a key: drawn the first time, and kept before it is given."""
        with self._lock:
            if self._process != os.getpid():
                self.__reduce_ex__(0)
            if key not in self._kept:
                kept = {**self._kept, key: [int(number) for number in draw()]}
                if self._path is not None:
                    self._write(self._path, kept)
                self._kept = kept
            return list(self._kept[key])

    def _write(self, path: Path, kept: dict[str, list[int]]) -> None:
        content = {"format": FORMAT, "version": VERSION, "whose": self._whose, "kept": kept}
        half = path.with_name(path.name + ".new")
        half.unlink(missing_ok=True)
        handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(half, path)
        except BaseException:
            half.unlink(missing_ok=True)
            raise
        _sync(path.parent)

    def _read(self, path: Path) -> dict[str, list[int]]:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            head = {name: content.pop(name) for name in ("format", "version", "whose")}
            kept = {str(key): [int(number) for number in row] for key, row in content.pop("kept").items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _unknown(path) from None
        if head["format"] != FORMAT or head["version"] != VERSION:
            raise _unknown(path)
        if head["whose"] != self._whose:
            raise InvalidArgument(
                "This memo is of a randomizer with other parameters.",
                remedy="Use the randomizer it was begun with, or a new file, whose reports cost anew.",
            )
        return kept


def _sync(folder: Path) -> None:
    """So that the new name outlives a crash, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unknown(path: Path) -> InvalidArgument:
    return InvalidArgument(
        f"{path.name} is not a memo that this version reads.",
        remedy="Pass the file of a memo; a new one costs the person as a new device does.",
    )
