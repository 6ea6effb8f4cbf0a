"""Single-threaded CPU time of a call, and the words of a Markdown report."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
SLOW = 2.0
"""Seconds from which the first call is the measurement, and no other is made."""


class Unsupported(Exception):
    """The library has no such question."""


@dataclass(frozen=True)
class Answer:
    """A number, and how far it may be from the truth, in the words of the library that gave it."""

    value: float
    error: str


@dataclass(frozen=True)
class Timed:
    """An answer, or why there is none, and the milliseconds of CPU it took."""

    answer: Answer | None
    note: str
    ms: float


def one_thread() -> None:
    """Must run before numpy is imported: the numerical libraries read these once."""
    os.environ.update(dict.fromkeys(THREADS, "1"))


def timed(call: Callable[[], Answer], repeats: int) -> Timed:
    """The median over `repeats` calls after a first one that pays for lazy imports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer, first = once(call)
            times = [first] if first > SLOW else [once(call)[1] for _ in range(repeats)]
        except Unsupported:
            return Timed(None, "no such question", 0.0)
        except Exception as error:  # A peer that fails is a result, and the run goes on.
            return Timed(None, f"{type(error).__name__}: {str(error).split('.')[0]}", 0.0)
    return Timed(answer, "", 1e3 * statistics.median(times))


def once(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """The answer without anything remembered by Dalenius, and its CPU time in seconds."""
    forget()
    start = time.process_time()
    answer = call()
    return answer, time.process_time() - start


def forget() -> None:
    """Clear every cache in Dalenius: those of its functions; other values are kept by losses themselves."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "dalenius":
            for member in list(vars(module).values()):
                if hasattr(member, "cache_clear"):
                    member.cache_clear()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def milliseconds(ms: float) -> str:
    """Three figures, as far as they are worth reading."""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def version(package: str) -> str:
    """The installed version."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """The model of the CPU."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
