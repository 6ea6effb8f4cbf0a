"""Tables: slots add up to a power of two, and the envelope dominates the law, in balls."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.noise.counts import Binomial, Skellam
from dalenius.noise.ends import enclose
from dalenius.noise.exponential import Geometric, Laplace
from dalenius.noise.gaussian import DiscreteGaussian, RoundedGaussian
from dalenius.noise.law import Law
from dalenius.noise.table import Table, lay_out

SCALES = st.one_of(st.fractions(Fraction(1, 50), 300), st.integers(1, 2**50).map(Fraction))
LAWS = st.one_of(
    st.builds(Laplace, SCALES),
    st.builds(DiscreteGaussian, SCALES),
    st.builds(RoundedGaussian, SCALES),
    st.builds(Geometric, st.fractions(Fraction(1, 10**9), Fraction(999, 1000)).filter(lambda p: p > 0)),
    st.builds(Skellam, st.fractions(Fraction(1, 100), 10**5)),
    st.builds(Binomial, st.integers(1, 10**5), st.fractions(Fraction(1, 1000), Fraction(999, 1000))),
)


def slots_by_bin(table: Table) -> dict[int, tuple[int, int]]:
    """How many slots each bin has, and how many of them are sure."""
    inner = table.sure + table.doubtful
    bins, counts = np.unique(table.bins[:inner], return_counts=True)
    sure = dict(zip(*np.unique(table.bins[: table.sure], return_counts=True), strict=True))
    return {int(b): (int(n), int(sure.get(b, 0))) for b, n in zip(bins, counts, strict=True)}


@settings(max_examples=60)
@given(law=LAWS, bits=st.sampled_from([7, 10, 16]), fineness=st.sampled_from([2, 32]))
def test_the_envelope_dominates_the_law(law: Law, bits: int, fineness: int) -> None:
    table = lay_out(law, bits=bits, fineness=fineness)
    width = 1 << table.shift
    with flint.ctx.workprec(300):
        for b, (slots, sure) in slots_by_bin(table).items():
            ends = [law.weight(b * width), law.weight(b * width + width - 1)]
            near, far = ends if b >= 0 else ends[::-1]
            unit = arb(table.scale) * width
            assert not near * unit > slots
            assert not far * unit < sure
            assert sure <= slots


@settings(max_examples=60)
@given(law=LAWS, bits=st.sampled_from([7, 10, 16]), fineness=st.sampled_from([2, 32]))
def test_slots_add_up_and_layers_count(law: Law, bits: int, fineness: int) -> None:
    table = lay_out(law, bits=bits, fineness=fineness)
    tails = sum(tail.slots for tail in table.tails)
    assert table.bins.size == 1 << bits >= table.sure + table.doubtful + tails
    inner = table.bins[table.sure : table.sure + table.doubtful]
    for b, (slots, sure) in slots_by_bin(table).items():
        assert table.layers[inner == b].tolist() == list(range(sure, slots))
    names = sorted(slots_by_bin(table))
    assert names == list(range(names[0], names[-1] + 1))


@settings(max_examples=60)
@given(law=LAWS, bits=st.sampled_from([7, 16]), fineness=st.sampled_from([2, 32]))
def test_tails_begin_where_bins_end_and_halve(law: Law, bits: int, fineness: int) -> None:
    table = lay_out(law, bits=bits, fineness=fineness)
    names = sorted(slots_by_bin(table))
    beyond = {1: (names[-1] + 1) << table.shift, -1: (min(names[0], 0) << table.shift) - 1}
    assert set(beyond) >= {tail.away for tail in table.tails}
    with flint.ctx.workprec(300):
        for away, first in beyond.items():
            tail = next((tail for tail in table.tails if tail.away == away), None)
            if tail is None:
                assert law.weight(first) == 0
                continue
            assert (tail.first, tail.block & (tail.block - 1)) == (first, 0)
            height = law.weight(first) * arb(table.scale)
            assert not 2 * tail.block * height > tail.slots
            for block in range(5):
                at = law.weight(first + away * block * tail.block)
                assert not at > law.weight(first) / 2**block


def test_a_usual_table_is_mostly_sure() -> None:
    for scale in (1, 1000, 10**6):
        for law in (
            Laplace(Fraction(scale)),
            RoundedGaussian(Fraction(scale)),
            DiscreteGaussian(Fraction(scale)),
        ):
            assert lay_out(law).sure > 0.96 * 2**16


@pytest.mark.parametrize(
    "value", [arb(0), arb(1), arb("1e-400"), arb("0.1"), arb(10) ** 30, arb("1 +/- 1e-3")]
)
def test_floats_enclose_a_ball(value: arb) -> None:
    low, high = enclose(value)
    assert low <= high
    assert value >= low
    assert value <= high
    assert (high == 0) == (value == 0)
