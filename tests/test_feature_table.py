"""The feature table names what exists."""

from __future__ import annotations

import re
from pathlib import Path

import dalenius
from dalenius import mechanisms

TABLE = Path(__file__).parent.parent / "benchmarks" / "results" / "mechanisms.md"


def test_every_mechanism_is_in_the_table_and_every_name_in_it_exists() -> None:
    rows = [line.split("|")[2] for line in TABLE.read_text().splitlines() if line.startswith("| ")][2:]
    named = {name.split(".")[0] for row in rows for name in re.findall(r"`([A-Za-z.]+)`", row)}
    exported = {*mechanisms.__all__} - {"Mechanism", "Session"}
    assert named - {"audit", "Grid"} == exported
    assert hasattr(dalenius, "audit")
