"""A PostgreSQL server that the tests start themselves, one for all of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

USER = "postgres"
"""As whom the server runs where the tests run as root, which it refuses."""


@dataclass
class Server:
    """A PostgreSQL server of our own, in a folder that no one else uses, reached by a socket in it."""

    binaries: Path
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    names: Iterator[int] = field(default_factory=count)

    @property
    def who(self) -> dict[str, Any]:
        return {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}

    def create(self) -> None:
        command = [self.binaries / "initdb", "-D", self.folder / "data", "-U", "dalenius", "-A", "trust"]
        options = ["-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1"]
        subprocess.run([*command, *options], check=True, capture_output=True, cwd=self.folder, **self.who)

    def start(self, *more: str) -> None:
        from psycopg.pq import PGconn, Ping

        settings = ["listen_addresses=", f"unix_socket_directories={self.folder}", "fsync=on", *more]
        chosen = [part for setting in settings for part in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.binaries / "postgres", "-D", self.folder / "data", *chosen],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self.who,
            )
        where = f"host={self.folder} user=dalenius dbname=postgres".encode()
        while Ping(PGconn.ping(where)) != Ping.OK:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT ends it as a crash would; SIGINT sends everyone away first."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait()

    def url(self, schema: str | None = None) -> str:
        chosen = f"s{next(self.names)}" if schema is None else schema
        return f"postgresql://dalenius@/postgres?host={self.folder}&options=-csearch_path%3D{chosen}"


def find_binaries() -> Path | None:
    """Where PostgreSQL is installed, or where DALENIUS_POSTGRES says that another version of it is."""
    if chosen := os.environ.get("DALENIUS_POSTGRES"):
        return Path(chosen)
    found = shutil.which("initdb")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4]))
    return Path(found).resolve().parent if found else installed[-1].parent if installed else None


def _roomy() -> str | None:
    """Memory that looks like a disk, where there is enough: the server is stopped and started often here."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > 2**30 else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server; without PostgreSQL the test is skipped, or fails where DALENIUS_REQUIRE names it."""
    binaries = find_binaries()
    if binaries is None:
        missing = pytest.fail if "postgres" in os.environ.get("DALENIUS_REQUIRE", "") else pytest.skip
        missing("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="dalenius-", dir=_roomy()))
    if os.getuid() == 0:
        shutil.chown(folder, USER, USER)
    server = Server(binaries, folder)
    try:
        server.create()
        server.start()
        yield server
    finally:
        if server.process is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
