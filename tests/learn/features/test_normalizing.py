"""Group normalization by example: its moments, its bound, and that examples do not meet."""

from __future__ import annotations

import math

import pytest
import torch

from dalenius import learn
from dalenius.errors import InvalidArgument


def test_groups_have_mean_nought_and_variance_one() -> None:
    features = 5 + 100 * torch.rand(3, 6, 4, 4)
    groups = learn.normalized(features, groups=2).view(3, 2, -1)
    assert groups.mean(-1).abs().max() < 1e-5
    assert torch.allclose(groups.var(-1, correction=0), torch.tensor(1.0), atol=1e-4)


def test_a_root_comes_first() -> None:
    features = torch.rand(2, 4, 3, 3)
    assert torch.equal(
        learn.normalized(features, groups=2, root=True), learn.normalized(features.sqrt(), groups=2)
    )
    below = learn.normalized(features - 0.5, groups=2, root=True)
    assert torch.equal(below, learn.normalized((features - 0.5).clamp_min(0), groups=2, root=True))


def test_groups_that_hardly_vary_are_not_blown_up() -> None:
    found = learn.normalized(1 + 1e-3 * torch.rand(1, 4, 5, 5), groups=1)
    assert found.abs().max() < 0.04


def test_rows_are_no_longer_than_the_root_of_their_entries() -> None:
    features = learn.scattering(torch.rand(20, 28, 28))
    lengths = learn.normalized(features, root=True).flatten(1).norm(dim=1)
    assert lengths.max() <= 63


@pytest.mark.parametrize("root", [False, True])
def test_examples_do_not_meet(root: bool) -> None:
    features, order = torch.rand(1100, 9, 3, 3), torch.randperm(1100)
    found = learn.normalized(features, groups=3, root=root)
    assert torch.equal(learn.normalized(features[order], groups=3, root=root), found[order])
    spoiled = features.clone()
    spoiled[::2] = math.nan
    assert torch.equal(learn.normalized(spoiled, groups=3, root=root)[1::2], found[1::2])


def test_wrong_input_is_told_what_to_do() -> None:
    with pytest.raises(InvalidArgument, match="81 channels") as refused:
        learn.normalized(torch.zeros(1, 81, 7, 7), groups=2)
    assert "divide 81" in refused.value.remedy
    for bad in (torch.zeros(3), torch.zeros(2, 27, dtype=torch.int64)):
        with pytest.raises(InvalidArgument):
            learn.normalized(bad)
