"""Builds the loops that draw noise where a C compiler is at hand; without one, numpy takes their place."""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("dalenius/noise/kernel.c")
LIBRARY = Path("dalenius/noise/libdalenius.so")
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
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"


def built(root: Path) -> bool:
    """Whether there is a library now."""
    source, library = root / SOURCE, root / LIBRARY
    library.unlink(missing_ok=True)
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[:1]
    stamp = f"-DSOURCE={zlib.crc32(source.read_bytes())}u"
    try:
        subprocess.run([*compiler, *FLAGS, stamp, str(source), "-o", str(library)], check=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as reason:
        print(f"dalenius: {SOURCE} was not built, numpy draws noise alone: {reason}", file=sys.stderr)
        return False
    return True
