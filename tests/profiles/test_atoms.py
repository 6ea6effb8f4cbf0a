from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalenius.profiles.atoms import Atom, Atoms, join, rational

weights = st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1, max_size=8)


def shared(rows):
    p, q = sum(a for a, _ in rows), sum(b for _, b in rows)
    return [(Fraction(a, p), Fraction(b, q)) for a, b in rows]


@given(weights, st.floats(-10, 10))
def test_the_profile_of_exact_masses_is_enclosed(rows, epsilon):
    import flint
    from flint import arb, fmpq

    masses = shared(rows)
    lo, hi = rational(masses).hockey(np.array([epsilon]))
    with flint.ctx.workprec(200):
        y = arb(epsilon).exp()
        balls = [[arb(fmpq(x.numerator, x.denominator)) for x in row] for row in masses]
        truth = sum(((p - y * q).max(arb(0)) for p, q in balls), arb(0))
        assert not truth < arb(float(lo[0])) and not truth > arb(float(hi[0]))


@given(weights)
def test_reversing_twice_changes_nothing(rows):
    pair = rational(shared(rows))
    assert pair.reversed().reversed() == pair


@given(weights)
def test_losses_on_a_lattice_are_found_where_they_are(rows):
    law = rational(shared(rows)).lattice()
    if law is not None:
        assert law.masses.sum() > 1 - 1e-12


def test_rational_losses_have_their_common_step():
    atoms = (Atom.of_loss(Fraction(x, 12), (0.5, 0.5), (0.5, 0.5)) for x in (-3, 5))
    law = Atoms(join(atoms)).lattice()
    assert law.step == (Fraction(2, 3), Fraction(2, 3)) and law.offset[0] == Fraction(-1, 4)


def test_far_tails_keep_their_digits():
    # Two laws a likelihood ratio of 10^200 apart: H is tiny, yet known to twelve digits.
    tiny = Fraction(1, 10**200)
    pair = rational([(tiny, tiny**2 / 10), (1 - tiny, 1 - tiny**2 / 10)])
    lo, hi = pair.hockey(np.array([400.0]))
    assert 0 < lo[0] <= hi[0] <= lo[0] * (1 + 1e-12)


def test_atoms_of_one_loss_are_merged():
    atoms = [Atom.of_loss(Fraction(1), (0.25, 0.25), (0.1, 0.1))] * 2
    assert len(join(atoms)) == 1
    assert join(atoms)[0].p[0] <= 0.5 <= join(atoms)[0].p[1]
