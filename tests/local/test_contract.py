"""Every randomizer keeps the promises of a mechanism: its law, its loss, the audit of its probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from contract import check_audit, check_json, check_law, check_mechanism
from deployed import DEPLOYED
from measures import LISTED, VECTORS
from oracles import SMALL, named

import dalenius.local as package
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import FrequencyOracle, KaryResponse, Randomizer, UnaryEncoding
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.privacy.unit import Unit

REPORT = "one report has none; the estimator has those of many"


@pytest.mark.parametrize("oracle", SMALL, ids=named)
def test_contract(oracle: FrequencyOracle) -> None:
    check_mechanism(oracle, barless=REPORT, trials=400_000)


def test_every_randomizer_is_held_to_it() -> None:
    exported = [getattr(package, name) for name in package.__all__]
    kinds = {one for one in exported if isinstance(one, type) and issubclass(one, Mechanism)}
    held = {type(one) for one in (*SMALL, *DEPLOYED, *LISTED, *VECTORS)}
    assert held == kinds - {Randomizer, FrequencyOracle}


@dataclass(frozen=True)
class Telling(KaryResponse, kind="test_telling_response"):
    """It tells the truth more often than it says."""

    def coins(self, size: int) -> np.ndarray:
        return super().coins(size) | super().coins(size)


@dataclass(frozen=True)
class Stuck(UnaryEncoding, kind="test_stuck_encoding"):
    """The first bit is never cleared for who has it, as in RAPPOR clients of pure-ldp 1.2.0."""

    def randomize(self, values: np.ndarray) -> np.ndarray:
        rows = super().randomize(values)
        rows[values == 0, 0] = 1
        return rows


@pytest.mark.parametrize(
    "broken", [Telling(domain=5, ratio=2), Stuck(domain=3, own=0.5, other=0.25)], ids=named
)
def test_what_tells_more_than_it_says_is_caught(broken: FrequencyOracle) -> None:
    check_json(broken)
    with pytest.raises(AssertionError):
        check_law(broken)
    with pytest.raises(AssertionError):
        check_audit(broken, trials=200_000)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, 4, 10])
def test_the_loss_is_the_epsilon_that_was_asked_for_and_no_more(epsilon: float) -> None:
    for name, variance, _ in FrequencyOracle.choose(50, epsilon).considered:
        assert variance > 0, name
    for made in SMALL:
        calibrate = [getattr(type(made), name, None) for name in ("calibrate", "optimized", "symmetric")]
        for one in (make(domain=50, epsilon=epsilon) for make in calibrate if make):
            upper = one.loss.epsilon(0).upper
            assert epsilon * (1 - 1e-11) <= upper <= epsilon


def test_who_takes_part_is_not_hidden() -> None:
    with pytest.raises(NotSound, match="add_remove") as refusal:
        KaryResponse(domain=3, ratio=2, relation="add_remove")
    assert "zero_out" in refusal.value.remedy
    hidden = KaryResponse(domain=3, ratio=2, relation="zero_out")
    unit = Unit("person", relation="zero_out")
    assert hidden.release([1, None], unit=unit).receipt.unit == unit
    assert Mechanism.from_json(hidden.to_json()) == hidden


@pytest.mark.parametrize("bad", [1, 0, -1, float("nan"), 2**61])
def test_bad_parameters_are_refused_by_name(bad: float) -> None:
    with pytest.raises(InvalidArgument, match="ratio"):
        KaryResponse(domain=3, ratio=bad)
    if bad != 2**61:
        with pytest.raises(InvalidArgument, match="domain"):
            KaryResponse(domain=bad, ratio=Fraction(2))
