"""How a counter survives a crash without giving two values for one step.

The noise of a step follows from a key. If a counter were set back, and other numbers came in the second time,
two values of one step would have the same noise, and their difference would be the difference of the data. So
once `save` was called the state is written before each value is given: written to a new file, synchronized,
renamed over the old one, and the folder synchronized. Whatever was given is on disk, and `load` goes on from
there: `steps` says from which step on numbers have to be sent again, none of which was ever part of a value.

No file that is there is saved over: it may be the state of another counter whose process has ended. A counter
that is closed, or gone, gives its file up; none can load while another has it, and no state that is older
than the last value is gone on from: `locking`. Files that other users can read, change or replace are
refused: `secret_files`.

Both files restored from one backup, or copied, look whole. Where an account paid, each value is noted in its
ledger before it is given (`ledger.uses`), by a digest of the state: of all copies one goes on, and the others
are refused at their next value or when they are loaded. So `load` needs the account. Without an account there
is no such ledger. Two copies of an uncharged counter that go on release the same noise on different sums, and
the difference of two values of one step is that of the data, without noise: nothing bounds what it tells.

The noise of all blocks so far is kept as a digest, and drawn again by `load`: a version that draws other
noise for the same key is refused, since a step would have two noises. The file holds the key, the sums and,
where units are bounded, who took part, in plain text: mode 0600, as secret as the data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from dalenius.errors import DaleniusError, InvalidArgument, NotSound
from dalenius.ledger.account import Account
from dalenius.ledger.uses import Uses
from dalenius.locking import Lock, Owner
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.noise.stream import StreamKey
from dalenius.privacy.unit import Unit
from dalenius.release.receipt import Entry
from dalenius.streams.tallies import Ints, Values

if TYPE_CHECKING:
    from dalenius.streams.continual import Blocks
    from dalenius.streams.counter import Counter

KIND, VERSION = "stream", 2
OWNER = Owner("counter", "Start another counter and charge for it")
KINDS = ("decayed", "endless", "sums", "trees", "windows")
"""Modules of the mechanisms whose counters can be kept."""
MOST_BITS = 2048
"""Of a unit that is written in decimals. Python may refuse to write or read more than 640 digits."""


class Watched:
    """Noise of consecutive steps, with a digest of all of it so far."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, self.steps, self._seen = blocks, blocks.steps, sha256()

    def next(self) -> Ints:
        """The next block, one row a step."""
        found = self._blocks.next()
        self._seen.update(np.ascontiguousarray(found, "<i8").tobytes())
        return found

    @property
    def digest(self) -> str:
        """Of all blocks so far."""
        return self._seen.hexdigest()


class Keeper:
    """The file of a counter, locked for as long as the counter is there."""

    def __init__(self, lock: Lock, uses: Uses | None) -> None:
        self.path, self._lock, self.steps = lock.path, lock, -1
        self._uses = uses
        self._use: str | None = None
        self._end = finalize(self, lock.close)
        # At exit a thread may still write; the file is given up as the process ends.
        self._end.atexit = False

    @classmethod
    def open(cls, path: str | os.PathLike[str], uses: Uses | None) -> Keeper:
        """Lock a file that is not there yet: one that is may be the only state of another counter."""
        _vacant(Path(path))
        found = cls(Lock.taken(path, OWNER, new=True), uses)
        try:
            _vacant(found.path)
        except BaseException:
            found.close()
            raise
        return found

    def write(self, counter: Counter) -> None:
        """All or nothing; then the step is noted, before its value is given."""
        blocks, key = counter._blocks, counter._key.secret
        if not isinstance(blocks, Watched):
            blocks = _watched(counter)
            counter._blocks = blocks
        more = {"noise": blocks.digest, "use_before": self._use}
        text = json.dumps(_plain(counter) | more, separators=(",", ":"))
        if self.steps < 0:
            self._lock.note(key, 0)
        self._lock.replace(text)
        self._lock.note(key, counter.steps)
        use = _use(counter.steps, text)
        if self._uses is not None:
            self._uses.note(use)
        self.steps, self._use = counter.steps, use

    def resume(self, steps: int, text: str, before: str | None) -> None:
        """Go on from a state that was read, unless the ledger says that a copy of it went on.

        Args:
            steps: How many steps the state has.
            text: The state as it is in the file.
            before: The note of the value before, as the state has it.
        """
        use = _use(steps, text)
        if self._uses is not None:
            self._uses.resumed(use, before)
        self.steps, self._use = steps, use

    def close(self) -> None:
        """Give up the lock."""
        self._end()


