"""`private.loss`: exact gradients of each example, and nothing that lets one example reach another."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn import custom_functions, example_calls
from dalenius.learn.adaptive import Quantile
from dalenius.learn.clipping import Absolute, PerLayer
from dalenius.learn.example_loss import ExampleLoss, Surroundings
from dalenius.learn.gradients import Watched
from dalenius.learn.private import Private

from .architectures import ARCHITECTURES, Architecture, routed
from .engine import norms_of
from .reference import Gradients, per_example_gradients
from .runs import data, flat, network, run_of

BY_VALUE = {
    *("embedding bag, offsets, sum", "embedding bag, offsets, mean", "routed mixture"),
    "GRU, packed, bidirectional, two layers",
    *(entry.name for entry in routed.ARCHITECTURES),
}
"""Architectures that select by values: no size of theirs is known before the data are."""


def cross_entropy(model: nn.Module, example: Any) -> Tensor:
    return functional.cross_entropy(model(example[0]), example[1])


def learning(model: nn.Module, function: Callable[..., Any] = cross_entropy, **more: Any) -> ExampleLoss:
    return ExampleLoss(Watched(model), function, gain=lambda _: 1.0, **more)


def gradients(learn: ExampleLoss) -> Gradients:
    """Each example's gradient, by name."""
    watched = learn._model
    shares = watched.shares()
    found: Gradients = {}
    for i in range(shares.examples):
        totals = {one: torch.zeros_like(one) for one in watched.names}
        shares.add(torch.eye(shares.examples)[i], totals)
        for one, name in watched.names.items():
            found[name] = torch.cat([found.get(name, totals[one][None][:0]), totals[one][None]])
    return found


def refusal(function: Callable[..., Any], model: nn.Module | None = None, batch: Any = None) -> str:
    learn = learning(model or network(), function)
    with pytest.raises(NotSound) as refused:
        learn(batch or data(4))
    text = str(refused.value)
    assert refused.value.remedy and "vmap" not in text and "BatchedTensor" not in text
    return text


# Gradients.


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda entry: entry.name)
def test_gradients_are_those_of_a_loop_over_examples(architecture: Architecture) -> None:
    model, inputs = architecture.sample(3)
    if architecture.random:
        model.eval()
    place = architecture.batch_dim
    batch = (*(x.movedim(place, 0) for x in inputs[:-1]), inputs[-1])

    def function(model: nn.Module, example: Any) -> Tensor:
        *arguments, target = example
        return architecture.loss(model(*(x.unsqueeze(place) for x in arguments)), target.unsqueeze(0))

    learn = learning(model, function)
    if architecture.name in BY_VALUE:
        with pytest.raises(NotSound, match="reads values"):
            learn(batch)
        return
    learn(batch)
    found = gradients(learn)
    wanted = per_example_gradients(model, inputs, architecture.loss, batch_dim=place)
    largest = max(float(one.norm()) for one in wanted.values())
    for name, one in wanted.items():
        assert float((found[name] - one).norm()) <= 2e-5 * largest, name
    assert learn.vectorized == (architecture.name != "LSTM, packed")


def test_a_loop_over_examples_finds_the_same() -> None:
    together, apart = learning(network()), learning(network())
    apart.vectorized = False
    batch = data(6)
    assert torch.allclose(together(batch), apart(batch))
    wanted = gradients(together)
    for name, one in gradients(apart).items():
        assert torch.allclose(one, wanted[name], atol=1e-6)


def test_other_examples_change_no_bit_that_matters() -> None:
    learn, (x, y) = learning(network()), data(6)
    learn((x, y))
    before = gradients(learn)
    learn((torch.cat([x[:1], 1e6 * torch.randn(5, 5)]), torch.cat([y[:1], 2 - y[1:]])))
    for name, one in gradients(learn).items():
        assert torch.allclose(one[0], before[name][0], rtol=1e-5, atol=1e-7)


def test_an_example_that_is_no_number_leaves_the_others_alone() -> None:
    learn, (x, y) = learning(network()), data(4)
    x[1] = torch.inf
    learn((x, y))
    assert torch.isfinite(norms_of(learn._model.shares())).tolist() == [True, False, True, True]


