"""Streams: the cipher and the keys of paths by known answers, and the same bits wherever they are made."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.sampler import Sampler
from dalenius.noise.source import BLOCK
from dalenius.noise.stream import Stream, StreamKey, written

KEY = StreamKey(bytes(range(32)), tainted=False)
PATHS = st.lists(st.integers(0, 2**21 - 1), max_size=5).map(tuple)


def block(key: bytes, plain: bytes) -> bytes:
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(plain)


def test_the_cipher_gives_the_known_answer() -> None:
    """FIPS 197, C.3: AES-256 of 00112233445566778899aabbccddeeff under 000102…1f."""
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert block(KEY.secret, plain).hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_counters_begin_at_zero_and_count_by_one() -> None:
    """SP 800-38A, 6.5, with blocks of ECB, over more than one call to the cipher."""
    key = bytes(31) + b"\7"
    drawn = Stream(key, tainted=False).words(2 * BLOCK, np.uint8).tobytes()
    for i in (0, 1, 2, 255, 256, BLOCK // 16, 2 * BLOCK // 16 - 1):
        assert drawn[16 * i : 16 * i + 16] == block(key, i.to_bytes(16, "big"))


def test_the_key_of_a_path_is_two_blocks_of_the_key_of_the_run() -> None:
    """300 = 2·128 + 44: the path (1, 300) is 01, ac 02, zeros, and 2 numbers."""
    name = bytes.fromhex("01ac02" + 12 * "00")
    key = block(KEY.secret, name + b"\4") + block(KEY.secret, name + b"\5")
    expected = Stream(key, tainted=False).words(100, np.uint64)
    assert (KEY.stream(1, 300).words(100, np.uint64) == expected).all()


@given(PATHS, PATHS)
def test_paths_are_written_differently_if_they_differ(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assert len(written(a)) == 16
    assert written(a)[-1] % 2 == 0
    assert (written(a) == written(b)) == (a == b)


def test_paths_that_look_alike_are_written_differently() -> None:
    paths = [(), (0,), (0, 0), (1,), (1, 0), (0, 1), (128,), (0, 128), (128, 1), (16512,), (1, 1), (129,)]
    assert len({written(path) for path in paths}) == len(paths)
    assert len({KEY.stream(*path).integer(128) for path in paths}) == len(paths)


@pytest.mark.parametrize("path", [(-1,), (1.0,), ("1",), (True,), (1,) * 16, (2**106,), (2**21,) * 5])
def test_what_is_no_path_is_refused(path: tuple[object, ...]) -> None:
    with pytest.raises(InvalidArgument):
        KEY.stream(*path)


def test_words_of_all_widths_are_the_stream_in_order() -> None:
    stream, whole = KEY.stream(3), KEY.stream(3).words(15 + BLOCK + 8, np.uint8).tobytes()
    parts = [stream.words(7, np.uint8), stream.words(4, np.uint16), stream.words(BLOCK // 4, np.uint32)]
    assert b"".join(part.tobytes() for part in parts) + stream.integer(64).to_bytes(8, "little") == whole


def test_arrays_of_any_shape_are_filled_whole_or_refused() -> None:
    flat = KEY.stream(4).words(24, np.uint16)
    square = np.zeros((2, 3, 4), np.uint16)
    KEY.stream(4).fill(square)
    assert (square.reshape(-1) == flat).all()
    assert KEY.stream(4).words(0, np.uint32).size == 0
    with pytest.raises(TypeError):
        KEY.stream(4).fill(square[:, :, ::2])


PROGRAM = """
import numpy as np
from dalenius.noise.narrow import fill_rounded_gaussian
from dalenius.noise.stream import StreamKey
values = np.empty(100_000, np.int32)
fill_rounded_gaussian(values, 2**20, StreamKey(bytes(range(32)), tainted=False).stream(5, 6))
print(hash(values.tobytes()))
"""


def test_another_process_makes_the_same_noise() -> None:
    """Two processes, with the same salt of Python's hash."""
    call = [sys.executable, "-c", PROGRAM]
    found = [
        subprocess.run(call, env={**os.environ, "PYTHONHASHSEED": "1"}, capture_output=True, check=True)
        for _ in range(2)
    ]
    assert found[0].stdout == found[1].stdout != b""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_goes_on_with_the_same_bits() -> None:
    stream = KEY.stream(8)
    stream.words(1000, np.uint16)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, stream.words(64, np.uint64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 4096) == stream.words(64, np.uint64).tobytes()
    os.close(read)
    os.close(write)


def test_a_fresh_key_is_new_and_as_tainted_as_its_source() -> None:
    assert StreamKey.fresh().secret != StreamKey.fresh().secret
    assert not StreamKey.fresh().tainted
    keys = []
    for _ in range(2):
        with noise.seeded(b"a test"):
            keys.append(StreamKey.fresh())
    assert keys[0] == keys[1]
    assert keys[0].tainted
    assert keys[0].stream(1).tainted


def test_no_text_shows_the_key() -> None:
    key = StreamKey(b"k" * 32, tainted=False)
    for text in (repr(key), str(key), repr(key.stream(1)), str(vars(key.stream(1)))):
        assert "kk" not in text
        assert key.secret.hex()[:8] not in text


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33), "x" * 32])
def test_a_secret_of_another_length_is_refused(secret: object) -> None:
    with pytest.raises(InvalidArgument):
        StreamKey(secret, tainted=False)


def test_the_sampler_of_64_bits_draws_from_a_stream(follows, truth) -> None:
    made = Sampler(RoundedGaussian(Fraction(1000)))
    streams = iter(range(100))

    def draw(size: int) -> np.ndarray:
        values = np.empty(size, np.int64)
        made.fill(values, StreamKey.fresh().stream(next(streams)))
        return values

    follows(draw, 1_000_000, truth("rounded_gaussian", 1000))


def test_coins_and_uniform_integers_come_from_a_stream_if_it_is_given(likely) -> None:
    """The law, and the same draws for the same path. False alarms at 2e-9."""
    key = StreamKey.fresh()
    draws = [
        lambda bits: noise.bernoulli("1/3", 200_000, bits=bits),
        lambda bits: noise.bernoulli_exp("1/2", 200_000, bits=bits),
        lambda bits: noise.uniform(3, 200_000, bits=bits),
        lambda bits: noise.uniform(2**70, 20, bits=bits),
    ]
    for draw in draws:
        assert (draw(key.stream(1)) == draw(key.stream(1))).all()
        assert (draw(key.stream(1)) != draw(key.stream(2))).any()
    heads = draws[0](key.stream(3))
    likely(np.bincount(heads).astype(float), np.array([2 / 3, 1 / 3]))
    likely(np.bincount(draws[2](key.stream(4))).astype(float), np.full(3, 1 / 3))
