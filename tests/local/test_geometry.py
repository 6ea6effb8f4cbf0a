"""Finite fields, the sweep over hyperplanes, and the oracles that use them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.local import FrequencyOracle, HadamardResponse, LocalHashing, ProjectiveResponse
from dalenius.local.finite_field import Field, field_of, is_order, orders
from dalenius.local.projective import points
from dalenius.local.radon import swept


@pytest.mark.parametrize("order", [2, 3, 4, 5, 53])
def test_a_field_is_a_field(order: int) -> None:
    field, all_ = Field(order), np.arange(order, dtype=np.int32)
    a, b, c = (part.ravel() for part in np.meshgrid(all_, all_, all_, indexing="ij"))
    add, multiply = field.add, field.multiply
    assert (add(a, b) == add(b, a)).all() and (multiply(a, b) == multiply(b, a)).all()
    assert (multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))).all()
    assert (multiply(a, multiply(b, c)) == multiply(multiply(a, b), c)).all()
    assert (add(all_, field.opposites) == 0).all()
    assert (multiply(all_, field.inverses) == (all_ > 0)).all()


def test_orders() -> None:
    assert orders()[:8] == (2, 3, 4, 5, 7, 11, 13, 17)
    assert all(map(is_order, orders()[:100])) and not any(map(is_order, (0, 1, 6, 8, 9, 2**15 + 3)))
    with pytest.raises(InvalidArgument, match="order"):
        Field(6)


@pytest.mark.parametrize(("order", "count"), [(2, 4), (3, 3), (4, 2), (5, 2), (7, 1), (3, 0)])
def test_a_sweep_is_the_sum_it_says(order: int, count: int) -> None:
    field = field_of(order)
    table = np.random.default_rng(0).integers(0, 100, (order**count, order))
    expected = np.zeros_like(table)
    for i, x in enumerate(product(range(order), repeat=count)):
        for j, y in enumerate(product(range(order), repeat=count)):
            for s in range(order):
                place = np.array(s, np.int32)
                for a, b in zip(x, reversed(y), strict=True):
                    moved = field.opposites[field.multiply(np.array(a, np.int32), np.array(b, np.int32))]
                    place = field.add(place, moved)
                expected[i, s] += table[j, place]
    assert (swept(table, field, count) == expected).all()
    if count:
        assert (swept(table, field, count, last=1)[:, 0] == expected[:, 1]).all()


GEOMETRIC: list[FrequencyOracle] = [
    *[
        ProjectiveResponse(domain=points(q, t), ratio=2, order=q)
        for q, t in [(2, 5), (3, 4), (4, 3), (5, 3), (7, 2)]
    ],
    ProjectiveResponse(domain=20, ratio=2, order=3),
    *[LocalHashing(domain=d, ratio=2, values=g) for g, d in [(2, 30), (3, 27), (4, 60), (5, 5), (7, 40)]],
    *[HadamardResponse(domain=d, ratio=2, blocks=b) for b, d in [(1, 15), (1, 3), (2, 6), (8, 100)]],
]


@pytest.mark.parametrize("oracle", GEOMETRIC, ids=lambda o: f"{type(o).__name__}-{o.domain}-{o.reports}")
def test_decoding_all_items_at_once_is_trying_each(oracle) -> None:
    codes = np.random.default_rng(0).integers(0, oracle.reports, 500)
    each = [np.count_nonzero(oracle.within(codes[:, None], item)) for item in range(oracle.domain)]
    assert oracle.supporters(oracle.tally(codes[:, None])).tolist() == each
    if isinstance(oracle, LocalHashing):
        assert oracle._swept(codes).tolist() == each


@pytest.mark.parametrize("oracle", GEOMETRIC, ids=lambda o: f"{type(o).__name__}-{o.domain}-{o.reports}")
def test_sets_are_as_large_and_meet_as_often_as_they_say(oracle) -> None:
    codes = np.arange(oracle.reports)[:, None]
    sets = np.array([oracle.within(codes, item) for item in range(oracle.domain)]).astype(int)
    meet = sets @ sets.T
    assert (np.diag(meet) == oracle.size).all()
    off = meet[~np.eye(oracle.domain, dtype=bool)]
    assert off.min() == oracle.size - oracle.differing
    if not (isinstance(oracle, HadamardResponse) and oracle.blocks > 1):
        assert (off == off[0]).all()


def test_variances_of_projective_geometry() -> None:
    """Feldman, Nelson, Nguyen and Talwar 2022: within a hundredth of the limit, in 17 or 18 bits."""
    for epsilon, order, bits in [(1, 4, 17), (4, 53, 18)]:
        e = math.exp(epsilon)
        found = ProjectiveResponse.calibrate(domain=65_536, epsilon=epsilon)
        assert (found.order, found.bits) == (order, bits)
        assert found.variance() <= 1.01 * 4 * e / (e - 1) ** 2
        shorter = ProjectiveResponse.calibrate(domain=65_536, epsilon=epsilon, bits=17)
        assert shorter.bits == 17 and shorter.variance() <= 1.01 * 4 * e / (e - 1) ** 2
    with pytest.raises(InvalidArgument, match="so short"):
        ProjectiveResponse.calibrate(domain=65_536, epsilon=1, bits=16)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.6, 1, 1.3, 2, 3, 5, 6])
def test_there_is_a_good_order_for_every_epsilon(epsilon: float) -> None:
    e = math.exp(epsilon)
    found = ProjectiveResponse.calibrate(domain=100_000, epsilon=epsilon)
    assert found.variance() <= 1.03 * 4 * e / (e - 1) ** 2


def test_the_best_oracle() -> None:
    """By variance, then speed; and the reason names it."""
    assert type(FrequencyOracle.best(4, 2)).__name__ == "KaryResponse"
    choice = FrequencyOracle.choose(65_536, 1, bits=18)
    assert choice.oracle == FrequencyOracle.best(65_536, 1, bits=18)
    assert type(choice.oracle).__name__ == "ProjectiveResponse" and choice.oracle.bits <= 18
    assert choice.why.startswith("projective geometry response: n·variance 3.69")
    assert {name for name, _, _ in choice.considered} >= {"local hashing", "subset selection"}
    assert type(FrequencyOracle.best(65_536, 0.01)).__name__ in ("HadamardResponse", "ProjectiveResponse")
    with pytest.raises(InvalidArgument, match="bits") as refusal:
        FrequencyOracle.best(65_536, 1, bits=4)
    assert "16 bits" in refusal.value.remedy


@pytest.mark.parametrize("make", [ProjectiveResponse, LocalHashing])
def test_what_is_no_order_is_refused(make) -> None:
    for bad in (6, 8, 2**15 + 3):
        with pytest.raises(InvalidArgument):
            make(domain=9, ratio=2, **{"order" if make is ProjectiveResponse else "values": bad})
