"""Every path of the engine gives the integers of the reference engine, bit for bit."""

from __future__ import annotations

from random import Random

import nasty
import pytest
from engines.conformance.integers import check
from engines.conformance.on_duckdb import created
from engines.conformance.sites import filled
from reference import ReferenceEngine

from dalenius.tables.sources.opening import open_source

PATHS = [(span, room) for span in (1 << 26, 0) for room in (1 << 30, 200)]
"""Units by subtraction or from a list; all rows at once or a few at a time."""


@pytest.mark.parametrize("seed", range(80))
def test_equal_to_the_reference(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(seed, *PATHS[seed % 4], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_equal_to_the_reference_at_length(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for span, room in PATHS:
        compare(seed, span, room, monkeypatch)


def compare(seed: int, span: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalenius.tables.engines.coding.SPAN", span)
    # As where words of 32 bits would be too short for all units together.
    monkeypatch.setattr("dalenius.tables.engines.fetching.SHORT", 3 if seed % 3 == 0 else 32)
    monkeypatch.setattr("dalenius.tables.engines.kernel_cells.STRETCH", 5)
    monkeypatch.setattr("dalenius.tables.engines.kernel_rows.STRETCH", 7)
    random = Random(seed)
    table = nasty.table(random)
    with created(filled(table)) as connection, ReferenceEngine(table.seen()).load(table.rows) as truth:
        engine = open_source(connection, "data", room=room)
        with engine.load(table.rows) as loaded:
            check(random, table, loaded, truth, widest=2**45)
        engine.close()
