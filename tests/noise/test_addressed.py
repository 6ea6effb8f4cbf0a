"""Draws by address: the cipher by known answers, the law in all branches, and any part as in the whole."""

from __future__ import annotations

import os
import struct
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from dalenius.noise import addressed, chacha
from dalenius.noise.addressed import AddressedSampler, Further
from dalenius.noise.chacha import MOST, TILE, Addressed
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.narrow import NarrowSampler
from dalenius.noise.stream import StreamKey
from dalenius.noise.table import lay_out


def coarse(scale: int) -> AddressedSampler:
    """Every branch of the acceptance is frequent."""
    law = RoundedGaussian(Fraction(scale))
    return AddressedSampler(NarrowSampler(law, lay_out(law, bits=6, fineness=1)))


def test_the_cipher_gives_the_known_answer() -> None:
    """RFC 8439, 2.3.2."""
    nonce = struct.unpack("<3I", bytes.fromhex("000000090000004a00000000"))
    words = chacha.blocks(struct.unpack("<8I", bytes(range(32))), np.array([1], np.uint32), nonce)
    assert words[:, 0].astype("<u4").tobytes().hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


@given(start=some.integers(0, 3 * TILE), size=some.integers(0, TILE + 300), attempt=some.integers(0, 3))
def test_a_run_of_words_is_that_of_its_addresses(start: int, size: int, attempt: int) -> None:
    stream = Addressed(bytes(range(32)), tainted=True)
    words = stream.run(start, start + size, 1, attempt)
    assert (words == stream.at(np.arange(start, start + size), 1, attempt)).all()


def test_no_two_addresses_share_a_word_of_a_block() -> None:
    entries = np.arange(4 * TILE)
    tile, within = np.divmod(entries, TILE)
    places = (tile * chacha.ACROSS + within % chacha.ACROSS) * chacha.WORDS + within // chacha.ACROSS
    assert np.unique(places).size == entries.size
    assert MOST // TILE * chacha.ACROSS == 2**32


@pytest.mark.parametrize("scale", [1, 1000, 2**20, 2**26])
def test_the_law(scale: int, follows, truth) -> None:
    def draw(size: int) -> np.ndarray:
        stream = StreamKey.fresh().addressed(1)
        return addressed.rounded_gaussian(scale).draw(stream, 0, size).astype(np.int64)

    follows(draw, 300_000, truth("rounded_gaussian", scale))


@pytest.mark.parametrize("scale", [3, 10**6])
def test_the_law_where_most_slots_are_doubtful(scale: int, follows, truth) -> None:
    def draw(size: int) -> np.ndarray:
        return coarse(scale).draw(StreamKey.fresh().addressed(1), 77, 77 + size).astype(np.int64)

    follows(draw, 30_000, truth("rounded_gaussian", scale))


@given(cuts=some.lists(some.integers(0, 9000), max_size=4))
@settings(max_examples=25)
def test_a_part_has_the_draws_of_the_whole(cuts: list[int]) -> None:
    stream, sampler = Addressed(bytes(31) + b"1", tainted=True), coarse(10)
    ends = sorted([0, *cuts, 9000])
    parts = [sampler.draw(stream, a, b) for a, b in pairwise(ends)]
    assert (np.concatenate(parts) == sampler.draw(stream, 0, 9000)).all()


def test_an_entry_that_failed_goes_on_from_its_next_attempt() -> None:
    stream, sampler = Addressed(os.urandom(32), tainted=True), coarse(10)
    words = stream.run(0, 4000, addressed.WORD)
    unsure = np.flatnonzero(sampler.narrow.read(words)[0] >= sampler.narrow.table.sure)
    first, later = sampler.settled(stream, unsure), sampler.settled(stream, unsure, attempt=1)
    assert (first == sampler.draw(stream, 0, 4000)[unsure]).all()
    assert 0 < (first == later).mean() < 1


def test_further_bits_are_those_of_an_entry_and_an_attempt() -> None:
    stream = Addressed(os.urandom(32), tainted=True)
    drawn = [Further(stream, entry, attempt).integer(256) for entry in (0, 1, 2**32) for attempt in (0, 1)]
    drawn += [int.from_bytes(stream.run(0, 8, purpose).tobytes(), "little") for purpose in range(4)]
    assert len(set(drawn)) == len(drawn)
    assert Further(stream, 1, 1).integer(256) == drawn[3]


def test_paths_have_keys_of_their_own() -> None:
    key = StreamKey.fresh()
    assert len({key.addressed(*path).key for path in ((), (1,), (2,), (1, 1))}) == 4
    assert key.addressed(5) == key.addressed(5)
