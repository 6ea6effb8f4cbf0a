"""How a counter survives a crash without giving two values for one step.

The noise of a step follows from a key. If a counter were set back, and other numbers came in the second time,
two values of one step would have the same noise, and their difference would be the difference of the data. So
once `save` was called the state is written before each value is given: written to a new file, synchronized,
renamed over the old one, and the folder synchronized. Whatever was given is on disk, and `load` goes on from
there: `steps` says from which step on numbers have to be sent again, none of which was ever part of a value.

A second process cannot load while the first lives: a lock is held next to the file. A copy of the file is
another matter: never go on from a backup that is older than the last value. The file holds the key, the sums
and, where units are bounded, who took part, in plain text: mode 0600, as secret as the data.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.noise.stream import StreamKey
from dalenius.privacy.unit import Unit
from dalenius.release.receipt import Entry
from dalenius.streams.tallies import Values

if TYPE_CHECKING:
    from dalenius.streams.counter import Counter

KIND, VERSION = "stream", 1
KINDS = ("decayed", "sums", "trees", "windows")
"""Modules of the mechanisms whose counters can be kept."""


class Keeper:
    """The file of a counter, locked."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock, self.steps = path, lock, -1

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Keeper:
        """Lock a file that may not be there yet."""
        import fcntl

        kept = Path(path).absolute()
        lock = os.open(f"{kept}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise NotSound(
                "Another counter keeps its state in this file.",
                remedy="End that process first, or choose another file.",
            ) from None
        return cls(kept, lock)

    def write(self, counter: Counter) -> None:
        """All or nothing."""
        text = json.dumps(_plain(counter), separators=(",", ":"))
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self.steps = counter.steps

    def close(self) -> None:
        """Give up the lock."""
        os.close(self._lock)


def load(path: str | os.PathLike[str]) -> Counter:
    """The counter that was kept in a file, which goes on being kept there."""
    keeper = Keeper.open(path)
    try:
        return _restored(json.loads(keeper.path.read_text()), keeper)
    except (ValueError, TypeError, KeyError, AttributeError):
        keeper.close()
        raise InvalidArgument("This is not the file of a counter.", remedy="Pass what save wrote.") from None
    except BaseException:
        keeper.close()
        raise


def _plain(counter: Counter) -> dict[str, Any]:
    participants, entry = counter._participants, counter.entry
    return {
        "kind": KIND,
        "version": VERSION,
        "note": "secret: holds the key of all noise",
        "mechanism": counter.mechanism.to_json(),
        "key": counter._key.secret.hex(),
        "tainted": counter._key.tainted,
        "steps": counter.steps,
        "tally": counter._tally.plain(),
        "last": None if counter._last is None else counter._last.tolist(),
        "seen": None if participants is None else [[u, *pair] for u, pair in participants.seen.items()],
        "unit": None if counter.unit is None else asdict(counter.unit),
        "entry": None if entry is None else asdict(entry),
    }


def _restored(plain: dict[str, Any], keeper: Keeper) -> Counter:
    from dalenius.streams.continual import Continual
    from dalenius.streams.counter import Counter

    for name in KINDS:
        import_module(f"dalenius.streams.{name}")
    mechanism = Mechanism.from_json(plain["mechanism"])
    if (plain["kind"], plain["version"]) != (KIND, VERSION) or not isinstance(mechanism, Continual):
        raise ValueError
    unit = None if plain["unit"] is None else Unit(**plain["unit"])
    key = StreamKey(bytes.fromhex(plain["key"]), tainted=plain["tainted"])
    counter = Counter(mechanism, unit, _stamp(plain["entry"]), key)
    counter._tally.restore(plain["tally"])
    if counter._participants is not None:
        counter._participants.seen = {name: (last, times) for name, last, times in plain["seen"]}
    counter._go_on(plain["steps"], None if plain["last"] is None else _values(plain["last"]))
    counter._keeper, keeper.steps = keeper, plain["steps"]
    return counter


def _values(rows: list[list[Any]]) -> Values:
    """Numbers as they were: whole ones of any size, or floats."""
    whole = all(isinstance(number, int) for row in rows for number in row)
    large = whole and any(abs(number) >= 1 << 62 for row in rows for number in row)
    return np.array(rows, dtype=object if large else np.int64 if whole else np.float64)


def _stamp(entry: Any) -> Callable[[Any], Any]:
    """That of the account that paid, at the time; without its signature, which was of another release."""
    if entry is None:
        return lambda release: release
    paid = Entry(**entry | {"signature": None})
    return lambda release: release.charged(paid)