def test_dropout_draws_for_each_example() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 1, bias=False))
    learn = learning(model, lambda model, x: model(x).sum())
    learn(torch.ones(4, 64))
    rows = gradients(learn)["1.weight"].flatten(1)
    assert len({tuple(row.tolist()) for row in rows}) == 4


class Pair(NamedTuple):
    x: Tensor
    y: Tensor


@pytest.mark.parametrize(
    ("form", "read"),
    [
        (lambda x, y: Pair(x, y), lambda e: (e.x, e.y)),
        (lambda x, y: [x, y], lambda e: (e[0], e[1])),
        (lambda x, y: {"x": x, "nested": (y, None)}, lambda e: (e["x"], e["nested"][0])),
        (lambda x, y: UserDict(x=x, y=y), lambda e: (e["x"], e["y"])),
    ],
    ids=["namedtuple", "list", "dict", "mapping"],
)
def test_an_example_has_the_structure_of_its_batch(form: Any, read: Any) -> None:
    seen = []

    def function(model: nn.Module, example: Any) -> Tensor:
        x, y = read(example)
        seen.append((type(example), tuple(x.shape), tuple(y.shape)))
        return functional.cross_entropy(model(x), y)

    learn = learning(network(), function)
    learn(form(*data(4)))
    kind = type(form(*data(1)))
    assert seen == [(dict if kind is UserDict else kind, (5,), ())]


def test_parameters_from_outside_are_the_same_parameters() -> None:
    model = network()
    weight, (x, y) = model[0].weight, data(4)
    given, captured = learning(model), learning(model, lambda _, e: cross_entropy(model, e))
    given((x, y))
    wanted = gradients(given)
    for learn in (
        captured,
        learning(
            model, lambda m, e: functional.cross_entropy(m[2](torch.tanh(e[0] @ weight.T + m[0].bias)), e[1])
        ),
        learning(model, lambda _, e: functional.cross_entropy(model(e[0][None]), e[1][None])),
    ):
        learn((x, y))
        for name, one in gradients(learn).items():
            assert torch.allclose(one, wanted[name], atol=1e-6)


def test_transforms_inside_work() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))

    def penalty(model: nn.Module, x: Tensor) -> Tensor:
        return torch.func.grad(lambda x: model(x).sum())(x).square().sum()

    batch = torch.randn(3, 5)
    learn, loop = learning(model, penalty), learning(model, penalty)
    loop.vectorized = False
    learn(batch), loop(batch)
    wanted = gradients(loop)
    assert learn.vectorized and wanted["0.weight"].norm() > 0
    for name, one in gradients(learn).items():
        assert torch.allclose(one, wanted[name], atol=1e-6)


# Runs.


def sums(private: Private, make: Callable[[Any], Any], batch: Any) -> list[Tensor]:
    private._sum.clear()
    private.zero_grad()
    make(batch)
    with private.model.unwatched():
        private._take_in()
        return [one.clone() for one in private._sum.exact()]


def first(private: Private) -> Iterator[Any]:
    """The first batch, without a step on it."""
    batches = iter(private.loader)
    yield next(batches)


UNITS = {"units": np.arange(40) % 13, "rows_per_unit": 4, "batch_size": 6}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"clip": PerLayer(0.5)},
        {"clip": Absolute(2)},
        {"clip": Quantile(1, quantile=0.5)},
        {"views": 3},
        UNITS,
        {**UNITS, "clip": PerLayer(0.5), "views": 2},
    ],
    ids=["flat", "layers", "L1", "quantile", "views", "units", "units by layer"],
)
@pytest.mark.parametrize("vectorized", [True, False])
def test_sums_are_those_of_an_ordinary_pass(more: dict[str, Any], vectorized: bool) -> None:
    private = run_of(network(), data(40), **{"batch_size": 10, "clip": 0.5} | more)
    learn = private.loss(cross_entropy)
    learn.vectorized = vectorized
    criterion = nn.CrossEntropyLoss()
    for batch in first(private):
        wanted = sums(private, lambda b: criterion(private.model(b[0]), b[1]).backward(), batch)
        found = sums(private, learn, batch)
        for one, two in zip(found, wanted, strict=True):
            assert torch.allclose(one, two, atol=1e-5)
        assert sum(float(one.norm()) for one in found) > 0