def load(path: str | os.PathLike[str], account: Account | None = None) -> Counter:
    """Return the counter that was kept in a file, which goes on being kept there.

    Args:
        path: The file that `Counter.save` named.
        account: The account that paid for the counter, whose ledger knows which copy of it went on. Needed
            where an account paid.

    Raises:
        NotSound: The state is older than the last value, a copy of it went on, or others can change it.
        InvalidArgument: The file is not that of a counter, or the account did not pay for it.
    """
    lock = Lock.taken(path, OWNER, new=False)
    try:
        return _restored(lock.path.read_text(), lock, account)
    except DaleniusError:
        lock.close()
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        lock.close()
        raise InvalidArgument("This is not the file of a counter.", remedy="Pass what save wrote.") from None
    except BaseException:
        lock.close()
        raise


def _use(steps: int, text: str) -> str:
    """Return the note of a value: its step, and a digest of the state, which has a secret key in it."""
    return f"{steps} {sha256(text.encode()).hexdigest()}"


def _check_payer(entry: Entry | None, account: Account | None) -> None:
    """Refuse an account that did not pay, and none where one did."""
    if entry is None and account is None:
        return
    if entry is None:
        raise InvalidArgument("No account paid for this counter.", remedy="Leave account out.")
    if not isinstance(account, Account) or not account.holds(entry):
        raise InvalidArgument(
            f"This counter was paid by {entry}, whose ledger says whether a copy of it went on.",
            remedy="Pass account=, the account that paid for it.",
        )


def _vacant(path: Path) -> None:
    if path.exists():
        raise NotSound(
            "There is a file of this name already, which may be the state of another counter.",
            remedy="Choose another file, or go on with the counter that is kept there: streams.load(path).",
        )


def _watched(counter: Counter) -> Watched:
    """The noise of a counter, drawn again as far as it was."""
    found = Watched(counter.mechanism.blocks(counter._key, counter.mechanism.width))
    for _ in range((counter._first + len(counter._drawn)) // found.steps):
        found.next()
    return found


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
        "seen": None
        if participants is None
        else [[_written(unit), *pair] for unit, pair in participants.seen.items()],
        "unit": None if counter.unit is None else counter.unit.plain(),
        "entry": None if entry is None else asdict(entry),
    }


def _restored(text: str, lock: Lock, account: Account | None) -> Counter:
    from dalenius.streams.continual import Continual
    from dalenius.streams.counter import Counter

    for name in KINDS:
        import_module(f"dalenius.streams.{name}")
    plain = json.loads(text)
    mechanism = Mechanism.from_json(plain["mechanism"])
    if (plain["kind"], plain["version"]) != (KIND, VERSION) or not isinstance(mechanism, Continual):
        raise ValueError
    unit = None if plain["unit"] is None else Unit(**plain["unit"])
    key = StreamKey(bytes.fromhex(plain["key"]), tainted=plain["tainted"])
    lock.check(key.secret, plain["steps"])
    entry = None if plain["entry"] is None else Entry(**plain["entry"] | {"signature": None})
    _check_payer(entry, account)
    counter = Counter(mechanism, unit, _stamp(entry, account), key, account)
    watched = Watched(counter._blocks)
    counter._blocks = watched
    counter._tally.restore(plain["tally"])
    if counter._participants is not None:
        counter._participants.seen = {_read(unit): (last, times) for unit, last, times in plain["seen"]}
    counter._go_on(plain["steps"], None if plain["last"] is None else _values(plain["last"]))
    if watched.digest != plain["noise"]:
        raise NotSound(
            "This version draws other noise for the steps of this counter than the one that wrote it.",
            remedy="Go on with the version that wrote it, or start another counter and charge for it.",
        )
    keeper = Keeper(lock, counter._uses)
    keeper.resume(plain["steps"], text, plain["use_before"])
    counter._keeper = keeper
    return counter


def _written(unit: Any) -> Any:
    """A unit for JSON: a whole number of so many digits that Python writes none in hexadecimal."""
    return {"hex": hex(unit)} if isinstance(unit, int) and unit.bit_length() > MOST_BITS else unit


def _read(unit: Any) -> Any:
    return int(unit["hex"], 16) if isinstance(unit, dict) else unit


def _values(rows: list[list[Any]]) -> Values:
    """Numbers as they were: whole ones of any size, or floats."""
    whole = all(isinstance(number, int) for row in rows for number in row)
    large = whole and any(abs(number) >= 1 << 62 for row in rows for number in row)
    return np.array(rows, dtype=object if large else np.int64 if whole else np.float64)


def _stamp(entry: Entry | None, account: Account | None) -> Callable[[Any], Any]:
    """Return what marks releases as paid by a line of the account, signed anew where the ledger has a key."""
    if entry is None or account is None:
        return lambda release: release
    return lambda release: account.signed(release.charged(entry))
