"""Folders of killed processes are removed by the next, and no other folder is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow
import pytest

from dalenius.tables.sources.folder import LOCK, Folder
from dalenius.tables.sources.opening import open_source

KILLED = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[1]
import pyarrow
from dalenius.tables.sources.opening import open_source
engine = open_source(pyarrow.table({"x": [1]}), "t")
os.kill(os.getpid(), 9)
"""


def aged(folder: Path) -> None:
    os.utime(folder / LOCK, (1, 1))


def test_what_a_killed_process_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=3600, check=False)
    (left,) = tmp_path.iterdir()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    young = Folder.make()
    assert left.exists(), "its maker might still be at it"
    aged(left)
    engine = open_source(pyarrow.table({"x": [1]}), "t")
    assert not left.exists()
    engine.close()
    young.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    used = Folder.make()
    aged(Path(used.path))
    (tmp_path / "dalenius-notes").mkdir(mode=0o700)
    open_to_all = tmp_path / "dalenius-shared"
    open_to_all.mkdir(mode=0o755)
    (open_to_all / LOCK).touch()
    aged(open_to_all)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / LOCK).touch()
    aged(elsewhere)
    (tmp_path / "dalenius-link").symlink_to(elsewhere)
    before = sorted(tmp_path.iterdir())
    Folder.make().remove()
    assert sorted(tmp_path.iterdir()) == before
    used.remove()
