"""No parameter is left untrained, unclipped or without noise, and none is counted twice."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.gradients import Watched

from .architectures.transformers import ARCHITECTURES as TRANSFORMERS
from .engine import clipped_sum, length, norms_of, shares_of
from .reference import norms, per_example_gradients
from .runs import data, network, run_of, stepper

ENTROPY = nn.CrossEntropyLoss()


# Parameters.


def test_the_norm_of_a_tied_weight_is_that_of_the_sum_of_its_uses() -> None:
    """Norms of uses, squared and added, miss twice their product: fast engines clip to too much."""
    for entry in [one for one in TRANSFORMERS if "GPT" in one.name]:
        model, inputs = entry.sample(1, dtype=torch.float64)
        watched, shares = shares_of(entry, model, inputs)
        exact = norms(per_example_gradients(model, inputs, entry.loss))
        torch.testing.assert_close(norms_of(shares), exact, rtol=1e-10, atol=0)
        assert length(clipped_sum(watched, shares, float(exact) / 2)) <= float(exact) / 2 * (1 + 1e-12)


def test_naive_norms_of_a_tied_weight_are_too_small() -> None:
    """w·(w·x) has the gradient 2wx; each of its two uses has wx, and √2·wx is less."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).double()
    model[1].weight = model[0].weight
    x, use = torch.tensor([[2.0]], dtype=torch.float64), 2 * float(model[0].weight.detach().abs())
    watched = Watched(model)
    watched(x).sum().backward()
    assert float(norms_of(watched.shares())) == pytest.approx(2 * use, rel=1e-12)
    assert 2**0.5 * use < 2 * use * 0.75


def test_a_raw_parameter_is_trained_clipped_and_noised() -> None:
    class Raw(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.scale, self.unused = (
                network(),
                nn.Parameter(torch.ones(5)),
                nn.Parameter(torch.ones(4)),
            )

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x * self.scale)

    model = Raw()
    private = stepper(model)
    x, y = data(4)
    ENTROPY(private.model(x), y).backward()
    private.step()
    # On a grid, noise is zero now and then; of all four at once below 1e-12.
    assert (model.scale != 1).any() and (model.unused != 1).any()


def test_a_parameter_that_the_optimizer_does_not_move_is_refused() -> None:
    from dalenius.learn.optimizer import PrivateOptimizer

    model = network()
    with pytest.raises(InvalidArgument, match=r"2\.weight"):
        PrivateOptimizer(
            model, torch.optim.SGD(model[0].parameters(), lr=1), clip=1, noise_multiplier=1, batch_size=4
        )


def test_a_parameter_that_is_not_the_models_is_refused() -> None:
    from dalenius.learn.optimizer import PrivateOptimizer

    model = network()
    with pytest.raises(InvalidArgument, match="not the model's"):
        PrivateOptimizer(
            model[0], torch.optim.SGD(model.parameters(), lr=1), clip=1, noise_multiplier=1, batch_size=4
        )


def test_weight_decay_in_the_loss_is_refused() -> None:
    model = network()
    private = stepper(model)
    x, y = data(4)
    (ENTROPY(private.model(x), y) + model[0].weight.square().sum()).backward()
    with pytest.raises(NotSound, match=r"0\.weight"):
        private.step()


def test_a_pass_around_the_watched_model_is_refused() -> None:
    model = network()
    private = stepper(model)
    x, y = data(4)
    ENTROPY(model(x), y).backward()
    with pytest.raises(NotSound, match=r"0\.weight"):
        private.step()


def test_a_loop_around_the_watched_model_is_refused_in_a_run() -> None:
    model = network()
    private = run_of(model, data(40))
    with pytest.raises(NotSound):
        for x, y in private.loader:
            private.zero_grad()
            ENTROPY(model(x), y).backward()
            private.step()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_gives_the_gradients_of_an_ordinary_pass(reentrant: bool) -> None:
    class Saving(nn.Module):
        def __init__(self, saves: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.saves, self.inner, self.head = saves, nn.Linear(5, 5), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            inner = checkpoint(self.inner, x, use_reentrant=reentrant) if self.saves else self.inner(x)
            return self.head(inner)

    x, y = data(4)
    sums = []
    for saves in (False, True):
        private = stepper(Saving(saves))
        ENTROPY(private.model(x.clone().requires_grad_()), y).backward()
        private.accumulate()
        sums.append(torch.cat([total.flatten() for total in private._sum.exact()]))
    assert sums[0].norm() > 0
    torch.testing.assert_close(*sums)
