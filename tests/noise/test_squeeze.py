"""Lines around a law: at every integer of every bin it lies between them, in balls."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.noise.counts import Binomial, Skellam
from dalenius.noise.exponential import Geometric, Laplace
from dalenius.noise.gaussian import DiscreteGaussian, RoundedGaussian
from dalenius.noise.law import Law
from dalenius.noise.squeeze import SPARE
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


def height(law: Law, table: Table, row: int, place: int) -> arb:
    k = (int(table.bins[table.sure + row]) << table.shift) + place
    return law.weight(k) * arb(table.scale) * 2**table.shift


@settings(max_examples=60, deadline=None)
@given(
    law=LAWS,
    bits=st.sampled_from([7, 10, 17]),
    fineness=st.sampled_from([1, 2, 64]),
    share=st.floats(0, 1),
    rows=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
)
def test_the_law_lies_between_its_lines(
    law: Law, bits: int, fineness: int, share: float, rows: list[float]
) -> None:
    table = lay_out(law, bits=bits, fineness=fineness)
    with flint.ctx.workprec(300):
        for row in {int(at * table.doubtful) for at in rows}:
            for place in {0, int(share * ((1 << table.shift) - 1)), (1 << table.shift) - 1}:
                along = table.slope[row] * place
                true = height(law, table, row, place)
                assert not true < table.low[row] + along
                assert not true > table.high[row] + along


@pytest.mark.parametrize(
    "law", [Laplace(Fraction(999)), RoundedGaussian(Fraction(1500)), DiscreteGaussian(Fraction(70))]
)
def test_at_every_integer_of_every_bin(law: Law) -> None:
    """With half of the spare taken away, so that rounding does not hide behind it."""
    table = lay_out(law, bits=10, fineness=4)
    width = 1 << table.shift
    rows = np.unique(table.bins[table.sure : table.sure + table.doubtful], return_index=True)[1]
    for row in rows.tolist():
        true = np.array([float(height(law, table, row, place)) for place in range(0, width, 3)])
        along = table.slope[row] * np.arange(0, width, 3)
        assert (table.low[row] + along + SPARE / 2 <= true).all()
        assert (true <= table.high[row] + along - SPARE / 2).all()


def test_lines_of_a_usual_table_are_close() -> None:
    """Else nearly all would be left to doubles, at a cost that no law would show."""
    for law in (Laplace(Fraction(2**20)), RoundedGaussian(Fraction(2**20))):
        table = lay_out(law, bits=17, fineness=64)
        assert np.median(table.high - table.low) < 0.2