def test_sums_under_autocast() -> None:
    private = run_of(network(), data(40), batch_size=10, clip=0.5)
    learn = private.loss(cross_entropy)

    def ordinary(batch: Any) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = functional.cross_entropy(private.model(batch[0]), batch[1])
        loss.backward()

    def by_example(batch: Any) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            learn(batch)

    for batch in first(private):
        for one, two in zip(sums(private, by_example, batch), sums(private, ordinary, batch), strict=True):
            assert torch.allclose(one, two, atol=0.02)


@pytest.mark.parametrize("rows", [3, 200])
def test_a_run_trains_through_empty_batches_and_chunks(rows: int) -> None:
    model = network()
    before = flat(model)
    private = run_of(model, data(rows), batch_size=1 if rows == 3 else 50, steps=8, chunk=7)
    learn = private.loss(cross_entropy)
    for batch in private.loader:
        private.zero_grad()
        value = learn(batch)
        assert value.dim() == 0 and not value.requires_grad
        private.step()
    assert private.steps == 8 and not torch.equal(flat(model), before)


def test_closures_are_evaluated() -> None:
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2, lr=0.1)
    private = Private(model, optimizer, data(20), batch_size=8, steps=2, clip=1, noise_multiplier=1)
    learn = private.loss(cross_entropy)
    for batch in private.loader:
        private.step(lambda batch=batch: learn(batch))
    assert private.steps == 2


def test_the_receipt_says_how_examples_are_independent() -> None:
    private = run_of(network(), data(20))
    learn = private.loss(cross_entropy)
    assert learn.how in private.receipt.bounds and "one example" in learn.how
    assert any("no state in Python" in one for one in learn.assumptions)


def test_the_mean_leaves_out_rows_that_fill_up_a_unit() -> None:
    learn, (x, y) = learning(network()), data(4)
    learn._model.weights = torch.tensor([True, True, False, True])
    value = learn((x, y))
    kept = torch.tensor([0, 1, 3])
    assert torch.allclose(value, functional.cross_entropy(learn._model.inner(x[kept]), y[kept]))
    assert norms_of(learn._model.shares())[2] < 1e-12


def test_there_is_a_batch_to_learn_from_once() -> None:
    private = run_of(network(), data(20))
    learn = private.loss(cross_entropy)
    with pytest.raises(InvalidArgument, match="no batch"):
        learn(data(3))
    for batch in first(private):
        learn(batch)
        with pytest.raises(NotSound, match="not taken in"):
            learn(batch)
        learn(batch)
        private.zero_grad()
        learn(batch)
        with pytest.raises(NotSound, match="already"):
            functional.cross_entropy(private.model(batch[0]), batch[1]).backward()
        with pytest.raises(NotSound, match="more or fewer rows"):
            learn(tuple(torch.cat([one, one]) for one in batch))


# Refusals.


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize(
    "steer",
    [
        lambda loss: loss if loss > 1 else 0 * loss,
        lambda loss: loss * loss.item(),
        lambda loss: loss * float(loss),
        lambda loss: loss * loss.tolist(),
        lambda loss: loss * float(loss.detach().numpy()),
        lambda loss: loss.reshape(1)[loss.reshape(1) > 0].sum(),
        lambda loss: loss * len(loss.reshape(1).nonzero()),
        lambda loss: loss * len(torch.unique(loss)),
    ],
)
def test_branches_on_values_are_refused(steer: Callable[[Tensor], Any], vectorized: bool) -> None:
    learn = learning(network(), lambda model, e: steer(cross_entropy(model, e)))
    learn.vectorized = vectorized
    with pytest.raises(NotSound, match=r"reads values .* in test_example_loss.py, line \d+"):
        learn(data(4))


