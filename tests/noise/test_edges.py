"""Decisions at the very edge, where a mistake shifts a law by 2^−32 and no sample would show it.

A scripted source puts V next to the threshold, and each answer is compared with that of 400 bits.
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb

from dalenius import noise
from dalenius.noise import selection
from dalenius.noise import source as sources
from dalenius.noise.acceptance import Acceptance
from dalenius.noise.exponential import Laplace
from dalenius.noise.gaussian import DiscreteGaussian, RoundedGaussian
from dalenius.noise.law import Law
from dalenius.noise.sampler import Sampler
from dalenius.noise.source import Source
from dalenius.noise.table import lay_out
from dalenius.noise.tail import TailSampler

LAWS: list[Law] = [
    Laplace(Fraction(1)),
    Laplace(Fraction(1000)),
    DiscreteGaussian(Fraction(3)),
    DiscreteGaussian(Fraction(10**6)),
    RoundedGaussian(Fraction(3)),
    RoundedGaussian(Fraction(1000)),
]
STEPS = [-2, -1, 0, 1, 2]


class Scripted(Source):
    """Hands out chosen words of 32 bits and zeros as words of 64, and keeps what is drawn beyond them."""

    def __init__(self, words: list[int]) -> None:
        super().__init__()
        self.script = words
        self.drawn: list[int] = []

    def words(self, count, kind):
        if kind is np.uint32:
            return np.array(self.script, np.uint32)
        return np.ones(count, kind)

    def integer(self, bits: int) -> int:
        self.drawn.append(super().integer(bits))
        return self.drawn[-1]

    def value(self, word: int) -> tuple[arb, arb]:
        """The ends of V after the word and what was drawn since."""
        number, bits = word, 32
        for more in self.drawn:
            number, bits = (number << 64) | more, bits + 64
        return arb(number) / arb(2) ** bits, arb(number + 1) / arb(2) ** bits


def agrees(answer: bool, source: Scripted, word: int, threshold: arb) -> bool:
    low, high = source.value(word)
    return bool(high <= threshold if answer else low >= threshold)


def words_near(threshold: arb) -> list[int]:
    middle = int(float((threshold * 2**32).mid().floor()))
    return [w for w in (middle + step for step in STEPS) if 0 <= w < 2**32]


@pytest.mark.parametrize("law", LAWS)
def test_bins(law: Law) -> None:
    table = lay_out(law)
    made = Sampler(law, table)
    for row in range(0, table.doubtful, max(1, table.doubtful // 40)):
        k = int(table.bins[table.sure + row]) << table.shift
        with flint.ctx.workprec(400):
            height = law.weight(k) * arb(table.scale) * 2**table.shift - int(table.layers[row])
            for word in words_near(height) if height > 0 and height < 1 else []:
                source = Scripted([word])
                answer = made._accept(np.array([table.sure + row], np.uint16), np.array([k]), source)
                assert agrees(bool(answer[0]), source, word, height)


@pytest.mark.parametrize("law", LAWS)
def test_tails(law: Law) -> None:
    """Words of ones are J = 0 and the second place of the first block."""
    table = lay_out(law)
    made = Sampler(law, table)._tails
    for tail in table.tails:
        k = tail.first + tail.away * min(1, tail.block - 1)
        with flint.ctx.workprec(400):
            threshold = law.weight(k) * arb(table.scale) * 2 * tail.block / tail.slots
            for word in words_near(threshold):
                source = Scripted([word])
                values, answer = made._draw(tail, np.array([word], np.uint32), source)
                assert values[0] == k
                assert agrees(bool(answer[0]), source, word, threshold)


@pytest.mark.parametrize("reach", [0, 3, 12])
@pytest.mark.parametrize("law", LAWS)
def test_tails_as_a_whole(law: Law, reach: int) -> None:
    """What is not made, because its V is beyond the bound of a tail, would not have passed."""
    table = lay_out(law, reach=reach)
    made, slot = Acceptance(TailSampler(law, table)), table.sure + table.doubtful
    for tail in table.tails:
        with flint.ctx.workprec(400):
            # Words of 64 bits are ones: J = 0, and the second place of the first block.
            k = tail.first + tail.away * min(1, tail.block - 1)
            unit = arb(table.scale) * 2 * tail.block / tail.slots
            assert law.weight(tail.first) * unit <= arb(tail.bound)
            for word in {*words_near(law.weight(k) * unit), *words_near(arb(tail.bound))}:
                source = Scripted([word])
                passed, far, found = made.settle(
                    np.array([slot]), np.zeros(1, np.int64), np.array([word], np.uint32), source
                )
                assert agrees(bool(passed[0]), source, word, law.weight(k) * unit)
                assert not far.size or found[0] == k
        slot += tail.slots


@pytest.mark.parametrize("law", LAWS)
def test_a_longer_reach_leaves_less_to_tails(law: Law) -> None:
    near, far = (lay_out(law, reach=reach) for reach in (0, 12))
    left = [sum(tail.slots * min(1, tail.bound) for tail in table.tails) for table in (near, far)]
    assert left[1] < left[0] / 30


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 2), Fraction(2**40 - 1, 2**40), Fraction(1)])
def test_coins(chance: Fraction) -> None:
    with flint.ctx.workprec(400):
        threshold = arb(chance.numerator) / chance.denominator
        for word in words_near(threshold):
            source = Scripted([word])
            token = sources._CURRENT.set(source)
            try:
                assert agrees(bool(noise.bernoulli(chance, 1)[0]), source, word, threshold)
            finally:
                sources._CURRENT.reset(token)


@pytest.mark.parametrize("distance", [0, 1, 7, 50])
def test_weighted_coins(distance: int) -> None:
    weights = selection.Weights.of(np.array([0, -distance]), Fraction(1, 3))
    with flint.ctx.workprec(400):
        threshold = (-arb(distance) / 3).exp()
        for word in words_near(threshold):
            source = Scripted([word])
            ends = weights.value[1:] - weights.off[1:], weights.value[1:] + weights.off[1:]
            answer = selection._coins(*ends, lambda i: weights.exact(1), source)
            assert agrees(bool(answer[0]), source, word, threshold)


def test_proposals_of_the_exponential_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two equal candidates with n slots each, integers 0 … n − 1 mean the first, n … 2n − 1 the second."""
    limits: list[int] = []

    def ends(limit: int, size: int, source: Source) -> np.ndarray:
        limits.append(limit)
        return np.array([0, limit // 2 - 1, limit // 2, limit - 1])

    monkeypatch.setattr(selection, "int64_below", ends)
    monkeypatch.setattr(selection, "_propose", lambda weights, index, *rest: np.ones(index.size, bool))
    assert noise.exponential_mechanism([5, 5], 1, 4).tolist() == [0, 0, 1, 1]
    assert limits[0] % 2 == 0
    assert limits[0] < 2**63
