"""Secret files that other users can read, change or replace are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dalenius.errors import NotSound
from dalenius.local import Client, KaryResponse
from dalenius.secret_files import check_secret_file
from dalenius.streams import TreeSum, load

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def counter(path: Path) -> None:
    """Keep a counter in a file."""
    session = TreeSum(scale=6).start()
    session.add(1)
    session.save(path)
    session.close()


def memo(path: Path) -> None:
    """Keep a response in a file."""
    with Client(KaryResponse(domain=4, ratio=2), path) as client:
        client.report(1)


def remember(path: Path) -> None:
    """Open a memo and let it go again."""
    Client(KaryResponse(domain=4, ratio=2), path).close()


KEPT: list[tuple[Callable[[Path], None], Callable[[Path], object]]] = [(counter, load), (memo, remember)]


@pytest.mark.parametrize(("keep", "read"), KEPT, ids=["counter", "memo"])
@pytest.mark.parametrize("name", ["state", "state.lock"])
@pytest.mark.parametrize("mode", [0o640, 0o602, 0o620, 0o666])
def test_files_that_others_can_read_or_write_are_refused(
    keep: Callable[[Path], None], read: Callable[[Path], object], name: str, mode: int, tmp_path: Path
) -> None:
    keep(tmp_path / "state")
    (tmp_path / name).chmod(mode)
    with pytest.raises(NotSound, match="by others"):
        read(tmp_path / "state")
    (tmp_path / name).chmod(0o600)
    read(tmp_path / "state")


@pytest.mark.parametrize(("keep", "read"), KEPT, ids=["counter", "memo"])
def test_folders_that_others_can_write_to_are_refused(
    keep: Callable[[Path], None], read: Callable[[Path], object], tmp_path: Path
) -> None:
    """Who can write to the folder can put an older state there; not where the sticky bit is set."""
    folder = tmp_path / "shared"
    folder.mkdir(0o700)
    keep(folder / "state")
    folder.chmod(0o777)
    with pytest.raises(NotSound, match="replace files"):
        read(folder / "state")
    with pytest.raises(NotSound, match="replace files"):
        keep(folder / "other")
    folder.chmod(0o1777)
    read(folder / "state")


@pytest.mark.skipif(not ROOT, reason="only the administrator gives files to others")
def test_files_and_folders_of_another_user_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(0o755)
    counter(folder / "state")
    os.chown(folder / "state", 12345, 12345)
    with pytest.raises(NotSound, match="another user"):
        load(folder / "state")
    os.chown(folder / "state", 0, 0)
    os.chown(folder, 12345, 12345)
    with pytest.raises(NotSound, match="belongs to another user"):
        load(folder / "state")


@pytest.mark.skipif(not ROOT, reason="only the administrator gives folders to groups")
def test_a_folder_of_a_shared_group_is_refused_and_of_a_private_one_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    check_secret_file(tmp_path / "state", "counter")
    os.chown(tmp_path, 0, 1)
    with pytest.raises(NotSound, match="replace files"):
        check_secret_file(tmp_path / "state", "counter")
