"""The disk format: golden files are read for ever, so a file here is never changed, only added."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, UnknownKind
from dalenius.losses import disk
from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.concentrated import MeanConcentrated, Renyi, ZeroConcentrated
from dalenius.losses.discrete_gaussian import DiscreteGaussian
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.dominated import Dominated
from dalenius.losses.fields import written
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.iteration import LastIterate
from dalenius.losses.joint import Joint
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.mixture import Mixture
from dalenius.losses.pate import GNMax, LNMax, SmoothGaussian
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.raw import DiscretePair, PrivacyLossDistribution, TradeoffCurve
from dalenius.losses.sampling.truncated_poisson import truncate
from dalenius.losses.sampling.without_replacement import Sighting, draw
from dalenius.losses.selection import selected
from dalenius.losses.shuffling import LocalRandomizer, SameOthers, shuffle
from dalenius.losses.skellam import Skellam
from dalenius.losses.streams import CorrelatedGaussian

GOLDEN = Path(__file__).parent / "golden"
LOSSES = {
    "approximate": Approximate(0.5, delta=1e-6),
    "bounded_range": BoundedRange(0.25),
    "carried": Approximate(1, delta=1e-6).under("replace"),
    "composition": Pure(0.1) * 10 + Laplace(2),
    "correlated_gaussian": CorrelatedGaussian(4, sensitivity=1.5, attainable=1.25, relation="zero_out"),
    "discrete_gaussian": DiscreteGaussian(2.5, sensitivity=3),
    "discrete_laplace": DiscreteLaplace(4, sensitivity=2),
    "discrete_pair": DiscretePair([Fraction(1, 3), Fraction(2, 3)], [0.5, 0.5]),
    "dominated": Dominated(Pure(0.5) + Approximate(0.1, delta=1e-8)),
    "gnmax": GNMax(40),
    "group": Approximate(0.5, delta=1e-6).group(3),
    "joint": Joint(DiscretePair([0.5, 0.5], [0.25, 0.75]) + DiscretePair([0.25, 0.75], [0.5, 0.5])),
    "laplace": Laplace(0.5, relation="replace"),
    "last_iterate": LastIterate(
        lipschitz=1,
        smoothness=0.25,
        strong_convexity=0.002,
        diameter=10,
        learning_rate=0.5,
        noise=0.1,
        steps=4000,
        population=60_000,
        batch=1500,
    ),
    "lnmax": LNMax(20, relation="replace"),
    "local_randomizer": LocalRandomizer(2, blanket=0.5),
    "mean_concentrated": MeanConcentrated(0.1, scale=0.5),
    "mixture": Mixture([Pure(1), Laplace(1) * 2], [0.25, 0.75]),
    "poisson": Laplace(0.5).poisson(Fraction(256, 60000)),
    "poisson_selected": selected(Pure(0.5), mean=15),
    "privacy_loss_distribution": PrivacyLossDistribution([1, -0.25], [0.6, 0.3], infinite=0.1),
    "pure": Pure(0.1, relation="zero_out"),
    "random_allocation": Laplace(0.5).random_allocation(100),
    "randomized_response": RandomizedResponse(0.9, categories=3),
    "renyi": Renyi(8, epsilon=0.125),
    "selected": selected(Gaussian(20), stop=0.05, shape=0),
    "shuffled": shuffle(RandomizedResponse(0.5, categories=8, relation="replace"), 10000),
    "shuffled_same_others": SameOthers(Pure(1, relation="replace"), 3, 10000),
    "sighting": Sighting(Laplace(0.5, relation="replace"), Fraction(1, 100)),
    "skellam": Skellam(100, sensitivity=2),
    "smooth_gaussian": SmoothGaussian(12, ratio=0.99, reach=1.5),
    "tradeoff_curve": TradeoffCurve([0, 0.1, 1], [0.9, 0.5, 0]),
    "truncated_poisson": truncate(Laplace(0.5), Fraction(256, 60000), population=60_000, cap=400),
    "without_replacement": draw(Laplace(0.5, relation="replace"), 600, 60_000),
    "zero_concentrated": ZeroConcentrated(0.5, delta=1e-9),
}


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_golden_file_means_what_it_meant(name):
    text = (GOLDEN / f"{name}.json").read_text().strip()
    assert Loss.from_json(text) == LOSSES[name]
    assert LOSSES[name].to_json() == text


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_loss_survives_the_round_trip(name):
    loss = LOSSES[name]
    assert Loss.from_json(loss.to_json()) == loss
    assert disk.from_dict(disk.to_dict(loss)) == loss
    assert hash(Loss.from_json(loss.to_json())) == hash(loss)


def test_every_kind_on_disk_has_a_golden_file():
    disk._load_all()
    ours = {kind for (kind, _), cls in Loss.kinds.items() if not cls.__module__.endswith(".gaussian")}
    assert {kind for kind in ours if Loss.kinds[kind, 1].__module__.startswith("dalenius.")} == set(LOSSES)


@given(st.fractions())
def test_numbers_are_written_exactly(number):
    assert disk.NUMBER.fullmatch(written(number))
    assert Fraction(written(number)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(256, 60000), "8/1875"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(7), "7"),
    ],
)
def test_a_decimal_is_written_where_it_ends(number, text):
    assert written(number) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"telepathy","version":1,"relation":"add_remove"}',
        '{"kind":"laplace","version":2,"relation":"add_remove","scale":"1"}',
    ],
)
def test_an_unknown_kind_or_version_is_refused(text):
    with pytest.raises(UnknownKind, match="is known"):
        Loss.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "not json",
        "{}",
        '{"kind":"laplace","version":"1","relation":"add_remove","scale":"1"}',
        '{"kind":"laplace","version":true,"relation":"add_remove","scale":"1"}',
        '{"kind":"laplace","version":1,"relation":"add_remove"}',
        '{"kind":"laplace","version":1,"relation":"add_remove","scale":"1","colour":"2"}',
        '{"kind":"laplace","version":1,"scale":"1"}',
        '{"kind":"laplace","version":1,"relation":"neighbours","scale":"1"}',
        '{"kind":"laplace","version":1,"relation":"add_remove","scale":"1e5"}',
        '{"kind":"laplace","version":1,"relation":"add_remove","scale":"1/0"}',
        '{"kind":"laplace","version":1,"relation":"add_remove","scale":"-1"}',
        '{"kind":"laplace","version":1,"relation":"add_remove","scale":null}',
        '{"kind":"laplace","version":1,"relation":"add_remove","scale":NaN}',
        '{"kind":"laplace","version":1,"relation":"add_remove","scale":["1"]}',
        '{"kind":"composition","version":1,"relation":"add_remove","terms":[]}',
        '{"kind":"composition","version":1,"relation":"add_remove","terms":[["1",2]]}',
        '{"kind":"composition","version":1,"relation":"add_remove","terms":[1,2]}',
        '{"kind":"group","version":1,"relation":"add_remove","loss":"3","size":2}',
        '{"kind":"mixture","version":1,"relation":"add_remove","losses":["1"],"weights":["1"]}',
        '{"kind":"poisson","version":1,"relation":"add_remove","loss":"1","sampling_rate":"0.5"}',
        '{"kind":"composition","version":1,"relation":"add_remove","terms":' * 500,
        "[" * 100_000,
    ],
)
def test_what_is_no_description_is_refused(text):
    with pytest.raises(InvalidArgument):
        Loss.from_json(text)


def test_a_relation_that_its_parts_do_not_have_is_refused():
    plain = json.loads((Pure(1) * 2).to_json())
    plain["relation"] = "replace"
    with pytest.raises(InvalidArgument, match="relation is not that of its parts"):
        disk.from_dict(plain)


def test_a_composition_is_read_into_its_canonical_order():
    loss = Pure(1) + Laplace(1)
    plain = disk.to_dict(loss)
    plain["terms"] = plain["terms"][::-1]
    assert disk.from_dict(plain) == loss
