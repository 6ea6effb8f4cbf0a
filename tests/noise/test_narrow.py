"""Draws of 32 bits: the laws are those of 64, in all branches, and what cannot be held is refused."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb

from dalenius.errors import InvalidArgument
from dalenius.noise import narrow, reference
from dalenius.noise.acceptance import Acceptance
from dalenius.noise.bits import Bits
from dalenius.noise.exponential import Laplace
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.law import Law
from dalenius.noise.narrow import NarrowSampler, fill_discrete_laplace, fill_rounded_gaussian
from dalenius.noise.source import active
from dalenius.noise.stream import StreamKey
from dalenius.noise.table import lay_out
from dalenius.noise.tail import TailSampler

FILLS = {"rounded_gaussian": fill_rounded_gaussian, "discrete_laplace": fill_discrete_laplace}
LAWS = {"rounded_gaussian": RoundedGaussian, "discrete_laplace": Laplace}


class Draws:
    """Vectors of a law by a fresh key, each from a path of its own."""

    def __init__(self, name: str, scale: int | Fraction) -> None:
        self.name, self.scale, self.key, self.step = name, scale, StreamKey.fresh(), 0

    def __call__(self, size: int) -> np.ndarray:
        self.step += 1
        values = np.full(size, 2**31 - 1, np.int32)
        FILLS[self.name](values, self.scale, self.key.stream(self.step))
        return values.astype(np.int64)


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, 7, 1000, 2**16, 2**20 + 1, 2**22, 2**23])
def test_the_law(name: str, scale: int | Fraction, follows, truth) -> None:
    follows(Draws(name, scale), 1_000_000, truth(name, scale))


def test_the_law_where_a_bin_needs_a_second_word(follows, truth) -> None:
    assert NarrowSampler(RoundedGaussian(Fraction(2**26))).table.shift > narrow.REST
    follows(Draws("rounded_gaussian", 2**26), 1_000_000, truth("rounded_gaussian", 2**26))


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("scale", [3, 10**6])
def test_few_slots_and_wide_bins(name: str, scale: int, follows, truth) -> None:
    """Every branch of the acceptance is frequent."""
    law = LAWS[name](Fraction(scale))
    made = NarrowSampler(law, lay_out(law, bits=6, fineness=1))
    key = StreamKey.fresh()

    def draw(size: int) -> np.ndarray:
        values = np.empty(size, np.int32)
        made.fill(values, key.stream())
        return values.astype(np.int64)

    follows(draw, 1_000_000, truth(name, scale))


class Listed(Bits):
    """Chosen words of 32 bits once, then those of a stream; further bits of places are all ones."""

    tainted = True

    def __init__(self, words: np.ndarray) -> None:
        self.chosen, self.rest = words, StreamKey.fresh().stream()

    def fill(self, words: np.ndarray) -> None:
        if words.dtype == np.uint16:
            words[:] = 2**16 - 1
        elif self.chosen.size:
            words[:], self.chosen = self.chosen[: words.size], self.chosen[words.size :]
        else:
            self.rest.fill(words)


@pytest.mark.parametrize("scale", [3, 1000, 2**20, 2**23, 2**26])
def test_each_word_means_its_slot_and_its_place(scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sure slots are what the table says, each with one place; all others, and only they, are settled."""
    settled: list[np.ndarray] = []
    settle = Acceptance.settle

    def recorded(self: Acceptance, slots: np.ndarray, *rest: object) -> object:
        settled.append(slots)
        return settle(self, slots, *rest)

    monkeypatch.setattr(Acceptance, "settle", recorded)
    made = NarrowSampler(RoundedGaussian(Fraction(scale)))
    table, slots = made.table, np.arange(2**narrow.BITS, dtype=np.uint32)
    words = slots << np.uint32(narrow.REST) | (slots * 2654435761 >> 7) % 2**narrow.REST
    words[table.sure] = table.sure << narrow.REST
    values = np.empty(slots.size, np.int32)
    made.fill(values, Listed(words.astype(np.uint32)))
    more = max(0, table.shift - narrow.REST)
    place = ((words & (2 ** min(table.shift, narrow.REST) - 1)) << more) + 2**more - 1
    expected = table.bins.astype(np.int64) * 2**table.shift + place
    assert (values == expected)[: table.sure].all()
    assert settled[0].tolist() == slots[table.sure :].tolist()


@pytest.mark.parametrize("low", [4, 8])
def test_places_in_a_bin_are_uniform(low: int, likely) -> None:
    """The last bits of draws, which no coarse cell would show."""
    values = Draws("rounded_gaussian", 2**20)(1_000_000)
    likely(np.bincount(values % 2**low, minlength=2**low).astype(float), np.full(2**low, 2.0**-low))


def test_the_reference_draws_the_same_law(same) -> None:
    ours = Draws("rounded_gaussian", 5)(20_000)
    theirs = reference.rounded_gaussian(5, 20_000)
    same(ours, theirs)


