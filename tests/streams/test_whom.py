"""Whom a stream protects: no receipt for units of a column where single events are hidden."""

from __future__ import annotations

import pytest

from dalenius.errors import NotSound
from dalenius.privacy.unit import Unit
from dalenius.streams import TreeSum


@pytest.mark.parametrize("estimator", ["plain", "online", "full"])
def test_a_whole_stream_of_events_is_for_no_unit_of_a_column(estimator: str) -> None:
    mechanism = TreeSum(horizon=4, scale=3, estimator=estimator)
    with pytest.raises(NotSound, match="each event by itself"):
        mechanism.release([1, 0, 1, 1], unit=Unit("person", "person_id"))
    assert mechanism.release([1, 0, 1, 1], unit=Unit("visit")).receipt.unit == Unit("visit")


@pytest.mark.parametrize("unit", [Unit("visit"), Unit("person", column="who", window="day")])
def test_what_bounds_units_is_for_no_part_of_a_unit(unit: Unit) -> None:
    """Without one of its events, another of the same unit counts: both together move twice as far."""
    mechanism = TreeSum(horizon=4, scale=3, most=1)
    with pytest.raises(NotSound, match="all that a unit does together"):
        mechanism.start(unit=unit)
    assert mechanism.start(unit=Unit("person", column="who")).unit == Unit("person", column="who")
