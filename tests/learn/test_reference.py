"""The architectures keep their promises, and the loop over examples gives what can be known otherwise."""

from __future__ import annotations

import pytest
import torch
from sizes import one_in
from torch import Tensor, nn

from .architectures import ARCHITECTURES, Architecture
from .reference import clipped_mean, example, losses, norms, per_example_gradients

every = pytest.mark.parametrize("architecture", one_in(4, ARCHITECTURES), ids=lambda entry: entry.name)
certain = pytest.mark.parametrize(
    "architecture",
    one_in(2, [entry for entry in ARCHITECTURES if not entry.random]),
    ids=lambda entry: entry.name,
)
# All keys shifted by one vector leave every softmax as it was.
SHIFT_INVARIANT = ("key.bias", "k_proj.bias", "k_lin.bias")


def gradients_of(architecture: Architecture, n: int, *, seed: int = 0) -> dict[str, Tensor]:
    model, inputs = architecture.sample(n, seed=seed, dtype=torch.float64)
    torch.manual_seed(seed)
    return per_example_gradients(model, inputs, architecture.loss, batch_dim=architecture.batch_dim)


def test_there_are_enough_and_no_two_have_a_name() -> None:
    names = [entry.name for entry in ARCHITECTURES]
    assert len(set(names)) == len(names) >= 55
    assert sum(not entry.awkward and not entry.random for entry in ARCHITECTURES) >= 55


@every
@pytest.mark.parametrize("n", [1, 3])
def test_builds_in_training_mode_and_gives_one_finite_loss_per_example(
    architecture: Architecture, n: int
) -> None:
    model, inputs = architecture.sample(n)
    values = losses(model, inputs, architecture.loss)
    assert model.training
    assert values.shape == (n,) and values.dtype == torch.float32
    assert values.isfinite().all()
    assert 100 <= sum(p.numel() for p in model.parameters()) <= 20_000


@every
def test_is_the_same_of_the_same_seed_and_other_of_another(architecture: Architecture) -> None:
    def run(seed: int) -> Tensor:
        model, inputs = architecture.sample(3, seed=seed)
        torch.manual_seed(seed)
        return losses(model, inputs, architecture.loss)

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


@certain
def test_no_example_influences_another(architecture: Architecture) -> None:
    model, inputs = architecture.sample(4, dtype=torch.float64)
    together = losses(model, inputs, architecture.loss)
    for i in range(4):
        alone = losses(model, example(inputs, i, batch_dim=architecture.batch_dim), architecture.loss)
        torch.testing.assert_close(together[i : i + 1], alone, rtol=0, atol=1e-9)


@certain
def test_gradients_add_up_to_that_of_the_sum(architecture: Architecture) -> None:
    model, inputs = architecture.sample(4, dtype=torch.float64)
    losses(model, inputs, architecture.loss).sum().backward()
    for name, gradient in gradients_of(architecture, 4).items():
        whole = model.get_parameter(name).grad
        whole = torch.zeros_like(gradient[0]) if whole is None else whole.to_dense()
        torch.testing.assert_close(gradient.sum(0), whole, rtol=1e-9, atol=1e-9)


@every
def test_every_parameter_in_use_has_a_gradient_to_compare(architecture: Architecture) -> None:
    # Of so many rows some go to each expert of a routed mixture.
    gradients = gradients_of(architecture, 12)
    still = {name for name, gradient in gradients.items() if gradient.abs().max() < 1e-9}
    assert still - set(architecture.unused) <= {name for name in still if name.endswith(SHIFT_INVARIANT)}
    assert set(architecture.unused) <= still


@every
def test_examples_differ_in_norm(architecture: Architecture) -> None:
    sizes = norms(gradients_of(architecture, 4))
    assert (sizes > 1e-3).all()
    assert sizes.max() > 1.001 * sizes.min()


def test_gradients_of_logistic_regression_are_the_residual_times_the_features() -> None:
    model = nn.Linear(3, 2).double()
    x, y = torch.randn(4, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0])
    gradients = per_example_gradients(model, (x, y), _entropy)
    residual = model(x).softmax(1) - nn.functional.one_hot(y, 2)
    torch.testing.assert_close(gradients["weight"], residual[:, :, None] * x[:, None, :])
    torch.testing.assert_close(gradients["bias"], residual)
    expected = residual.norm(dim=1) * (x.square().sum(1) + 1).sqrt()
    torch.testing.assert_close(norms(gradients), expected)


def _entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def test_a_tied_parameter_is_counted_once_and_its_places_are_added() -> None:
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).double()
    model[1].weight = model[0].weight
    x = torch.tensor([[2.0]], dtype=torch.float64)
    gradients = per_example_gradients(model, (x, x), lambda y, _: y.squeeze(1))
    assert list(gradients) == ["0.weight"]
    torch.testing.assert_close(gradients["0.weight"].squeeze(), 2 * 2.0 * model[0].weight.detach().squeeze())


def test_clipping_scales_long_gradients_and_leaves_short_ones() -> None:
    gradients = {"a": torch.tensor([[3.0], [0.3], [0.0]]), "b": torch.tensor([[4.0], [0.4], [0.0]])}
    mean = clipped_mean(gradients, clip=1.0)
    torch.testing.assert_close(mean["a"], torch.tensor([(0.6 + 0.3) / 3]))
    torch.testing.assert_close(mean["b"], torch.tensor([(0.8 + 0.4) / 3]))
    torch.testing.assert_close(clipped_mean(gradients, clip=1.0, batch_size=6)["b"], mean["b"] / 2)