@pytest.mark.parametrize(
    "result", [None, 1.0, torch.ones(2), (torch.ones(()), 1), torch.tensor(1)], ids=lambda one: str(type(one))
)
def test_a_loss_is_one_number(result: Any) -> None:
    assert "one floating-point number" in refusal(lambda *_: result)


def test_losses_of_tokens_are_averaged_first() -> None:
    assert "one floating-point number" in refusal(lambda model, e: model(e[0]))


def test_a_loss_depends_on_the_model() -> None:
    assert "no trained parameter" in refusal(lambda _, e: e[0].sum())
    assert "no trained parameter" in refusal(lambda model, e: cross_entropy(model, e).detach())


def test_batch_norm_is_refused() -> None:
    model = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    assert "BatchNorm" in refusal(lambda model, e: model(e[0][None]).sum(), model)


class Running(nn.Module):
    """Keeps statistics, by writing into a buffer or by replacing it."""

    def __init__(self, keep: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.keep = nn.Linear(5, 3), keep
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x: Tensor) -> Any:
        self.keep(self, x)
        return self.inner(x - self.mean)


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize(
    "keep",
    [
        lambda model, x: model.mean.add_(x),
        lambda model, x: model.mean.copy_(x),
        lambda model, x: model.mean[0].add_(x[0]),
        lambda model, x: model.mean.__setitem__(0, x[0]),
        lambda model, x: setattr(model.mean, "data", x),
        lambda model, x: model.mean.data.mul_(0.9).add_(x),
        lambda model, x: torch.add(model.mean, x, out=model.mean),
        lambda model, x: setattr(model, "mean", x.detach()),
        lambda model, x: setattr(model, "mean", 0.9 * model.mean + x),
    ],
)
def test_running_statistics_are_refused(keep: Callable[[Any, Tensor], Any], vectorized: bool) -> None:
    model = Running(keep)
    learn = learning(model)
    learn.vectorized = vectorized
    with pytest.raises(NotSound):
        learn(data(4))
    assert not model.mean.any()


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_functions_that_write_inside_are_refused(vectorized: bool, grad: bool) -> None:
    table, mean, var = nn.Embedding(3, 5, max_norm=0.1), torch.zeros(5), torch.ones(5)
    before = table.weight.detach().clone()
    for changed in (
        lambda x, y: x + table(y),
        lambda x, y: functional.batch_norm(x.expand(2, 5), mean, var, training=True)[0],
        lambda x, y: torch.batch_norm(x.expand(2, 5), None, None, mean, var, True, 0.1, 1e-5, False)[0],
        lambda x, y: functional.instance_norm(x[None, :, None].expand(1, 5, 2), mean, var)[0, :, 0],
    ):

        def function(model: nn.Module, example: Any, changed: Any = changed) -> Tensor:
            with torch.set_grad_enabled(grad):
                x = changed(*example)
            return functional.cross_entropy(model(x), example[1])

        learn = learning(network(), function)
        learn.vectorized = vectorized
        x, y = data(4)
        with pytest.raises(NotSound, match=r"writes into|requires gradients"):
            learn((x, y))
    assert torch.equal(table.weight, before) and not mean.any()


@pytest.mark.parametrize("vectorized", [True, False])
def test_what_is_kept_of_one_example_reaches_no_other(vectorized: bool) -> None:
    kept: list[Tensor] = []

    def function(model: nn.Module, example: Any) -> Tensor:
        loss = cross_entropy(model, example)
        kept.append(loss.detach())
        return loss * sum(kept[:-1], start=torch.ones(()))

    learn = learning(network(), function)
    learn.vectorized = vectorized
    batch = data(4)
    if vectorized:
        learn(batch)
        assert len(kept) == 1
        learn._model.shares()
    with pytest.raises(NotSound, match="kept from another example" if vectorized else "kept another value"):
        learn(batch)


def test_constants_may_be_kept() -> None:
    cache: dict[str, Tensor] = {}

    def function(model: nn.Module, example: Any) -> Tensor:
        if "scale" not in cache:
            cache["scale"] = torch.arange(5.0) + 1
        return functional.cross_entropy(model(example[0] * cache["scale"]), example[1])

    for vectorized in (True, False):
        learn = learning(network(), function)
        learn.vectorized = vectorized
        for _ in range(2):
            learn(data(4))
            learn._model.shares()