class Scripted(Bits):
    """Hands out one chosen word of 32 bits as the first of V, then fresh bits, which are kept."""

    tainted = True

    def __init__(self, word: int) -> None:
        self.value, self.known, self.word = word, 32, word

    def fill(self, words: np.ndarray) -> None:
        words[:] = self.word

    def integer(self, bits: int) -> int:
        drawn = active().integer(bits)
        self.value, self.known = (self.value << bits) | drawn, self.known + bits
        return drawn


@pytest.mark.parametrize("law", [RoundedGaussian(Fraction(2**20)), Laplace(Fraction(10**5))])
@pytest.mark.parametrize("share", [0, 0.3, 0.999])
def test_decisions_next_to_the_threshold_are_those_of_400_bits(law: Law, share: float) -> None:
    table = lay_out(law, bits=narrow.BITS, fineness=64)
    made, place = Acceptance(TailSampler(law, table)), int(share * 2**table.shift)
    decided = 0
    for row in range(0, table.doubtful, 29):
        k = (int(table.bins[table.sure + row]) << table.shift) + place
        with flint.ctx.workprec(400):
            height = law.weight(k) * arb(table.scale) * 2**table.shift - int(table.layers[row])
            if not (height > 0.001 and height < 0.999):
                continue
            middle = int(float((height * 2**32).mid().floor()))
            for bits in (Scripted(middle + step) for step in (-(2**21), -1, 0, 1, 2**20)):
                slots, places = np.array([table.sure + row], np.uint32), np.array([place], np.uint32)
                yes = made.settle(slots, places, bits.words(1, np.uint32), bits)[0][0]
                low, high = (arb(bits.value + end) / arb(2) ** bits.known for end in (0, 1))
                assert high <= height if yes else low >= height
                decided += 1
    assert decided > 20


def test_chunks_and_groups_do_not_matter(monkeypatch: pytest.MonkeyPatch, follows, truth) -> None:
    monkeypatch.setattr(narrow, "CHUNK", 7)
    monkeypatch.setattr(narrow, "GROUP", 21)
    follows(Draws("rounded_gaussian", 100), 50_000, truth("rounded_gaussian", 100))


@pytest.mark.parametrize("name", FILLS)
def test_the_same_path_and_size_give_the_same_draws_and_others_do_not(name: str) -> None:
    draws = Draws(name, 2**20)
    first = draws(200_000)
    draws.step = 0
    assert (draws(200_000) == first).all()
    assert (draws(200_000) == first).mean() < 1e-3


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4097])
def test_every_size_and_shape_is_filled(size: int) -> None:
    values = np.full((2, size), 2**31 - 1, np.int32)
    fill_rounded_gaussian(values, 2**16, StreamKey.fresh().stream())
    assert (np.abs(values) < 2**30).all()


@pytest.mark.parametrize(
    "values",
    [
        np.empty(4),
        np.empty(4, np.int64),
        np.empty(8, np.int32)[::2],
        [1, 2],
        np.frombuffer(bytes(8), np.int32),
    ],
)
def test_what_cannot_be_filled_is_refused(values: object) -> None:
    with pytest.raises(InvalidArgument):
        fill_rounded_gaussian(values, 10, StreamKey.fresh().stream())


@pytest.mark.parametrize(("name", "scale"), [("rounded_gaussian", 2**26), ("discrete_laplace", 2**23)])
def test_scales_that_could_saturate_are_refused(name: str, scale: int) -> None:
    values = np.empty(1000, np.int32)
    FILLS[name](values, scale, StreamKey.fresh().stream())
    for much in (scale + Fraction(1, 2), 2 * scale, 2**60, 0, -1, "x"):
        with pytest.raises(InvalidArgument):
            FILLS[name](values, much, StreamKey.fresh().stream())


def test_saturation_is_as_unlikely_as_stated() -> None:
    from scipy import special

    assert 2 * special.ndtr(-narrow.MOST / narrow.MOST_GAUSSIAN) < 1e-55
    assert 2 * np.exp(-narrow.MOST / narrow.MOST_LAPLACE) < 1e-55


@pytest.mark.parametrize("value", [2**30, -(2**30), 2**31, -(2**63) + 1])
def test_a_value_beyond_30_bits_saturates(monkeypatch: pytest.MonkeyPatch, value: int) -> None:
    """Reached by force: tails that are told to draw it, and to accept."""

    def forced(self: TailSampler, row: np.ndarray, bits: np.ndarray, source: object) -> tuple:
        return np.full(row.size, value), np.ones(row.size, bool)

    monkeypatch.setattr(TailSampler, "propose", forced)
    law = RoundedGaussian(Fraction(2**20))
    values = np.empty(10_000, np.int32)
    NarrowSampler(law, lay_out(law, bits=6, fineness=1)).fill(values, StreamKey.fresh().stream())
    end = 2**30 - 1 if value > 0 else 1 - 2**30
    assert (values == end).any()
    assert np.abs(values).max() == 2**30 - 1
