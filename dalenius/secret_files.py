"""Refuse secret files that other users can read, change or replace.

A state that holds the key of noise is safe from other users only if each of these holds:

    file      it belongs to this user, and its mode gives nothing to group or others (0600)
    folder    it belongs to this user or to the administrator, and nobody else can write to it, unless its
              sticky bit is set (as on /tmp), with which only the owner of a file can rename or remove it

Whoever can write to the file could choose the key, and would know all noise that is drawn from it. Whoever
can write to the folder could put another file there, such as an older state. A folder that its own group can
write to is accepted where that group is the private group of its owner, as many systems set it up.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dalenius.errors import NotSound

ADMINISTRATOR = 0


def check_secret_file(path: Path, what: str) -> None:
    """Refuse a file, or its folder, that other users can read, change or replace.

    Args:
        path: The file, with all links resolved. A file that does not exist is checked for its folder only.
        what: The name of the thing that is kept in the file, for the message.

    Raises:
        NotSound: Another user owns the file or its folder, or may read or write the file, or may write to
            the folder.
    """
    if not hasattr(os, "geteuid"):
        return
    _check_folder(path.parent, what)
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if found.st_uid != os.geteuid():
        raise NotSound(
            f"{path.name} belongs to another user, who can change it, so this {what} may not be what it was.",
            remedy="Run as the user who owns the file. If you trust what is in it, change its owner.",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise NotSound(
            f"{path.name} can be read or changed by others, and holds the secret of this {what}.",
            remedy="If nobody did, allow its owner alone (mode 0600). Begin another one otherwise.",
        )


def _check_folder(folder: Path, what: str) -> None:
    try:
        found = folder.stat()
    except FileNotFoundError:
        return
    if found.st_uid not in (os.geteuid(), ADMINISTRATOR):
        raise NotSound(
            f"The folder of this {what} belongs to another user, who can replace files in it.",
            remedy="Keep it in a folder of your own.",
        )
    writable = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and _is_shared(found))
    if writable and not found.st_mode & stat.S_ISVTX:
        raise NotSound(
            f"Other users can write to the folder of this {what}, and so replace files in it.",
            remedy="Keep it in a folder that only you can write to (mode 0700 or 0755).",
        )


def _is_shared(found: os.stat_result) -> bool:
    """Return whether the group of a folder may have members other than the folder's owner."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
    except KeyError:
        return True
    return (
        group.gr_name != owner.pw_name
        or owner.pw_gid != found.st_gid
        or not set(group.gr_mem) <= {owner.pw_name}
    )
