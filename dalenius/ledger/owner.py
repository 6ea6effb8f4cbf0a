"""`Owner`: the process that holds a reservation, and whether it is still there.

A process is known by its machine, its number, and when it started, since numbers are used again. The
machine is a digest of the machine's id, its name and the namespace of process numbers, so that containers
and copies of a virtual machine are not taken for one another. A process is called dead only on proof: it
was on this machine, and the number is free, or belongs to a process that started at another time or that
has ended and waits to be collected, or the machine was started again since. What cannot be known is alive.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from dalenius.errors import LedgerCorrupt

_PROC = Path("/proc")
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_ENDED = {"Z", "X", "x"}


@dataclass(frozen=True)
class Owner:
    """A process: its machine, the start of that machine, its number and its own start.

    An empty text stands for what the system does not tell.
    """

    host: str
    boot: str
    pid: int
    start: str

    @staticmethod
    def here() -> Owner:
        """The process that asks."""
        return _here()

    @staticmethod
    def read(text: str) -> Owner:
        """From what `str` gave."""
        try:
            host, boot, pid, start = json.loads(text)
        except (ValueError, TypeError):
            raise LedgerCorrupt(
                "The owner of a reservation cannot be read.", remedy="Forfeit the reservation by its number."
            ) from None
        if not all(isinstance(text, str) for text in (host, boot, start)) or type(pid) is not int:
            raise LedgerCorrupt(
                "The owner of a reservation cannot be read.", remedy="Forfeit the reservation by its number."
            )
        return Owner(host, boot, pid, start)

    def __str__(self) -> str:
        return _written(self)

    @property
    def local(self) -> bool:
        """Whether it is, or was, on this machine."""
        return self.host != "" and self.host == _host()

    @property
    def alive(self) -> bool:
        """False only where it is certain that the process has ended."""
        if not self.local:
            return True
        if self.boot and _boot() and self.boot != _boot():
            return False
        if not _present(self.pid):
            return False
        state, start = _life(self.pid)
        return state not in _ENDED and (not start or not self.start or start == self.start)


@lru_cache(maxsize=16)
def _written(owner: Owner) -> str:
    return json.dumps(astuple(owner), separators=(",", ":"))


@cache
def _here() -> Owner:
    pid = os.getpid()
    return Owner(_host(), _boot(), pid, _life(pid)[1])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_here.cache_clear)


def _present(pid: int) -> bool:
    """Whether there is such a process; asked of the kernel, since /proc may hide those of others."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


def _life(pid: int) -> tuple[str, str]:
    """The state of a process, and its start in ticks since the machine's; empty where not told.

    The name of the program stands in brackets before both and may hold any character, so the last bracket
    counts. A process whose first thread has ended while others run is shown as ended: then its threads are
    asked.
    """
    status = _text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    if len(status) < 20:
        return "", ""
    state, start = status[0], status[19]
    if state in _ENDED:
        threads = [
            _text(path).rpartition(")")[2].split() for path in (_PROC / str(pid) / "task").glob("*/stat")
        ]
        state = next((words[0] for words in threads if words and words[0] not in _ENDED), state)
    return state, start


@cache
def _host() -> str:
    machine = next(filter(None, map(_text, _MACHINE_IDS)), "")
    if not machine:
        return ""
    try:
        numbers = os.readlink(_PROC / "self" / "ns" / "pid")
    except OSError:
        numbers = ""
    return sha256(f"dalenius owner\n{machine}\n{platform.node()}\n{numbers}".encode()).hexdigest()[:32]


@cache
def _boot() -> str:
    return _text(_PROC / "sys" / "kernel" / "random" / "boot_id")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
