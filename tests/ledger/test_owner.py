"""A process is called dead on proof only."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dalenius.errors import LedgerCorrupt
from dalenius.ledger import owner
from dalenius.ledger.owner import Owner

ASK = "from dalenius.ledger.owner import Owner; print(Owner.here(), flush=True); input()"
LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def other() -> tuple[subprocess.Popen[str], Owner]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", ASK], text=True, **pipes)
    return process, Owner.read(process.stdout.readline())


def test_this_process_is_alive_and_survives_its_text() -> None:
    here = Owner.here()
    assert here.alive and Owner.read(str(here)) == here == Owner.here()
    assert here.pid == os.getpid()


@LINUX
def test_another_process_is_alive_until_it_ends() -> None:
    process, found = other()
    assert found.local and found.alive and found.pid == process.pid
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not found.alive, "it has ended, though its parent has not collected it"
    process.communicate()
    assert not found.alive


@LINUX
def test_a_number_used_again_is_another_process() -> None:
    here = Owner.here()
    assert here.start and here.boot
    assert not replace(here, start="1").alive
    assert not replace(here, boot="before the last start").alive


@LINUX
def test_what_cannot_be_known_is_alive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Owner.here()
    gone = replace(here, pid=2**22 + 1)
    assert not gone.alive and replace(gone, host="elsewhere").alive and replace(gone, host="").alive
    assert replace(here, start="").alive and not replace(here, start="", pid=gone.pid).alive
    monkeypatch.setattr(owner, "_PROC", tmp_path)
    owner._boot.cache_clear()
    assert replace(here, start="1", boot="another").alive, (
        "the system tells nothing of a process that is there"
    )
    assert not gone.alive, "there is no such process"
    owner._boot.cache_clear()


def test_without_an_identity_of_the_machine_everyone_is_alive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(owner, "_MACHINE_IDS", (tmp_path / "none",))
    owner._host.cache_clear()
    owner._here.cache_clear()
    here = Owner.here()
    assert here.host == "" and not here.local and replace(here, pid=2**22 + 1).alive
    owner._host.cache_clear()
    owner._here.cache_clear()


@LINUX
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_another_process() -> None:
    here = Owner.here()
    child = os.fork()
    if child == 0:
        os._exit(Owner.here() == here)
    assert os.waitpid(child, 0)[1] == 0 and Owner.here() == here


@LINUX
def test_the_name_of_a_program_does_not_mislead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    numbers = " ".join(str(n) for n in range(4, 53))
    (tmp_path / "7" / "stat").write_text(f"7 (a) Z 1 (b\n) S {numbers}")
    monkeypatch.setattr(owner, "_PROC", tmp_path)
    assert owner._life(7) == ("S", "22")


@LINUX
def test_a_process_lives_while_one_of_its_threads_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numbers = " ".join(str(n) for n in range(4, 53))
    monkeypatch.setattr(owner, "_PROC", tmp_path)
    for thread, state in (("7", "Z"), ("8", "S")):
        (tmp_path / "7" / "task" / thread).mkdir(parents=True)
        (tmp_path / "7" / "task" / thread / "stat").write_text(f"{thread} (x) {state} {numbers}")
    (tmp_path / "7" / "stat").write_text(f"7 (x) Z {numbers}")
    assert owner._life(7)[0] == "S"
    (tmp_path / "7" / "task" / "8" / "stat").write_text(f"8 (x) X {numbers}")
    assert owner._life(7)[0] == "Z"


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", '["a","b","c"]'])
def test_an_owner_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(LedgerCorrupt):
        Owner.read(text)
