"""Builds the loops that draw noise where a C compiler is at hand; without one, numpy takes their place."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

SOURCE = Path("dalenius/noise/kernel.c")
LIBRARY = Path("dalenius/noise/kernel.shared")
# Sums and comparisons of doubles as they are written, so that numpy and C agree in every bit.
FLAGS = ["-O3", "-ffp-contract=off", "-fPIC", "-shared", "-std=c11"]


class Kernel(BuildHookInterface[Any]):
    """Makes a wheel one of this platform, if the loops can be built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before files are collected, for an editable installation too."""
        if self.target_name == "wheel" and built(Path(self.root)):
            build_data["artifacts"].append(str(LIBRARY))
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{plain_platform()}"


def plain_platform() -> str:
    """The first that pip accepts here and that promises nothing of other machines."""
    names = (tag.platform for tag in sys_tags())
    return next(name for name in names if not name.startswith(("manylinux", "musllinux")))


def built(root: Path) -> bool:
    """Whether there is a library now. It comes to its place whole, or not at all."""
    source, library = root / SOURCE, root / LIBRARY
    part = library.with_suffix(f".{platform.node()}.{os.getpid()}.shared")
    stamp = f"-DSOURCE={zlib.crc32(source.read_bytes())}u"
    said: object = "no compiler was found"
    for compiler in compilers():
        try:
            command = [*compiler, *FLAGS, stamp, str(source), "-o", str(part)]
            subprocess.run(command, check=True, timeout=300, capture_output=True)
            os.replace(part, library)
            return True
        except (OSError, subprocess.SubprocessError) as reason:
            said = reason
    for left in (part, library):
        try:
            left.unlink(missing_ok=True)
        except OSError as reason:
            said = reason
    print(f"dalenius: {SOURCE} was not built, numpy draws noise alone: {said}", file=sys.stderr)
    return False


def compilers() -> Iterator[list[str]]:
    """Those that are asked for, that Python was built with, and that there is."""
    named = (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc")
    return (shlex.split(name) for name in dict.fromkeys(named) if name)
