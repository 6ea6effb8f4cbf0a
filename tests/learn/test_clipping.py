"""Every rule keeps its bound, whatever gradients are: long, of several rows, in half precision, no number."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import InvalidArgument
from dalenius.learn.adaptive import Quantile
from dalenius.learn.adding import Plan, Sum
from dalenius.learn.clipping import Absolute, Automatic, Clipping, Flat, PerLayer, shortened
from dalenius.learn.gradients import Watched
from dalenius.learn.numerics import Numerics

from .architectures import ARCHITECTURES, Architecture
from .engine import EXACT, apart, clipped_sum, length, norms_of, shares_of
from .reference import Gradients, norms, per_example_gradients
from .runs import data, network

SELECTED = [one for one in ARCHITECTURES if not one.random and not one.awkward][::5]
selected = pytest.mark.parametrize("architecture", SELECTED, ids=lambda entry: entry.name)


def summed(gradients: Gradients, factors: Callable[[str], Tensor]) -> Gradients:
    return {name: torch.einsum("n,n...->...", factors(name), one) for name, one in gradients.items()}


def flat_of(one: Tensor) -> Tensor:
    return one.reshape(len(one), -1)


def by_layer(gradients: Gradients, clip: float) -> Gradients:
    layers = {name.rpartition(".")[0] for name in gradients}
    inside = {
        layer: [one for name, one in gradients.items() if name.rpartition(".")[0] == layer]
        for layer in layers
    }
    lengths = {
        layer: torch.cat([flat_of(one) for one in ones], 1).norm(dim=1) for layer, ones in inside.items()
    }
    bound = clip / math.sqrt(len(layers))
    factors = {layer: (bound / one).clamp(max=1) for layer, one in lengths.items()}
    return summed(gradients, lambda name: factors[name.rpartition(".")[0]])


def automatic(gradients: Gradients, clip: float) -> Gradients:
    return summed(gradients, lambda _: clip / (norms(gradients) + 0.01))


def absolute(gradients: Gradients, clip: float) -> Gradients:
    whole = torch.stack([flat_of(one).abs().sum(1) for one in gradients.values()]).sum(0)
    return summed(gradients, lambda _: (clip / whole).clamp(max=1))


RULES: list[tuple[type[Clipping], Callable[[Gradients, float], Gradients]]] = [
    (PerLayer, by_layer),
    (Automatic, automatic),
    (Absolute, absolute),
]


@selected
@pytest.mark.parametrize(("rule", "naive"), RULES, ids=["layers", "automatic", "absolute"])
def test_rules_give_what_the_loop_gives(
    architecture: Architecture, rule: type[Clipping], naive: Callable[[Gradients, float], Gradients]
) -> None:
    model, inputs = architecture.sample(4, dtype=torch.float64)
    gradients = per_example_gradients(model, inputs, architecture.loss, batch_dim=architecture.batch_dim)
    wanted = naive(gradients, 0.5)
    found = clipped_sum(*shares_of(architecture, model, inputs), rule(0.5))
    assert apart(found, wanted) <= 1e-9 * length(wanted)


@selected
@pytest.mark.parametrize("rule", [Flat, PerLayer, Automatic, Absolute])
def test_one_example_keeps_within_the_bound_of_every_rule(
    architecture: Architecture, rule: type[Clipping]
) -> None:
    model, inputs = architecture.sample(1)
    total = clipped_sum(*shares_of(architecture, model, inputs), rule(0.01), Numerics(9, Fraction(1, 2**11)))
    if rule.norm == "l1":
        assert sum(float(one.double().abs().sum()) for one in total.values()) <= 0.01
    assert length(total) <= 0.01


@given(st.floats(min_value=0) | st.just(math.nan), st.floats(1e-6, 1e6))
def test_a_norm_times_its_factor_is_within_the_bound(norm: float, bound: float) -> None:
    factor = float(shortened(torch.tensor([norm], dtype=torch.float64), bound))
    assert 0 <= factor <= 1
    assert not math.isfinite(norm) or norm * factor <= bound * (1 + 1e-15)
    assert math.isfinite(norm) or factor == 0


# Several rows of one example.


def entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


def averaged(model: nn.Module, inputs: tuple[Tensor, ...], views: int) -> Gradients:
    rows = per_example_gradients(model, inputs, entropies)
    return {name: one.view(-1, views, *one.shape[1:]).mean(1) for name, one in rows.items()}


@pytest.mark.parametrize("views", [2, 3])
def test_views_are_averaged_before_they_are_clipped(views: int) -> None:
    model, (x, y) = network().double(), data(12)
    x, y = x.double(), y.repeat_interleave(views)[:12]
    gradients = averaged(model, (x, y), views)
    clip = float(norms(gradients).median())
    watched = Watched(model, rows_per_example=views)
    entropies(watched(x), y).sum().backward()
    wanted = summed(gradients, lambda _: (clip / norms(gradients)).clamp(max=1))
    total = Sum(watched.names, Plan(Flat(clip), Fraction(1), Fraction(1), EXACT))
    total.add(watched.shares(), scale=1 / views)
    found = dict(zip(watched.names.values(), total.exact(), strict=True))
    assert apart(found, wanted) <= 1e-10 * length(wanted)
    # Clipping every view by itself is something else.
    rows = per_example_gradients(model, (x, y), entropies)
    naive = summed(rows, lambda _: (clip / norms(rows)).clamp(max=1) / views)
    assert apart(naive, wanted) > 1e-3 * length(wanted)


def test_rows_that_a_unit_lacks_count_nothing() -> None:
    model, (x, y) = network().double(), data(6)
    x = x.double()
    watched = Watched(model, rows_per_example=2)
    watched.weights = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    entropies(watched(x), y).sum().backward()
    shares = watched.shares()
    rows = per_example_gradients(model, (x, y), entropies)
    units = {name: torch.stack([one[0] + one[1], one[2], 0 * one[4]]) for name, one in rows.items()}
    torch.testing.assert_close(norms_of(shares), norms(units), rtol=1e-10, atol=1e-12)
    wanted = summed(units, lambda _: (0.3 / norms(units)).clamp(max=1).nan_to_num(0, posinf=1))
    assert apart(clipped_sum(watched, shares, 0.3), wanted) <= 1e-10


# Half precision, and what is no number.


@pytest.mark.parametrize("architecture", SELECTED[::2], ids=lambda entry: entry.name)
def test_under_autocast_norms_are_single_and_what_is_added_keeps_within_the_bound(
    architecture: Architecture,
) -> None:
    model, inputs = architecture.sample(1)
    watched = Watched(model, batch_dim=architecture.batch_dim)
    with torch.autocast("cpu", torch.bfloat16):
        try:
            model(*inputs[:-1])
        except RuntimeError:
            pytest.skip("torch does not run it in half precision")
        loss = architecture.loss(watched(*inputs[:-1]), inputs[-1]).sum()
    loss.backward()
    shares = watched.shares()
    clip = float(norms_of(shares)) / 2
    assert all(one.dtype in (torch.float32, torch.float64) for one in shares.norms().values())
    assert length(clipped_sum(watched, shares, clip)) <= clip * (1 + 1e-3)


def test_autocast_gives_about_the_gradients_of_single_precision() -> None:
    model, (x, y) = network(), data(8)
    watched = Watched(model)
    with torch.autocast("cpu", torch.bfloat16):
        loss = entropies(watched(x), y).sum()
    loss.backward()
    exact = norms(per_example_gradients(model, (x, y), entropies))
    torch.testing.assert_close(norms_of(watched.shares()).float(), exact, rtol=5e-2, atol=1e-3)


def bad_rows(x: Tensor, value: float) -> Tensor:
    x = x.clone()
    x[2, 0] = value
    return x


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3e38, 1e6])
@pytest.mark.parametrize("rule", [Flat, PerLayer, Automatic, Absolute])
@pytest.mark.parametrize("half", [None, torch.bfloat16, torch.float16])
def test_an_example_that_is_no_number_adds_nothing_and_disturbs_nobody(
    value: float, rule: type[Clipping], half: torch.dtype | None
) -> None:
    if value == 1e6 and half is not torch.float16:
        pytest.skip("a number")
    model, (x, y) = nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(4, 3)), data(5)
    keep = torch.tensor([0, 1, 3, 4])

    def found(rows: Tensor, labels: Tensor) -> Gradients:
        watched = Watched(model)
        with torch.autocast("cpu", half, enabled=half is not None):
            loss = entropies(watched(rows), labels).sum()
        loss.backward()
        return clipped_sum(watched, watched.shares(), rule(0.5))

    with_it, without = found(bad_rows(x, value), y), found(x[keep], y[keep])
    assert all(one.isfinite().all() for one in with_it.values())
    assert apart(with_it, without) <= (0.02 if half else 1e-5)


def test_a_target_that_is_no_number_adds_nothing() -> None:
    model, x = nn.Linear(5, 1), data(4)[0]
    targets = torch.tensor([1.0, math.inf, math.nan, 2.0]).view(4, 1)
    watched = Watched(model)
    functional.mse_loss(watched(x), targets, reduction="sum").backward()
    with_it = clipped_sum(watched, watched.shares(), 1.0)
    watched = Watched(model)
    functional.mse_loss(watched(x[[0, 3]]), targets[[0, 3]], reduction="sum").backward()
    assert apart(with_it, clipped_sum(watched, watched.shares(), 1.0)) <= 1e-6


@pytest.mark.parametrize("architecture", SELECTED, ids=lambda entry: entry.name)
def test_no_architecture_lets_what_is_no_number_out(architecture: Architecture) -> None:
    model, inputs = architecture.sample(4)
    watched = Watched(model, batch_dim=architecture.batch_dim)
    weights = torch.tensor([1.0, math.nan, math.inf, 1.0])
    (architecture.loss(watched(*inputs[:-1]), inputs[-1]) * weights).sum().backward()
    total = clipped_sum(watched, watched.shares(), 0.1)
    alone, rest = architecture.sample(4)
    gradients = per_example_gradients(alone, rest, architecture.loss, batch_dim=architecture.batch_dim)
    good = {name: one[[0, 3]] for name, one in gradients.items()}
    wanted = summed(good, lambda _: (0.1 / norms(good)).clamp(max=1))
    assert apart(total, wanted) <= 1e-4 * length(wanted)


# A bound that follows a quantile.


def test_a_count_is_paid_for_by_noise_on_gradients() -> None:
    rule = Quantile(1, count_scale=10)
    carried = rule.noise_multiplier(Fraction(2), Fraction(64))
    moved = 1 + 128 * (5 * 2**-18 + 2**-16)
    assert 1 / float(carried) ** 2 + moved**2 / 10**2 <= 1 / 2**2
    assert float(carried) == pytest.approx((1 / 4 - moved**2 / 100) ** -0.5, rel=1e-9)


def test_a_count_moves_little_where_all_norms_move_a_little() -> None:
    rule, n = Quantile(1), 1000
    low, high = (int(rule.inside(torch.full((n,), 1 + off), 1.0).sum()) for off in (-(2**-20), 2**-20))
    assert abs(low - high) <= 2**16 * n * (5 * 2**-18 + 2**-16)


def test_a_bound_does_not_go_where_floats_end() -> None:
    from dalenius.noise.stream import StreamKey

    rule, key, clip = Quantile(1, rate=10), StreamKey.fresh(), 1.0
    for step in range(50):
        clip = rule.next(clip, 1000 * 2**16, Fraction(1000), key.stream(2, step))
    assert clip == 2.0**-32


@pytest.mark.parametrize("clip", [2**-41, 2**41, 1e-36])
def test_a_bound_where_floats_end_is_refused(clip: float) -> None:
    with pytest.raises(InvalidArgument, match="between"):
        Flat(clip)


def test_a_bound_goes_to_the_quantile() -> None:
    from dalenius.noise.stream import StreamKey

    rule, key, clip = Quantile(10, quantile=0.5, rate=0.3, count_scale=1), StreamKey.fresh(), 10.0
    lengths = torch.arange(1, 1001) / 1000
    for step in range(60):
        short = int(rule.inside(lengths, clip).sum())
        clip = rule.next(clip, short, Fraction(1000), key.stream(2, step))
    assert clip == pytest.approx(0.5, abs=0.05)
