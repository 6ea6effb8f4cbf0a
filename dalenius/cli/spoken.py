"""What tables say of their arguments, said of the options of `dalenius query`.

The library speaks of what Python takes (`budget=Budget(…)`); whoever types a command needs `--budget`. Each
line is a pattern, and what stands for it: the most particular first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dalenius.errors import BudgetExceeded, DaleniusError, QueryFailed
from dalenius.release import Release

_WORD = r"""["']?([^"'\s,;)]+?)["']?"""
"""A value, perhaps in quotes."""
_END = r"(?=[\s,;)]|\.?$|\. )"

SAID: tuple[tuple[str, str], ...] = (
    (r"budget=Budget\(epsilon=([^,)\s]+), delta=([^,)\s]+)\)", r"--budget \1 --delta \2"),
    (r"budget=Budget\(epsilon=([^,)\s]+)\)", r"--budget \1"),
    (r"bounds=Bounds\(rows=…, groups=…, pairs=…\)", "--bound-rows, --bound-groups or --bound-pairs"),
    (r"bounds=Bounds\(rows=…\)", "--bound-rows N"),
    (r"bounds=Bounds\(rows=(\d+)\)", r"--bound-rows \1"),
    (r"bounds=Bounds\(ranges=\{\"(.*)\": \(lower, upper\)\}\)", r'--bound-range "\1=LOW:HIGH"'),
    (r"[Dd]eclare ranges=\{'(.*)': \(low, high\)\}", r"Write --range \1=LOW:HIGH"),
    (r"unit=Unit\(\"(\w+)\", column=\"(\w+)\"\)", r"--unit-column \2, or --unit \1 if each row is one"),
    (r"Unit\(…, column=…\) and time=", "--unit-column, and --time"),
    (r"Unit\(…, column=…\)", "--unit-column"),
    (r"pass an account that was opened for it", "name another account"),
    (r"ledger=" + _WORD + r", or account=ledger\.account\([^)]*\)", r"--ledger \1"),
    (r"account=ledger\.account\([\"'](.*?)[\"']\)", r"--share \1"),
    (r"Use ledger\.account\([\"'].*?[\"']\), or open one", "Leave out --budget and --delta, or open one"),
    (r"Use ledger\.account\([\"'](.*?)[\"']\)", r"Use --account \1"),
    (r"List the groups \(keys=…\), declare the categories of their columns, or allow a delta",
     "List the groups with --keys COLUMN=A,B, or open the account with a --delta"),
    (r"relation=\"(\w+)\" or \"(\w+)\"", r"--relation \1 or \2"),
    (r"\bname=\"…\" is that of the first", "--name is that of the first"),
    (r"\b(epsilon|account|ledger|table|time|name)=" + _WORD + _END, r"--\1 \2"),
    (r"\bkeys=", "--keys"),
    (r"\bpublic_size\b", "--public-size"),
    (r"\brows_per_unit\b", "--rows-per-unit"),
    (r"\bLeave out unit\b", "Leave out --unit and --unit-column"),
    (r"\bLeave out budget and ledger\b", "Leave out --budget and --delta"),
    (r"\ballow a larger epsilon\b", "allow a larger --epsilon"),
)  # fmt: skip
"""What Python is told, and what a command line is told instead."""


def spoken(text: str) -> str:
    """The same for whoever types a command."""
    for pattern, instead in SAID:
        text = re.sub(pattern, instead, text)
    return text


def spoken_release(release: Release) -> Release:
    """A release whose warnings name options: to be shown, not to be kept."""
    warnings = tuple(map(spoken, release.receipt.warnings))
    return replace(release, receipt=replace(release.receipt, warnings=warnings))


@contextmanager
def speaking() -> Iterator[None]:
    """Errors of the block name options."""
    try:
        yield
    except DaleniusError as error:
        raise _again(error) from None


def _again(error: DaleniusError) -> DaleniusError:
    problem, remedy = spoken(error.problem), spoken(error.remedy)
    if isinstance(error, BudgetExceeded):
        return BudgetExceeded(
            problem, remedy=remedy, needed=error.needed, left=error.left, largest=error.largest
        )
    if isinstance(error, QueryFailed):
        return QueryFailed(problem, remedy=remedy)
    return type(error)(problem, remedy=remedy)
