"""One backward pass gives what a loop over examples gives, on every architecture that is not refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from sizes import one_in, slow
from torch import nn

from dalenius.errors import NotSound
from dalenius.learn.gradients import Shares, Watched
from dalenius.learn.numerics import Numerics

from .architectures import ARCHITECTURES, Architecture
from .engine import apart, clipped_sum, length, norms_of, shares_of
from .reference import clipped_mean, norms, per_example_gradients

CERTAIN = [entry for entry in ARCHITECTURES if not entry.random]
every = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda entry: entry.name)
certain = pytest.mark.parametrize("architecture", CERTAIN, ids=lambda entry: entry.name)
CLOSE = {torch.float64: 1e-10, torch.float32: 1e-5}


def passed(
    architecture: Architecture, model: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> tuple[Watched, Shares]:
    """A watched pass; one that is awkward may be refused."""
    try:
        return shares_of(architecture, model, inputs)
    except NotSound:
        if architecture.awkward:
            pytest.skip("refused")
        raise


def check(architecture: Architecture, n: int, dtype: torch.dtype) -> None:
    model, inputs = architecture.sample(n, dtype=dtype)
    wanted = per_example_gradients(model, inputs, architecture.loss, batch_dim=architecture.batch_dim)
    sizes = norms(wanted).double()
    watched, shares = passed(architecture, model, inputs)
    found, close = norms_of(shares), CLOSE[dtype]
    assert ((found - sizes).abs() <= close * sizes).all()
    # Between the norms in the middle, so that about half are clipped.
    ordered = sizes.sort().values
    clip = float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2) * (0.7 if n == 1 else 1)
    sums = {name: n * one for name, one in clipped_mean(wanted, clip=clip).items()}
    assert apart(clipped_sum(watched, shares, clip), sums) <= close * length(sums)


@certain
def test_norms_and_clipped_sums_are_those_of_the_loop(architecture: Architecture) -> None:
    check(architecture, 4, torch.float32)


@certain
@pytest.mark.parametrize("n", [1, 3, *slow([2, 4, 5, 6, 8])])
def test_batches_as_long_as_something_inside_are_not_mistaken_for_it(
    architecture: Architecture, n: int
) -> None:
    check(architecture, n, torch.float64)


@every
@pytest.mark.parametrize("dtype", [torch.float32, *slow([torch.float64])], ids=["float32", "float64"])
def test_what_one_example_adds_is_not_longer_than_the_bound(
    architecture: Architecture, dtype: torch.dtype
) -> None:
    model, inputs = architecture.sample(1, dtype=dtype)
    watched, shares = passed(architecture, model, inputs)
    clip = float(norms_of(shares)) / 3
    slack = Numerics(9, Fraction(1, 2**11))
    total = clipped_sum(watched, shares, clip, slack)
    assert 0.99 * clip <= length(total) <= clip


@every
def test_an_empty_batch_adds_nothing(architecture: Architecture) -> None:
    model, inputs = architecture.sample(0)
    try:
        architecture.loss(model(*inputs[:-1]), inputs[-1]).sum().backward()
    except (RuntimeError, IndexError):
        pytest.skip("torch does not run it on nothing")
    model.zero_grad()
    watched, shares = passed(architecture, model, inputs)
    assert length(clipped_sum(watched, shares, 1.0)) == 0


@pytest.mark.parametrize("architecture", one_in(4, ARCHITECTURES), ids=lambda entry: entry.name)
def test_no_graph_is_kept_alive_by_sums(architecture: Architecture) -> None:
    model, inputs = architecture.sample(2)
    watched, shares = passed(architecture, model, inputs)
    assert not any(one.requires_grad for one in clipped_sum(watched, shares, 1.0).values())
    assert not norms_of(shares).requires_grad


@every
def test_the_watched_model_computes_what_the_model_computes(architecture: Architecture) -> None:
    model, inputs = architecture.sample(3, dtype=torch.float64)
    torch.manual_seed(0)
    plain = architecture.loss(model(*inputs[:-1]), inputs[-1])
    torch.manual_seed(0)
    try:
        seen = architecture.loss(Watched(model, batch_dim=architecture.batch_dim)(*inputs[:-1]), inputs[-1])
    except NotSound:
        assert architecture.awkward
        return
    torch.testing.assert_close(seen, plain, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("architecture", one_in(4, CERTAIN), ids=lambda entry: entry.name)
def test_examples_after_chunks_of_other_sizes_are_the_same(architecture: Architecture) -> None:
    """Memory that is kept from pass to pass does not show."""
    model, inputs = architecture.sample(4, dtype=torch.float64)
    watched, _ = passed(architecture, model, inputs)
    for part in (slice(0, 3), slice(3, 4), slice(0, 4)):
        *arguments, targets = inputs
        place = (slice(None),) * architecture.batch_dim
        given = (*(one[(*place, part)] for one in arguments), targets[part])
        architecture.loss(watched(*given[:-1]), given[-1]).sum().backward()
        again = clipped_sum(watched, watched.shares(), 0.5)
        wanted = clipped_sum(*passed(architecture, model, given), 0.5)
        assert apart(again, wanted) <= 1e-10


def test_a_frozen_model_leaves_no_parameter_out() -> None:
    for architecture in CERTAIN:
        model, inputs = architecture.sample(3)
        try:
            watched, shares = shares_of(architecture, model, inputs)
        except NotSound:
            continue
        used = {watched.names[one] for one in shares.norms()}
        missing = set(watched.names.values()) - used
        assert missing <= set(architecture.unused), architecture.name


@pytest.mark.slow
@certain
def test_larger_batches_of_other_seeds_are_exact_as_well(architecture: Architecture) -> None:
    for n in (7, 9, 10, 12, 16):
        check(architecture, n, torch.float64)
