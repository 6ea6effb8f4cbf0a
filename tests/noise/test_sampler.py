"""The rare branches, made frequent: few slots, wide bins, no doubles, no arrays in the tail. Same laws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from dalenius.noise import lazy, sampler, tail
from dalenius.noise.exponential import Laplace
from dalenius.noise.gaussian import DiscreteGaussian, RoundedGaussian
from dalenius.noise.law import Law
from dalenius.noise.sampler import Sampler
from dalenius.noise.source import active
from dalenius.noise.table import lay_out

LAWS = [
    ("discrete_laplace", Laplace(Fraction(1))),
    ("discrete_laplace", Laplace(Fraction(20))),
    ("discrete_laplace", Laplace(Fraction(10**6))),
    ("rounded_gaussian", RoundedGaussian(Fraction(1))),
    ("rounded_gaussian", RoundedGaussian(Fraction(20))),
    ("rounded_gaussian", RoundedGaussian(Fraction(10**6))),
    ("discrete_gaussian", DiscreteGaussian(Fraction(1))),
    ("discrete_gaussian", DiscreteGaussian(Fraction(20))),
    ("discrete_gaussian", DiscreteGaussian(Fraction(10**6))),
]


@dataclass(frozen=True)
class Blind(Law):
    """A law of which no doubles are known."""

    law: Law

    @property
    def spread(self) -> float:
        return self.law.spread

    def weight(self, k: int) -> arb:
        return self.law.weight(k)

    def drop(self, k: int, step: int) -> arb:
        return self.law.drop(k, step)


@pytest.mark.parametrize(("name", "law"), LAWS)
@pytest.mark.parametrize(("bits", "fineness"), [(6, 1), (7, 2)])
def test_few_slots_and_wide_bins(name, law, bits, fineness, follows, truth) -> None:
    """Up to a half of the slots are doubtful, and tails have several in a hundred."""
    table = lay_out(law, bits=bits, fineness=fineness)
    assert table.sure < 0.95 * 2**bits
    follows(lambda n: filled(Sampler(law, table), n), 1_000_000, truth(name, law.scale))


@pytest.mark.parametrize(("name", "law"), LAWS)
def test_balls_alone(name, law, follows, truth) -> None:
    _balls_alone(name, law, follows, truth, 60_000)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "law"), LAWS)
def test_balls_alone_a_million_times(name, law, follows, truth) -> None:
    _balls_alone(name, law, follows, truth, 1_000_000)


def _balls_alone(name, law, follows, truth, size) -> None:
    blind = Blind(law)
    table = lay_out(blind, bits=6, fineness=1)
    table = replace(table, low=np.full(table.doubtful, -np.inf), high=np.full(table.doubtful, np.inf))
    follows(lambda n: filled(Sampler(blind, table), n), size, truth(name, law.scale))


@pytest.mark.parametrize(("name", "law"), LAWS)
def test_tails_one_by_one(name, law, follows, truth) -> None:
    """With one coin by arrays, half of the proposals in tails are made as if they lay 2^63 blocks out."""
    table = lay_out(law, bits=5, fineness=1)
    assert sum(tail.slots for tail in table.tails) >= 2
    follows(lambda n: filled(Sampler(law, table, coins=1), n), 200_000, truth(name, law.scale))


@pytest.mark.parametrize(("name", "law"), LAWS)
def test_the_tail_by_itself(name, law, likely, truth) -> None:
    """Given that a draw lies beyond the bins, it falls into the blocks there as the law says."""
    table = lay_out(law, bits=5, fineness=1)
    values = filled(Sampler(law, table), 1_000_000)
    for side in table.tails:
        edges = side.first + side.away * side.block * np.arange(5.0)
        below = truth(name, law.scale).below
        beyond = 1 - below(edges - 1) if side.away > 0 else below(edges)
        edges = edges[beyond * values.size > 2000]
        beyond = beyond[: edges.size]
        counts = np.array([(side.away * values >= side.away * edge).sum() for edge in edges], float)
        likely(-np.diff(counts, append=0), -np.diff(beyond, append=0) / beyond[0])


def filled(made: Sampler, size: int) -> np.ndarray:
    values = np.empty(size, np.int64)
    made.fill(values, active())
    return values


def test_a_value_beyond_63_bits_saturates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reached by force: a tail that is told to lie 2^20 blocks out, and to accept."""
    law = Laplace(Fraction(2**50))
    table = lay_out(law, bits=5, fineness=1)
    made = tail.TailSampler(law, table, 1)
    monkeypatch.setattr(tail.TailSampler, "_farther", lambda self, source: 2**20)
    monkeypatch.setattr(tail.TailSampler, "_settle", lambda *a: True)
    values, accepted = made._draw(table.tails[0], active().words(64, np.uint32), active())
    assert accepted[values == 2**63 - 1].all()
    assert (values == 2**63 - 1).any()
    assert values.min() > 0


@pytest.mark.parametrize(("threshold", "expected"), [(0, False), (1, True)])
def test_comparisons_at_the_ends_need_no_bits(threshold: int, expected: bool) -> None:
    class Dry:
        def integer(self, bits: int) -> int:
            raise AssertionError("no bits are needed")

    assert lazy.below(lambda: lazy.ball(Fraction(threshold)), Dry()) is expected


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 2), Fraction(10**30 - 1, 10**30)])
def test_a_lazy_comparison_is_that_of_exact_arithmetic(chance: Fraction) -> None:
    """The bits handed out are kept, and the fraction they spell is compared exactly."""

    class Recorder:
        def __init__(self) -> None:
            self.value, self.bits = 0, 0

        def integer(self, bits: int) -> int:
            drawn = active().integer(bits)
            self.value, self.bits = (self.value << bits) | drawn, self.bits + bits
            return drawn

    for _ in range(300):
        recorder = Recorder()
        less = lazy.below(lambda: lazy.ball(chance), recorder)
        low, high = (Fraction(recorder.value + end, 1 << recorder.bits) for end in (0, 1))
        assert high <= chance if less else low >= chance


def test_a_bit_string_equal_to_the_threshold_is_carried_on() -> None:
    """1/3 = 0.010101…: the same bits for 320 places, then fewer or more."""

    class Scripted:
        def __init__(self, last: int) -> None:
            self.words = [0x5555555555555555] * 4 + [last]

        def integer(self, bits: int) -> int:
            return self.words.pop(0)

    def third() -> arb:
        return lazy.ball(Fraction(1, 3))

    assert lazy.below(third, Scripted(0x5555555555555554))
    assert not lazy.below(third, Scripted(0x5555555555555556))


def test_chunks_and_groups_do_not_matter(monkeypatch: pytest.MonkeyPatch, follows, truth) -> None:
    monkeypatch.setattr(sampler, "CHUNK", 7)
    monkeypatch.setattr(sampler, "GROUP", 21)
    made = Sampler(DiscreteGaussian(Fraction(3)))
    follows(lambda n: filled(made, n), 100_000, truth("discrete_gaussian", 3))
