"""A signed receipt can be checked with the public key alone, and says what it was signed for."""

from __future__ import annotations

import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dalenius as dp
from dalenius import mechanisms
from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.ledger import is_signed, new_key
from dalenius.losses import Pure
from dalenius.release import Receipt, Release

COUNT = mechanisms.Laplace(scale=10, sensitivity=1)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, str]:
    folder = tmp_path_factory.mktemp("signed")
    public = new_key(folder / "key.pem")
    with dp.Ledger(folder / "people.ledger", key=folder / "key.pem") as ledger:
        people = ledger.open("people", unit=dp.Unit("person", column="id"), budget=dp.Budget(1))
        return people.spend(COUNT, 100, by="ana"), public


def test_the_key_file_is_its_owners_alone_and_is_not_replaced(tmp_path: Path) -> None:
    public = new_key(tmp_path / "key.pem")
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert "PUBLIC" in public and "PRIVATE" not in public
    held = (tmp_path / "key.pem").read_bytes()
    with pytest.raises(InvalidArgument, match="There is a file"):
        new_key(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").read_bytes() == held


def test_a_receipt_is_checked_with_the_public_key_only(signed: tuple[Release, str], tmp_path: Path) -> None:
    release, public = signed
    assert is_signed(release.receipt, public)
    assert is_signed(Release.from_json(release.to_json()).receipt, public), "also from what was published"
    assert not is_signed(release.receipt, new_key(tmp_path / "other.pem"))


def changes(receipt: Receipt) -> dict[str, Receipt]:
    entry, unit = receipt.entry, receipt.unit
    assert entry is not None and unit is not None
    return {
        "loss": replace(receipt, loss=Pure(0.01)),
        "mechanism": replace(receipt, mechanism=mechanisms.Laplace(scale=99, sensitivity=1).to_json()),
        "numerics": replace(receipt, numerics="exact"),
        "bounds": replace(receipt, bounds=("at most 3 records each",)),
        "entity": replace(receipt, unit=replace(unit, entity="city")),
        "relation": replace(receipt, unit=replace(unit, relation="replace")),
        "no unit": replace(receipt, unit=None),
        "tainted": replace(receipt, tainted=True),
        "account": replace(receipt, entry=replace(entry, account="cities")),
        "number": replace(receipt, entry=replace(entry, number=entry.number + 1)),
        "hash": replace(receipt, entry=replace(entry, hash="0" * 64)),
        "left": replace(receipt, entry=replace(entry, left="100 % of epsilon 1")),
        "signature": replace(receipt, entry=replace(entry, signature="00" * 64)),
        "odd signature": replace(receipt, entry=replace(entry, signature="0")),
        "no signature": replace(receipt, entry=replace(entry, signature=None)),
        "no entry": replace(receipt, entry=None),
    }


def test_any_change_of_what_it_states_breaks_the_signature(signed: tuple[Release, str]) -> None:
    release, public = signed
    survived = [name for name, other in changes(release.receipt).items() if is_signed(other, public)]
    assert survived == []


def test_post_processing_does_not(signed: tuple[Release, str]) -> None:
    release, public = signed
    after = release.clamp(lower=0).round()
    assert after.receipt.postprocessing and is_signed(after.receipt, public)


def test_without_a_key_nothing_is_signed_and_what_is_no_key_is_refused(tmp_path: Path) -> None:
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(1))
    release = people.spend(COUNT, 100, by="ana")
    public = new_key(tmp_path / "key.pem")
    assert release.receipt.entry is not None and release.receipt.entry.signature is None
    assert not is_signed(release.receipt, public)
    (tmp_path / "text").write_text("not a key")
    for path in (tmp_path / "text", tmp_path / "missing"):
        with pytest.raises(InvalidArgument, match="private key"):
            dp.Ledger(people.ledger.store, key=path)
    with pytest.raises(InvalidArgument, match="public key"):
        is_signed(release.receipt, "not a key")


def test_without_cryptography_nothing_is_signed_or_checked(
    signed: tuple[Release, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_key(tmp_path / "key.pem")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    for refused in (
        lambda: new_key(tmp_path / "another.pem"),
        lambda: dp.Ledger(tmp_path / "ledger", key=tmp_path / "key.pem"),
        lambda: is_signed(signed[0].receipt, signed[1]),
    ):
        with pytest.raises(MissingExtra, match="pip install cryptography"):
            refused()
    assert not (tmp_path / "another.pem").exists()
