"""Scales and sums at the ends of what integers and floats hold."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.ledger import Budget, Ledger
from dalenius.noise.stream import StreamKey
from dalenius.privacy.unit import Unit
from dalenius.streams import PanPrivateCount, TreeSum
from dalenius.streams.tallies import Faded
from dalenius.streams.tree_noise import ENDLESS, TreeBlocks


def _joined_exactly(mechanism: TreeSum) -> None:
    """At every level, noise of 2⁷ scales is combined as it is in integers of any size."""
    blocks = TreeBlocks(mechanism.nodes, StreamKey.fresh(), 1)
    for level in range(1, ENDLESS):
        for sign in (-1, 1):
            own = sign * 2**7 * int(mechanism.nodes.scale(level))
            halves = sign * 2**8 * int(mechanism.nodes.scale(level - 1)) << mechanism.nodes.bits
            weight = blocks._weights[level]
            true = ((own << mechanism.nodes.bits) * weight + halves * (2**16 - weight)) >> 16
            found = blocks._joined(level, np.array([own]), np.array([halves]))
            assert int(found[0]) == true


@pytest.mark.parametrize(("law", "most"), [("laplace", 2**26), ("gaussian", 2**32)])
def test_trees_without_an_end_fit_their_integers(law: str, most: int) -> None:
    for scale in (6, 2**12, most):
        _joined_exactly(TreeSum(scale=scale, law=law))
    for scale in (2 * most, 2**36):
        with pytest.raises(InvalidArgument) as refused:
            TreeSum(scale=scale, law=law)
        assert "plain" in refused.value.remedy
        TreeSum(scale=scale, law=law, estimator="plain")
        TreeSum(scale=scale, law=law, horizon=2**20)


@pytest.mark.parametrize("shift", [0, 3, 40])
def test_noise_is_added_to_steps_before_anything_is_rounded(shift: int) -> None:
    for step in (1, 2**40 + 1, 2**53 + 1, 2**61 + 1):
        for drawn in (-3, 1, 5, 2**41 + 1):
            tally = Faded(1, 0.5, shift)
            found = tally.series(np.array([[step]]), np.array([[drawn]]))[0, 0]
            assert found == float(Fraction((step << shift) + drawn, 1 << shift))


def test_neighbouring_sums_with_noise_that_makes_them_alike_are_alike() -> None:
    one, two = (Faded(1, 0.5, 0).series(np.array([[s]]), np.array([[d]]))[0, 0] for s, d in _alike())
    assert one == two


def _alike() -> list[tuple[int, int]]:
    """Two ways to the same sum; rounded first, they differ."""
    return [(2**54 + 1, 3), (2**54 + 2, 2)]


@pytest.mark.parametrize("name", ["state_scale", "output_scale"])
def test_pan_private_scales_are_refused_before_the_charge(name: str, tmp_path: Path) -> None:
    account = Ledger(tmp_path / "ledger").open("events", unit=Unit("event"), budget=Budget(epsilon=99))
    scales = {"state_scale": 3, "output_scale": 3}
    for wrong in (2**48 + 1, 10**30):
        with pytest.raises(InvalidArgument, match="2\\^48"):
            PanPrivateCount(horizon=7, **scales | {name: wrong}).start(account)
    with pytest.raises(InvalidArgument):
        PanPrivateCount(horizon=7, **scales, largest=2**40).start(account)
    session = PanPrivateCount(horizon=10**12, **scales | {name: 2**48}).start(account)
    session.add(1)
    assert abs(session.value().value) < 2**58
