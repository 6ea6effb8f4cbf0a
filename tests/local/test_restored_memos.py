"""A memo that is restored gives the same responses: they follow from its secret, and from nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import (
    BitFlips,
    Client,
    HadamardResponse,
    HybridResponse,
    KaryResponse,
    LocalHashing,
    PrivUnit,
    ProjectiveResponse,
    Randomizer,
    Rappor,
    SquareWave,
    SubsetSelection,
    UnaryEncoding,
)

KARY = KaryResponse(domain=2**20, ratio=2)
SECRET = bytes(range(32))


def test_five_restores_give_one_response(tmp_path: Path) -> None:
    """Of a value that was not reported before the backup, too. Five draws are the same with 2^-76."""
    path, lock = tmp_path / "memo", tmp_path / "memo.lock"
    with Client(KARY, path) as client:
        client.report(1)
    for name in ("memo", "memo.lock"):
        shutil.copy(tmp_path / name, tmp_path / f"{name}.backup")
    sent = set()
    for _ in range(5):
        with Client(KARY, path) as client:
            sent.add(client.report(7).to_bytes())
        for kept in (path, lock):
            kept.unlink()
            shutil.copy(f"{kept}.backup", kept)
    assert len(sent) == 1


def test_a_backup_from_before_the_first_response_has_the_secret(tmp_path: Path) -> None:
    path, lock = tmp_path / "memo", tmp_path / "memo.lock"
    Client(KARY, path).close()
    kept = path.read_bytes(), lock.read_bytes()
    sent = set()
    for _ in range(3):
        with Client(KARY, path) as client:
            sent.add(client.report(7).to_bytes())
        path.write_bytes(kept[0])
        lock.write_bytes(kept[1])
    assert len(sent) == 1


def test_a_secret_needs_no_file() -> None:
    first = Client(KARY, secret=SECRET, survey="usage").report(7)
    assert Client(KARY, secret=SECRET, survey="usage").report(7) == first
    others = [
        Client(KARY, secret=SECRET, survey="crashes").report(7),
        Client(KARY, secret=SECRET + b"x", survey="usage").report(7),
        Client(KARY, secret=SECRET, survey="usage").report(8),
    ]
    assert first not in others and not first.tainted
    with pytest.raises(NotSound, match="seed"), noise.seeded(b"for a test"):
        Client(KARY, secret=SECRET).report(7)


def test_a_secret_is_long_and_has_no_file_beside_it(tmp_path: Path) -> None:
    for wrong in (b"short", "x" * 32, 7):
        with pytest.raises(InvalidArgument, match="32 bytes"):
            Client(KARY, secret=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="elsewhere"):
        Client(KARY, tmp_path / "memo", secret=SECRET)


def test_responses_of_many_secrets_have_the_law_of_the_randomizer() -> None:
    """Whether each is the item itself; at a false-alarm rate of 1e-9 a side."""
    oracle = KaryResponse.calibrate(domain=4, epsilon=1)
    own = sum(
        int(Client(oracle, secret=number.to_bytes(32, "little")).report(2).rows[0, 0]) == 2
        for number in range(2000)
    )
    chance = float(oracle.truth)
    assert binom.ppf(1e-9, 2000, chance) <= own <= binom.isf(1e-9, 2000, chance)


def test_responses_of_one_secret_are_independent() -> None:
    """Own items among many values of one device, at a false-alarm rate of 1e-9 a side."""
    oracle = KaryResponse.calibrate(domain=2000, epsilon=8)
    client = Client(oracle, secret=SECRET)
    own = sum(int(client.report(item).rows[0, 0]) == item for item in range(2000))
    chance = float(oracle.truth)
    assert binom.ppf(1e-9, 2000, chance) <= own <= binom.isf(1e-9, 2000, chance)


KNOWN: list[tuple[Randomizer, object, str]] = [
    (KaryResponse.calibrate(domain=2**20, epsilon=1), 7, "63e70d00"),
    (
        UnaryEncoding.optimized(domain=40, epsilon=1),
        7,
        "00010001000001000100010100010000000000010000010000000000000000000001000000000000",
    ),
    (LocalHashing.calibrate(domain=1000, epsilon=1), 7, "1104"),
    (HadamardResponse.calibrate(domain=1000, epsilon=1), 7, "e602"),
    (
        SubsetSelection.calibrate(domain=40, epsilon=1),
        7,
        "00000000000101000000000001000000010101000000000000000100000000000000010001010001",
    ),
    (ProjectiveResponse.calibrate(domain=1000, epsilon=1), 7, "ca02"),
    (BitFlips.calibrate(domain=40, epsilon=1, chosen=8), 7, "061a202a2c35374a"),
    (
        Rappor(width=32, hashes=2, cohorts=8, replaced=0.5, low=0, high=1),
        "home",
        "0101000100010000000000000101000100000101000000000100000000000101000100",
    ),
    (HybridResponse.calibrate(lower=0, upper=24, epsilon=1), 3.5, "ed04"),
    (SquareWave.calibrate(lower=0, upper=100, epsilon=1, bins=50), 40.0, "3d"),
    (PrivUnit.calibrate(dimension=3, epsilon=4), [0.6, 0.0, -0.8], "7a828082087a"),
]


@pytest.mark.parametrize(("randomizer", "value", "bytes_"), KNOWN, ids=lambda one: type(one).__name__)
def test_the_response_of_a_secret_never_changes(randomizer: Randomizer, value: object, bytes_: str) -> None:
    """A version that drew another one would be a second response of every device."""
    assert np.ravel(Client(randomizer, secret=SECRET).report(value).rows).tobytes().hex() == bytes_
