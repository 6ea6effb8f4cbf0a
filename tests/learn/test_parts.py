"""Parts tell norms and sums of shares as if all shares were held."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from dalenius.learn.lookups import Lookup, Tied, united
from dalenius.learn.parts import Outer, Part, Whole, raised
from dalenius.learn.windows import Filters, Geometry, Windows

sizes = st.integers(1, 5)
EXAMPLES = 4


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def outer(positions: int, left: int, right: int) -> Outer:
    return Outer(random(EXAMPLES, positions, left), random(EXAMPLES, positions, right))


def lookup(positions: int, height: int, width: int, *, seed: int = 0) -> Lookup:
    bits = torch.Generator().manual_seed(seed + positions)
    rows = torch.randint(-1, height, (EXAMPLES, positions), generator=bits)
    return Lookup(rows, random(EXAMPLES, positions, width), height)


def windows(positions: int, channels: int, filters: int) -> Windows:
    geometry = Geometry((2,), (1,), (1,), (1,), 1)
    x = random(EXAMPLES, channels, positions + 1)
    return Windows(x, random(EXAMPLES, filters, positions + 2), (filters, channels, 2), geometry)


def filters(positions: int, left: int, right: int) -> Part:
    """Wide enough for channels to be held last."""
    geometry = Geometry((3, 2), (1, 2), (1, 0), (1, 1), 1)
    x, g = random(EXAMPLES, 8 * right + 1, 3, 12), random(EXAMPLES, left, 3, 6)
    found = Windows(x, g, (left, 8 * right + 1, 3, 2), geometry).smallest()
    assert isinstance(found, Filters)
    return found


MADE: list[Callable[[int, int, int], Part]] = [
    outer,
    lookup,
    windows,
    filters,
    lambda t, p, d: Whole(random(EXAMPLES, p, d)),
    lambda t, p, d: Tied(lookup(t, p, d), outer(t, p, d)),
    lambda t, p, d: united([lookup(t, p, d), lookup(t + 1, p, d), outer(t, p, d), outer(2, p, d)]),
    lambda t, p, d: united([outer(t, p, d), Whole(random(EXAMPLES, p, d)), lookup(t, p, d)]),
]
made = pytest.mark.parametrize(
    "make", MADE, ids=["outer", "lookup", "windows", "filters", "whole", "tied", "many", "mixed"]
)


@made
@given(positions=sizes, left=sizes, right=sizes)
def test_norms_and_sums_are_those_of_the_shares(
    make: Callable[[int, int, int], Part], positions: int, left: int, right: int
) -> None:
    part = make(positions, left, right)
    shares = part.whole().reshape(EXAMPLES, -1)
    squared = part.squared()
    torch.testing.assert_close(squared, shares.square().sum(1), rtol=1e-9, atol=1e-9)
    assert (squared >= shares.square().sum(1) * (1 - 1e-14)).all()
    torch.testing.assert_close(part.absolute(), shares.abs().sum(1), rtol=1e-9, atol=1e-9)
    weights, total = random(EXAMPLES), random(*part.shape)
    wanted = total + (weights @ shares).view(part.shape)
    part.add(weights, total)
    torch.testing.assert_close(total, wanted, rtol=1e-9, atol=1e-9)


@made
def test_what_a_fresh_total_held_does_not_count(make: Callable[[int, int, int], Part]) -> None:
    part, weights = make(3, 4, 2), random(EXAMPLES)
    stale, clean = torch.full(part.shape, torch.nan).double(), torch.zeros(part.shape).double()
    part.add(weights, stale, keep=False)
    part.add(weights, clean)
    torch.testing.assert_close(stale, clean)


@made
def test_forgotten_examples_add_nothing_whatever_they_held(make: Callable[[int, int, int], Part]) -> None:
    part, clean = make(3, 4, 2), make(3, 4, 2)
    bad = torch.tensor([False, True, False, True])
    for name in ("shares", "left", "right", "x", "g"):
        for owner in (
            part,
            *(getattr(part, one) for one in ("looked_up", "multiplied") if hasattr(part, one)),
        ):
            if hasattr(owner, name):
                getattr(owner, name)[bad] = torch.nan
    part.forget(bad)
    weights = torch.ones(EXAMPLES, dtype=torch.float64)
    total, wanted = torch.zeros(part.shape).double(), torch.zeros(part.shape).double()
    part.add(weights, total)
    clean.add(weights * ~bad, wanted)
    torch.testing.assert_close(total, wanted)


GEOMETRIES = [
    Geometry((3,), (2,), (1,), (1,), 1),
    Geometry((1, 1), (2, 2), (0, 0), (1, 1), 1),
    Geometry((3, 4), (2, 1), (1, 2), (1, 2), 2),
    Geometry((2, 3, 2), (1, 2, 1), (0, 1, 0), (2, 1, 1), 3),
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda one: f"{len(one.kernel)}d")
@pytest.mark.parametrize("channels", [1, 12])
@pytest.mark.parametrize("size", [9, 40])
def test_shares_of_filters_are_the_gradients_of_each_example(
    geometry: Geometry, channels: int, size: int
) -> None:
    """Channels last or not, whatever the windows are."""
    nd, options = len(geometry.kernel), (geometry.stride, geometry.padding, geometry.dilation)
    convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[nd - 1]
    weight = random(2 * geometry.groups, channels, *geometry.kernel)
    x = random(EXAMPLES, channels * geometry.groups, *(7,) * (nd - 1), size)
    g = torch.randn_like(convolve(x, weight, None, *options, geometry.groups))
    part = Windows(x, g, tuple(weight.shape), geometry)
    total, held = torch.zeros_like(weight), torch.zeros_like(weight)
    for one, many in ((part, total), (part.smallest(), held)):
        one.add(torch.ones(EXAMPLES).double(), many)
    for i, share in enumerate(part.whole()):
        leaf = weight.clone().requires_grad_()
        found = convolve(x[i : i + 1], leaf, None, *options, geometry.groups)
        torch.testing.assert_close(share, *torch.autograd.grad(found, leaf, g[i : i + 1]))
    torch.testing.assert_close(total, part.whole().sum(0))
    torch.testing.assert_close(held, total)
    torch.testing.assert_close(part.squared(), part.whole().flatten(1).square().sum(1))


@given(st.integers(2, 200))
def test_a_norm_of_factors_that_cancel_is_not_too_small(positions: int) -> None:
    """In single precision products of factors lose what is left of them; the norm is raised by that."""
    bits = torch.Generator().manual_seed(positions)
    left, right = (torch.randn(EXAMPLES, positions, 3, generator=bits) for _ in range(2))
    left[:, positions // 2 :] = 0
    half = positions // 2
    left[:, half : 2 * half], right[:, half : 2 * half] = -left[:, :half], right[:, :half] * (1 + 1e-6)
    part = Outer(left, right)
    exact = Outer(left.double(), right.double()).whole().reshape(EXAMPLES, -1).norm(dim=1)
    assert (part.squared().double().sqrt() >= exact * (1 - 1e-5)).all()


def test_a_norm_is_raised_by_the_type_it_was_computed_in() -> None:
    """A sum in double precision of products in single precision is no more precise than they are."""
    nothing, reach = torch.zeros(1, dtype=torch.float64), torch.ones(1)
    single = raised(nothing.clone(), reach, (50_000, 768, 512), torch.float32)
    assert torch.allclose(single.float(), raised(nothing.float(), reach, (50_000, 768, 512)))
    assert single > 1e8 * raised(nothing.clone(), reach, (50_000, 768, 512))


@pytest.mark.parametrize("positions", [1, 3])
def test_factors_too_small_for_their_type_do_not_vanish_from_a_norm(positions: int) -> None:
    """The square of one is zero in single precision, the share is not."""
    left, right = torch.full((2, positions, 3), 2.6e-23), torch.full((2, positions, 4), 1e18)
    part = Outer(left, right)
    true = part.whole().double().flatten(1).square().sum(1)
    assert (part.squared() >= true).all()


def test_a_gradient_at_padding_is_nobodys_though_it_is_no_number() -> None:
    rows, right = torch.tensor([[1, -1], [2, 0]]), torch.ones(2, 2, 3)
    right[0, 1] = torch.nan
    part, total = Lookup(rows, right, 4), torch.zeros(4, 3)
    part.add(torch.ones(2), total)
    assert torch.equal(total, torch.tensor([1.0, 1, 1, 0]).view(-1, 1).expand(4, 3))
    assert torch.equal(part._squared(slice(None)).isfinite(), torch.ones(2, dtype=torch.bool))
