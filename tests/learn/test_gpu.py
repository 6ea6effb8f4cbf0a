"""On a GPU: kernels give what plain code does, and the engine what a loop over examples does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from dalenius.errors import NotSound
from dalenius.learn.gradients import Watched

from .architectures import ARCHITECTURES, Architecture
from .engine import apart, clipped_sum, length, norms_of, shares_of
from .reference import clipped_mean, norms, per_example_gradients

if not torch.cuda.is_available():
    pytest.skip("there is no GPU: see benchmarks/results/learn_gpu.md", allow_module_level=True)

CERTAIN = [entry for entry in ARCHITECTURES if not entry.random]
FACTORS = [(2, 3, 50, 70, 40), (3, 2, 33, 130, 300), (1, 4, 300, 257, 129), (2, 5, 2, 8, 16)]


@pytest.fixture(autouse=True)
def _single() -> Iterator[None]:
    with torch.backends.cudnn.flags(allow_tf32=False):
        yield


@pytest.mark.parametrize("architecture", CERTAIN, ids=lambda entry: entry.name)
def test_norms_and_clipped_sums_are_those_of_the_loop(architecture: Architecture) -> None:
    model, inputs = architecture.sample(4, dtype=torch.float32)
    model, inputs = model.cuda(), tuple(one.cuda() for one in inputs)
    wanted = per_example_gradients(model, inputs, architecture.loss, batch_dim=architecture.batch_dim)
    sizes = norms(wanted).double()
    try:
        watched, shares = shares_of(architecture, model, inputs)
    except NotSound:
        assert architecture.awkward
        return
    clip = float(sizes.median())
    sums = {name: 4 * one for name, one in clipped_mean(wanted, clip=clip).items()}
    assert ((norms_of(shares) - sizes).abs() <= 1e-4 * sizes).all()
    assert apart(clipped_sum(watched, shares, clip), sums) <= 1e-4 * length(sums)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("sizes", FACTORS)
@pytest.mark.parametrize("keep", [False, True])
def test_kernels_of_outer_products(sizes: tuple[int, ...], kind: torch.dtype, keep: bool) -> None:
    """An example of weight zero is left out, though its factors are no numbers."""
    from dalenius.learn.gpu import outer

    layers, examples, positions, rows, columns = sizes
    factors = [
        outer.ready(
            *(torch.randn(examples, positions, size, device="cuda").to(kind) for size in (rows, columns))
        )
        for _ in range(layers)
    ]
    shares = torch.stack([left.double().transpose(1, 2) @ right.double() for left, right in factors])
    wanted = shares.square().sum((2, 3))
    assert ((outer.squares(factors) - wanted).abs() <= 1e-5 * wanted).all()
    weights = torch.rand(layers, examples, device="cuda")
    weights[0, 1] = 0
    factors[0][0][1] = torch.nan
    totals = [torch.randn(rows, columns, device="cuda") for _ in range(layers)]
    before = torch.stack(totals).double() * keep
    outer.add(factors, weights, totals, keep=keep)
    wanted = before + (shares * weights.double()[:, :, None, None]).sum(1)
    assert (torch.stack(totals) - wanted).norm() <= 1e-5 * wanted.norm()


def test_long_odd_rows_are_aligned() -> None:
    from dalenius.learn import gpu

    rows, matrix = torch.randn(3, 5, 1027, device="cuda"), torch.randn(1027, 40, device="cuda")
    aligned = gpu.aligned(rows)
    assert aligned.stride(-2) % gpu.ALIGNED == 0
    assert torch.equal(aligned, rows)
    assert gpu.aligned(aligned) is aligned
    assert torch.allclose(aligned @ matrix, rows @ matrix, atol=1e-3)
    x = torch.randn(3, 5, 40, device="cuda")
    assert torch.allclose(gpu.linear(x, matrix, None), x @ matrix.t(), atol=1e-3)


def test_layers_whose_inputs_lie_differently_are_not_mistaken_for_each_other() -> None:
    """Quarters of 100 numbers begin in turn where a GPU reads quickly and where it does not."""

    class Quarters(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(torch.nn.Linear(100, 70, bias=False) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return sum(part(one) for part, one in zip(self.parts, x.chunk(4, -1), strict=True)).mean((1, 2))

    model, x = Quarters().cuda(), torch.randn(4, 5, 400, device="cuda")
    wanted = []
    for one in x:
        model.zero_grad()
        model(one[None]).sum().backward()
        wanted.append(torch.cat([weight.grad.flatten() for weight in model.parameters()]).norm())
    model.zero_grad()
    watched = Watched(model)
    watched(x).sum().backward()
    assert torch.allclose(norms_of(watched.shares()).float(), torch.stack(wanted), rtol=1e-4)