@pytest.mark.parametrize("vectorized", [True, False])
def test_the_batch_from_outside_is_refused(vectorized: bool) -> None:
    x, y = data(4)
    for whole in (lambda: x.mean(0), lambda: x[0], lambda: torch.stack([x, x]).sum(), lambda: x.view(-1)[:5]):
        learn = learning(network(), lambda m, e, whole=whole: cross_entropy(m, (e[0] - whole(), e[1])))
        learn.vectorized = vectorized
        with pytest.raises(NotSound, match="not its example"):
            learn((x, y))


def test_what_the_run_knows_is_asked() -> None:
    secret, batch = torch.ones(5), data(4)
    around = Surroundings(
        admitted=lambda one: one.dtype != torch.float64,
        private=lambda one: one is secret or one == 12345.0 if not isinstance(one, Tensor) else one is secret,
        logged=lambda value: ("private", value),
    )
    learn = learning(network(), surroundings=around)
    assert learn(batch)[0] == "private"
    learn._model.shares()
    with pytest.raises(NotSound, match="mixed before"):
        learn((batch[0].double(), batch[1]))
    for uses in (lambda x: x * secret, lambda x: x * 12345.0, lambda x: x + torch.full((5,), 12345.0)):
        learn = learning(
            network(), lambda m, e, uses=uses: cross_entropy(m, (uses(e[0]), e[1])), surroundings=around
        )
        with pytest.raises(NotSound, match="not its example"):
            learn(batch)


@pytest.mark.parametrize("vectorized", [True, False])
def test_an_error_that_is_caught_steers_nothing(vectorized: bool) -> None:
    x, y = data(4)
    x[2] = torch.nan

    def function(model: nn.Module, example: Any) -> Tensor:
        try:
            return model(example[0]).sum() + torch.linalg.ldl_factor(example[0].expand(5, 5)).LD.sum()
        except RuntimeError:
            return 0 * model(example[0]).sum()

    learn = learning(network(), function)
    learn.vectorized = vectorized
    with pytest.raises(NotSound, match="failed with RuntimeError"):
        learn((x, y))


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize(
    "use",
    [
        lambda loss: loss.register_hook(lambda g: 2 * g),
        lambda loss: loss.grad_fn.register_hook(lambda g, _: g),
        lambda loss: loss.backward(),
        lambda loss: loss.untyped_storage(),
    ],
)
def test_code_that_is_not_watched_gets_no_example(use: Callable[[Tensor], Any], vectorized: bool) -> None:
    def function(model: nn.Module, example: Any) -> Tensor:
        loss = cross_entropy(model, example)
        use(loss)
        return loss

    learn = learning(network(), function)
    learn.vectorized = vectorized
    with pytest.raises(NotSound):
        learn(data(4))


def test_hooks_of_modules_on_gradients_are_refused() -> None:
    model = network()
    model[0].register_full_backward_hook(lambda *_: None)
    assert "0 has hooks" in refusal(cross_entropy, model)


def test_hooks_on_saved_tensors_are_refused() -> None:
    def function(model: nn.Module, example: Any) -> Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x + x.sum(0)):
            return cross_entropy(model, example)

    assert "saved tensors" in refusal(function)
    with torch.autograd.graph.save_on_cpu():
        assert "saved tensors" in refusal(cross_entropy)


def test_processes_exchange_nothing(tmp_path: Path) -> None:
    def function(model: nn.Module, example: Any) -> Tensor:
        loss = cross_entropy(model, example)
        total = loss.detach().clone()
        torch.distributed.all_reduce(total)
        return loss / total

    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        assert "between processes" in refusal(function)
        learning(network())(data(4))
    finally:
        torch.distributed.destroy_process_group()


