"""The ciphers in numpy give known answers, and the same bytes as `cryptography`."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import example, given
from hypothesis import strategies as some

from dalenius.noise import ciphers, tags, twins
from dalenius.noise.galois import LANES, Galois, product
from dalenius.noise.stream import StreamKey
from dalenius.noise.twins import AHEAD, SIZE, ChaCha, CounterMode, SingleBlocks

keys = some.binary(min_size=32, max_size=32)
starts = some.binary(min_size=16, max_size=16)
sizes = some.lists(some.integers(0, 3 * AHEAD * SIZE), max_size=4)


def test_aes_gives_the_known_answer() -> None:
    """FIPS 197, C.3."""
    key, plain = bytes(range(32)), bytes.fromhex("00112233445566778899aabbccddeeff")
    assert SingleBlocks(key).update(plain).hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_aes_counts_as_the_known_answer_does() -> None:
    """NIST SP 800-38A, F.5.5."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    made = CounterMode(key, bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")).update(plain)
    assert made.hex() == "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"


def test_chacha_gives_the_known_answer() -> None:
    """RFC 8439, 2.4.2."""
    plain = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it."
    )
    nonce = struct.pack("<I", 1) + bytes.fromhex("000000000000004a00000000")
    made = ChaCha(bytes(range(32)), nonce).update(plain).hex()
    assert made.startswith("6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b")
    assert made.endswith("5af90bbf74a35be6b40b8eedf2785e42874d")


def test_galois_gives_the_known_answer() -> None:
    """McGrew and Viega, the GCM specification, test case 13: an empty message under a key of zeros."""
    assert Galois(bytes(32)).tag([]).hex() == "530f8afbc74536b9a963b4f1c4cb738b"
    assert product(1 << 127, 12345) == 12345 and product(1 << 126, 1) == 0xE1 << 120


@given(key=keys, start=starts, pieces=sizes)
@example(key=bytes(32), start=b"\xff" * 16, pieces=[40, 5000])
@example(key=bytes(32), start=b"\7" * 8 + b"\xff" * 8, pieces=[1, 100, 7])
def test_keystreams_are_those_of_cryptography(key: bytes, start: bytes, pieces: list[int]) -> None:
    mine, theirs = CounterMode(key, start), Cipher(algorithms.AES256(key), modes.CTR(start)).encryptor()
    nonce = bytes(4) + start[4:]
    mine_too, theirs_too = ChaCha(key, nonce), Cipher(algorithms.ChaCha20(key, nonce), None).encryptor()
    for size in pieces:
        data = bytes(i % 251 for i in range(size))
        assert mine.update(data) == theirs.update(data)
        into = bytearray(size)
        assert mine_too.update_into(memoryview(data), memoryview(into)) == size
        assert bytes(into) == theirs_too.update(data)


@given(key=keys, blocks=some.integers(0, 5))
def test_single_blocks_are_those_of_cryptography(key: bytes, blocks: int) -> None:
    data = hashlib.sha256(key).digest() * 3
    theirs = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    assert SingleBlocks(key).update(data[: SIZE * blocks]) == theirs.update(data[: SIZE * blocks])


@pytest.mark.parametrize(
    "pieces",
    [[], [1], [16], [17, 0, 31], [LANES * SIZE], [5, LANES * SIZE - 5], [LANES * 40, 9, 7], [3, 65533]],
)
def test_tags_in_numpy_are_those_of_cryptography(pieces: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.random.default_rng(1)
    parts = [bits.bytes(size) for size in pieces]
    key = bits.bytes(32)
    true = tags.tag(key, parts, tags.GALOIS)
    blake = tags.tag(key, parts, tags.BLAKE)
    monkeypatch.setattr(ciphers, "COMPILED", False)
    assert tags.tag(key, parts, tags.GALOIS) == true and len(true) == tags.GALOIS
    assert tags.tag(key, parts, tags.BLAKE) == blake and len(blake) == tags.BLAKE
    assert tags.tag(key, [b"".join(parts)], tags.BLAKE) == blake
    assert tags.tag(key, [*parts, b"\0"], tags.GALOIS) != true
    assert tags.tag(key, [*parts, b"\0"], tags.BLAKE) != blake
    assert tags.tag(bytes(32), parts, tags.BLAKE) != blake


def test_without_cryptography_streams_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    key = StreamKey(bytes(range(32)), tainted=True)

    def drawn() -> list[bytes]:
        words = key.stream(1, 2).words(70000, np.uint64)
        return [words.tobytes(), key.addressed(3).run(5, 9000, 1).tobytes()]

    before = drawn()
    monkeypatch.setattr(ciphers, "COMPILED", False)
    assert isinstance(ciphers.counter_mode(bytes(32), bytes(16)), twins.CounterMode)
    assert drawn() == before


@pytest.mark.parametrize("size", [LANES * SIZE + more for more in (-17, -16, -15, -1, 0, 1, 15, 16)])
def test_tags_of_messages_that_fill_all_lanes(size: int) -> None:
    """The block that says how long a message is may be one too many for them."""
    key = bytes(range(32))
    mac = Cipher(algorithms.AES256(key), modes.GCM(bytes(12))).encryptor()
    mac.authenticate_additional_data(b"a" * size)
    mac.finalize()
    assert Galois(key).tag([b"a" * size]) == mac.tag == Galois(key).tag([b"a" * 5, b"a" * (size - 5)])


def test_a_counter_does_not_begin_again() -> None:
    last = ChaCha(bytes(32), b"\xff" * 4 + bytes(12))
    assert len(last.update(bytes(64))) == 64
    with pytest.raises(ValueError, match="its end"):
        last.update(b"x")


def test_keys_and_counters_have_their_length() -> None:
    for make in (lambda: CounterMode(bytes(33), bytes(16)), lambda: CounterMode(bytes(32), bytes(2))):
        with pytest.raises(ValueError, match="bytes"):
            make()
