"""Randomizers of numbers, distributions, ranges and vectors keep the promises of a mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from contract import Seen, check_audit, check_json, check_law, check_loss, check_mechanism
from measures import LISTED, VECTORS, named
from scipy.special import betainc

from dalenius.audits import audit
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import Estimator, PiecewiseResponse, PrivUnit, Randomizer
from dalenius.local.reports import HEAD
from dalenius.mechanisms.mechanism import Law
from dalenius.release import Release

REPORT = "one report has none; the estimator has those of many"


@pytest.mark.parametrize("one", LISTED, ids=named)
def test_contract(one: Randomizer) -> None:
    check_mechanism(one, barless=REPORT, trials=400_000)


@dataclass(frozen=True)
class Along(Seen):
    """Whether a fine draw is in the cap of the vector, in that of its opposite, or in neither."""

    def sample(self, value: object, size: int) -> np.ndarray:
        one = self.mechanism
        assert isinstance(one, PrivUnit)
        fine = one.draw(one.directions(np.repeat(one.read([value]), size, axis=0)))
        cosine = fine[:, 0] / np.sqrt((fine**2).sum(axis=1))
        return np.sign(cosine) * (np.abs(cosine) >= float(one.cut))


def along(one: PrivUnit) -> Along:
    half = (one.dimension - 1) / 2
    p, q = float(one.chance), float(betainc(half, half, (1 - float(one.cut)) / 2))

    def law(value: list[float]) -> Law:
        other = (1 - p) * q / (1 - q)
        masses = np.array([other, 1 - p - other, p])
        return Law((-1, 0, 1), masses if value[0] > 0 else masses[::-1])

    return Along(one, lambda draws: draws, law)


@pytest.mark.parametrize("one", VECTORS, ids=named)
def test_vectors(one: PrivUnit) -> None:
    """The claim is that of the worst of all that are as private: attained where nothing is left to chance."""
    shown = along(one)
    check_json(one)
    check_law(shown)
    check_loss(shown, attained=())
    check_audit(shown, trials=400_000)
    first, second = (shown.law(value).masses for value in one.worst_case())
    assert (first / second).max() == pytest.approx(float(one.ratio), rel=1e-4)
    check_audit_of_reports(one)


def check_audit_of_reports(one: PrivUnit) -> None:
    assert audit(one, confidence=1 - 1e-7, trials=40_000).holds


@dataclass(frozen=True)
class Near(PiecewiseResponse, kind="test_near_response"):
    """It is in its piece more often than it says."""

    def randomize(self, values: np.ndarray) -> np.ndarray:
        one, two = super().randomize(values), super().randomize(values)
        places = (values * self.steps) >> 48
        return np.where((one >= places) & (one < places + self.width), one, two)


def test_what_tells_more_than_it_says_is_caught() -> None:
    broken = Near(lower=0, upper=1, ratio=2, steps=4, width=3)
    for check in (check_law, lambda one: check_audit(one, trials=200_000)):
        with pytest.raises(AssertionError):
            check(broken)
    wide = PrivUnit.calibrate(dimension=2, epsilon=1)
    honest = along(wide)
    wide.__dict__["chance"] = (wide.chance + 1) / 2
    with pytest.raises(AssertionError):
        check_law(honest)


@pytest.mark.parametrize("one", [*LISTED, *VECTORS], ids=named)
def test_bytes_and_parts(one: Randomizer) -> None:
    """Reports and states come back; parts make the whole; cut or foreign bytes are refused."""
    first, second = one.worst_case()
    parts = [one.encode([first] * 5), one.encode([second] * 3), one.encode([])]
    data = parts[0].to_bytes()
    assert len(data) == HEAD.size + -(-5 * one.bits // 8)
    whole = one.estimator().add(parts[0] + parts[1])
    merged = Estimator.from_bytes(one.estimator().add(data).to_bytes(), one)
    merged = merged + one.estimator().add(parts[1].to_bytes()) + one.estimator().add(parts[2])
    assert merged.count == whole.count == 8 and (merged.tally == whole.tally).all()
    found = merged.estimate()
    assert found.columns == whole.estimate().columns
    assert Release.from_json(found.to_json()) == found
    for bad in (data[:-1], data + b"\0", b"", data[:5] + bytes(16) + data[21:]):
        with pytest.raises(InvalidArgument):
            one.estimator().add(bad)


@pytest.mark.parametrize("one", [*LISTED, *VECTORS], ids=named)
def test_who_takes_part_is_not_hidden(one: Randomizer) -> None:
    with pytest.raises(NotSound, match="add_remove"):
        replace(one, relation="add_remove")
