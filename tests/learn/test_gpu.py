"""On a GPU: kernels give what plain code does, and the engine what a loop over examples does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from dalenius.errors import NotSound
from dalenius.learn.gradients import Watched
from dalenius.learn.recording import Recorded

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


class Text(torch.nn.Module):
    """Symbols with a tied head."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.symbols, self.head = torch.nn.Embedding(1030, 160), torch.nn.Linear(160, 1030, bias=False)
        self.block = torch.nn.TransformerEncoderLayer(160, 4, 320, dropout, batch_first=True)
        self.head.weight = self.symbols.weight

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.block(self.symbols(text)))
        return found


def made(size: int, dropout: float = 0.0) -> tuple[Watched, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    text = torch.randint(1030, (size, 33), device="cuda")
    return Watched(Text(dropout).cuda()), text[:, :-1].contiguous(), text[:, 1:].contiguous()


def loss_of(watched: Watched, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    each = torch.nn.functional.cross_entropy(watched(x).flatten(0, 1), y.flatten(), reduction="none")
    return each.view(y.shape).mean(1).mean()


def summed(watched: Watched) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    shares = watched.shares()
    norms = norms_of(shares)
    totals = {one: torch.zeros_like(one) for one in watched.names}
    real = (torch.arange(shares.examples, device="cuda") < shares.examples - shares.padding).float()
    shares.add(real * shares.examples / watched.gain, totals)
    found = norms[: shares.examples - shares.padding] * shares.examples / watched.gain
    return found, {watched.names[one]: total for one, total in totals.items()}


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_recorded_pass_has_the_same_parts(compile: bool, half: bool) -> None:
    """Of batches of several sizes, after weights have moved, in single precision and in half."""
    watched, x, y = made(7)
    watched.lifts = True
    learn = Recorded(watched, lambda x, y: loss_of(watched, x, y), compile=compile, now=lambda: False)
    for size in (7, 6, 7):
        with torch.no_grad():
            for one in watched.inner.parameters():
                one += 0.02 * torch.randn_like(one)
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            loss_of(watched, x[:size], y[:size]).backward()
            wanted_norms, wanted = summed(watched)
            learn(x[:size], y[:size])
            norms, found = summed(watched)
        close = 3e-2 if half else 1e-4
        assert torch.allclose(norms, wanted_norms, rtol=close)
        assert apart(found, wanted) <= close * length(wanted)


def test_dropout_of_a_recorded_pass_is_drawn_anew_and_by_the_seed() -> None:
    watched, x, y = made(4, dropout=0.3)
    learn = Recorded(watched, lambda x, y: loss_of(watched, x, y), compile=False, now=lambda: False)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        learn(x, y)
        found.append(summed(watched)[0])
    learn(x, y)
    assert torch.equal(found[0], found[1])
    assert not torch.allclose(found[1], found[2], rtol=1e-3)
    assert not torch.allclose(found[2], summed(watched)[0], rtol=1e-3)


def test_an_example_that_is_no_number_adds_nothing() -> None:
    """And none that others add is changed."""
    from dalenius.learn.optimizer import PrivateOptimizer

    found = []
    for spoiled in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 150))
        model = torch.nn.Sequential(model, torch.nn.LayerNorm(150), torch.nn.Linear(150, 2)).cuda()
        private = PrivateOptimizer(
            model, torch.optim.SGD(model.parameters(), lr=0.1), clip=1, noise_multiplier=1, batch_size=4
        )
        x = torch.randn(4, 1, 8, 8, device="cuda")
        x[2] = torch.nan if spoiled else 0
        weights = torch.tensor([1.0, 1, 1 if spoiled else 0, 1], device="cuda")
        private.zero_grad()
        (private.model(x).square().sum(1) * weights).mean().backward()
        private.accumulate()
        found.append(torch.cat([one.flatten() for one in private._sum.exact()]))
    assert torch.isfinite(found[1]).all()
    assert torch.allclose(found[0], found[1], rtol=1e-4, atol=1e-6)


def test_a_run_goes_on_a_gpu() -> None:
    """Poisson batches, a rehearsal, noise by address, and no sums between steps."""
    import dalenius as dp

    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).cuda()
    data, labels = torch.randn(60, 5), torch.randint(2, (60,))
    private = dp.learn.Private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (data, labels),
        batch_size=6,
        steps=5,
        clip=1,
        noise_multiplier=1,
        public_size=60,
        chunk=4,
    )
    learn = private.recorded(lambda x, y: torch.nn.functional.cross_entropy(private.model(x), y))
    for x, y in private.loader:
        private.zero_grad()
        learn(x.cuda(), y.cuda())
        private.step()
    assert private.steps == 5
    assert not private._sum._totals


def test_a_group_of_one_has_the_noise_of_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch import distributed

    from dalenius.learn.optimizer import PrivateOptimizer
    from dalenius.noise.stream import StreamKey

    key, found = StreamKey.fresh(), []
    monkeypatch.setattr(StreamKey, "fresh", lambda: key)
    for together in (False, True):
        if together:
            distributed.init_process_group("nccl", store=distributed.HashStore(), rank=0, world_size=1)
        try:
            torch.manual_seed(0)
            model = torch.nn.Sequential(
                torch.nn.Linear(40, 300), torch.nn.Tanh(), torch.nn.Linear(300, 2)
            ).cuda()
            private = PrivateOptimizer(
                model, torch.optim.SGD(model.parameters(), lr=1.0), clip=1, noise_multiplier=1, batch_size=4
            )
            x = torch.randn(4, 40, device="cuda")
            for _ in range(2):
                private.zero_grad()
                private.model(x).square().sum(1).mean().backward()
                private.step()
            found.append(torch.cat([one.detach().flatten() for one in model.parameters()]))
        finally:
            if together:
                distributed.destroy_process_group()
    assert torch.equal(*found)