def test_a_loss_that_was_kept_is_refused() -> None:
    kept: list[Tensor] = []

    def function(model: nn.Module, example: Any) -> Tensor:
        kept.append(cross_entropy(model, example))
        return kept[0]

    learn = learning(network(), function)
    learn(data(4))
    learn._model.shares()
    with pytest.raises(NotSound, match="kept from another"):
        learn(data(4))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_models_run_as_they_are_written() -> None:
    model = network()
    learn, plain = learning(torch.compile(model)), learning(network())
    learn(data(4)), plain(data(4))
    for one, two in zip(gradients(learn).values(), gradients(plain).values(), strict=True):
        assert torch.equal(one, two)


class Mixing(torch.autograd.Function):
    """Brings a vmap rule that mixes examples."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *g: Tensor) -> Tensor:
        return g[0] * 2

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        return x * 2 + x.sum(in_dims[0], keepdim=True), in_dims[0]


class Old(torch.autograd.Function):
    """Cannot be mapped."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *g: Tensor) -> Tensor:
        return g[0] * 2


@pytest.mark.parametrize("function", [Mixing, Old])
def test_functions_that_nobody_vouches_for_are_refused(function: Any) -> None:
    """Their backward passes may keep something of one example for the next."""
    learn = learning(network(), lambda m, e: functional.cross_entropy(function.apply(m(e[0])), e[1]))
    with pytest.raises(NotSound, match="custom autograd function"):
        learn(data(4))


@pytest.mark.parametrize("function", [Mixing, Old])
def test_functions_with_rules_of_their_own_run_one_example_at_a_time(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom_functions, "REGISTERED", {function})
    monkeypatch.setattr(example_calls, "REGISTERED", {function})
    plain = learning(network(), lambda m, e: functional.cross_entropy(2 * m(e[0]), e[1]))
    learn = learning(network(), lambda m, e: functional.cross_entropy(function.apply(m(e[0])), e[1]))
    plain(data(4)), learn(data(4))
    wanted = gradients(plain)
    assert not learn.vectorized
    for name, one in gradients(learn).items():
        assert torch.allclose(one, wanted[name], atol=1e-6)


def test_errors_show_no_data() -> None:
    x, y = data(4)
    x[2] = torch.nan
    text = refusal(
        lambda model, e: model(e[0]).sum() + torch.linalg.ldl_factor(e[0].expand(5, 5)).LD.sum(), batch=(x, y)
    )
    assert "Batch element" not in text and "test_example_loss.py" in text
    text = refusal(lambda model, e: cross_entropy(model, (e[0][:3], e[1])))
    assert "unsqueeze" in text and "8x" not in text


def test_mistakes_in_python_are_shown() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        learning(network(), lambda model, _: model.nonsense)(data(4))
    with pytest.raises(TypeError, match="NoneType"):
        learning(network(), lambda model, _: None + 1)(data(4))


PUT_TOGETHER: dict[str, Callable[[str, nn.Module], Any]] = {
    "an attribute": lambda text, model: getattr(model, f"head_{text}"),
    "a name": lambda text, model: eval("x" + text[-2]),
    "a module": lambda text, model: __import__(f"module_{text}"),
    "an argument": lambda text, model: model(**{text: 1}),
    "a base": lambda text, model: setattr(object(), f"name_{text}", 1),
}


@pytest.mark.parametrize("use", PUT_TOGETHER.values(), ids=PUT_TOGETHER)
def test_names_that_are_put_together_from_values_are_not_shown(
    use: Callable[[str, nn.Module], Any],
) -> None:
    def function(model: nn.Module, example: Any) -> Tensor:
        loss = torch.zeros(1)
        loss[0] = cross_entropy(model, example)
        use(str(example[1]), model)
        return loss[0]

    with pytest.raises(NotSound, match="withheld"):
        learning(network(), function)(data(4))


def test_batches_are_of_tensors_with_a_row_for_each_example() -> None:
    learn = learning(network())
    for batch in ((torch.ones(4, 5), ["a", "b"]), (torch.ones(4, 5), torch.ones(3)), torch.ones(()), ()):
        with pytest.raises(InvalidArgument):
            learn(batch)
    with pytest.raises(InvalidArgument, match="function"):
        learning(network(), cast(Any, 3))
