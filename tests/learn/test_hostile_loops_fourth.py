"""Loops that three further independent readings got through: all of them are refused.

Measured shifts of a clipped sum were between 1.1 and 6 clip norms, or a plain number was had that follows
from private examples.
"""

from __future__ import annotations

import math
from collections import UserList, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from dalenius.errors import NotSound
from dalenius.learn.private import Private
from tests.learn.runs import data, network, run_of

aten: Any = torch.ops.aten
LossOf = Callable[[Any, Tensor, Tensor], Any]


def run(rows: Any = None, **more: Any) -> Private:
    """Return a run over nine rows, all of which are in every batch."""
    usual = {"batch_size": 9, "public_size": 9, "steps": 2}
    return run_of(network(), data(9) if rows is None else rows, **usual | more)


def train(private: Private, loss_of: LossOf) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss_of(private, x, y).backward()
        private.step()


def scaled(private: Any, x: Tensor, y: Tensor, scale: Any) -> Tensor:
    return functional.cross_entropy(private.model(x * scale), y)


def by(decision: Callable[[Tensor, Tensor], Any]) -> LossOf:
    """Return a loop that decides by a value."""
    return lambda private, x, y: scaled(private, x, y, 3.0 if decision(x, y) else 0.3)


def times(factor: Callable[[Tensor, Tensor], Any]) -> LossOf:
    return lambda private, x, y: scaled(private, x, y, factor(x, y))


def statistic(x: Tensor) -> Tensor:
    return 3 * x.std(0)


def many(x: Tensor) -> Tensor:
    return (x > 1.5).sum()


# Plain values, and what torch reads as numbers.

TABLE = torch.ones(100)
PLAIN: dict[str, LossOf] = {
    "sym_float": by(lambda x, y: torch.sym_float(many(x)) >= 3),
    "sym_int": by(lambda x, y: torch.sym_int(many(x)) >= 3),
    "sym_not": by(lambda x, y: torch.sym_not(many(x) >= 3)),
    "sym_sum of a size": by(lambda x, y: torch.sym_sum([x.shape[0], 0]) >= 9),
    "sym_int of a number": by(lambda x, y: torch.sym_int(many(x).item() * 1.0) >= 3),
    "is_same_size": by(lambda x, y: torch.is_same_size(x, torch.zeros(9, 5))),
    "is_same_size of a slice": by(lambda x, y: torch.ones(9)[: x.shape[0]].is_same_size(torch.ones(9))),
    "entries of a sparse tensor": by(lambda x, y: (x * (x > 1.5)).to_sparse()._nnz() >= 3),
    "an operator's item": by(lambda x, y: aten.item.default(many(x)) >= 3),
    "an operator's comparison": by(lambda x, y: aten.equal.default(many(x), torch.tensor(3))),
    "an operator's size": by(lambda x, y: aten.size.int(x, 0) == 9),
    "an entry of a list": by(lambda x, y: y.tolist()[8]),
    "the state of the generator": by(lambda x, y: int(torch.get_rng_state().view(torch.int64)[2]) % 2),
    "a slice": times(lambda x, y: math.cos(math.pi * TABLE[: y.sum()].shape[0])),
    "the length of a slice": times(lambda x, y: math.cos(math.pi * len(TABLE[y.sum() :]))),
    "a slice as a tensor": times(lambda x, y: torch.cos(math.pi * TABLE[: y.sum()].sum())),
    "a loop over a slice": times(lambda x, y: math.cos(math.pi * sum(1 for _ in TABLE[: y.sum()]))),
    "pieces of a size": times(lambda x, y: math.cos(math.pi * len(TABLE.split(y.sum())))),
    "so many pieces": times(lambda x, y: math.cos(math.pi * len(TABLE.tensor_split(y.sum())))),
    "a dimension": by(lambda x, y: torch.ones(2, 3).sum(dim=(y.sum() % 2)).shape[0] == 2),
    "dimensions exchanged": by(lambda x, y: torch.ones(2, 3).transpose(0, y.sum() % 2).shape[0] == 2),
    "a dimension less": by(lambda x, y: torch.ones(1, 3).squeeze(y.sum() % 2).dim() == 2),
    "dimensions flattened": by(lambda x, y: torch.ones(1, 3, 2).flatten(y.sum() % 2).dim() == 1),
}


class Sequence:
    """Anything with a length and entries is a list to torch."""

    def __init__(self, *entries: Any) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, place: int) -> Any:
        return self.entries[place]


class TensorLike:
    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*[one.tensor if isinstance(one, TensorLike) else one for one in args], **(kwargs or {}))


class Centred(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            return (result - 3 * result.mean(0)).as_subclass(Tensor)


ZERO = torch.zeros(5).as_subclass(Centred)
CONTAINERS: dict[str, LossOf] = {
    "a deque": times(lambda x, y: torch.tensor(deque([many(x).float()]))),
    "a list of another class": times(lambda x, y: torch.tensor(UserList([many(x).float()]))),
    "a sequence": times(lambda x, y: torch.as_tensor(Sequence(many(x).float()))),
    "an index that is a deque": times(lambda x, y: TABLE[deque([many(x)])]),
    "a nested tensor": times(lambda x, y: torch.nested.nested_tensor([statistic(x)])[0]),
    "something like a tensor": times(lambda x, y: torch.mul(torch.ones(5), TensorLike(statistic(x)))),
    "a public tensor of another class": lambda private, x, y: scaled(private, x + ZERO, y, 1.0),
    "memory that was kept": times(lambda x, y: torch.tensor([]).set_(stored(x))),
}


def stored(x: Tensor) -> Any:
    tensor = torch.zeros(5)
    storage = tensor.storage()
    tensor.copy_(statistic(x))
    return storage.clone()


# Writes.


def into_expanded(private: Any, x: Tensor, y: Tensor) -> Tensor:
    target = torch.zeros(1, 5).expand(x.shape[0], 5)
    target[torch.arange(x.shape[0])] = x * 3
    return scaled(private, x, y, target)


def filled_expanded(private: Any, x: Tensor, y: Tensor) -> Tensor:
    target = torch.zeros(1, 5).expand(x.shape[0], 5).masked_fill_(x[:, :1] > 0.9, 5.0)
    return scaled(private, x, y, target)


def running_statistics(private: Any, x: Tensor, y: Tensor) -> Tensor:
    mean, variance = torch.zeros(5), torch.ones(5)
    torch.native_batch_norm(x * x.std(0), None, None, mean, variance, True, 1.0, 1e-5)
    return scaled(private, x, y, variance * 3)


def observed(private: Any, x: Tensor, y: Tensor) -> Tensor:
    low, high, scale = torch.zeros(1), torch.ones(1), torch.ones(1)
    zero, on, off = torch.zeros(1, dtype=torch.int), torch.tensor([1]), torch.tensor([0])
    torch.fused_moving_avg_obs_fake_quant(x, on, off, low, high, scale, zero, 1.0, 0, 255, 0)
    return scaled(private, x, y, high)


def copied_by_an_operator(private: Any, x: Tensor, y: Tensor) -> Tensor:
    public = torch.ones(5)
    aten._foreach_copy_([public], [statistic(x)])
    return scaled(private, x, y, public)


def view_of_what_was_overwritten(private: Any, x: Tensor, y: Tensor) -> Tensor:
    copy = x.clone()
    view = copy.view(-1, 5)
    aten.mul_.Tensor(copy, statistic(x))
    return functional.cross_entropy(private.model(view), y)


def slice_written(private: Any, x: Tensor, y: Tensor) -> Tensor:
    public = torch.ones(5)
    public[: many(x)] = 3.0
    return scaled(private, x, y, public)


def replaced_through_data(private: Any, x: Tensor, y: Tensor) -> Tensor:
    factor = torch.ones(3)
    out = private.model(x)
    loss = functional.cross_entropy(out * factor, y)
    factor.data = out.detach().std(0) * 20
    return loss


def hooked(private: Any, x: Tensor, y: Tensor) -> Tensor:
    public = torch.ones(5, requires_grad=True)
    product = public * 1
    product.register_hook(lambda gradient: gradient * 0 + statistic(x))
    product.sum().backward()
    assert public.grad is not None
    return scaled(private, x, y, public.grad)


class Back(torch.autograd.Function):
    value: Any = None

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor * 1

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * 0 + Back.value


def custom(private: Any, x: Tensor, y: Tensor) -> Tensor:
    public, Back.value = torch.ones(5, requires_grad=True), statistic(x)
    Back.apply(public).sum().backward()
    assert public.grad is not None
    return scaled(private, x, y, public.grad)


class Keeps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.ones(5))

    def forward(self, x: Tensor) -> Any:
        return x * self.kept


def scripted(private: Any, x: Tensor, y: Tensor) -> Tensor:
    module: Any = torch.jit.script(Keeps())
    module.kept = statistic(x)
    return scaled(private, x, y, module(torch.ones(5)))


def caught(private: Any, x: Tensor, y: Tensor) -> Tensor:
    try:
        torch.zeros(45).view(x.shape[0], 5)
        scale = 3.0
    except RuntimeError:
        scale = 0.3
    return scaled(private, x[:8], y[:8], scale) if False else scaled(private, x, y, scale)


WRITES = {
    function.__name__: function
    for function in (
        into_expanded, filled_expanded, running_statistics, observed, copied_by_an_operator,
        view_of_what_was_overwritten, slice_written, replaced_through_data, hooked, custom, scripted,
    )
}  # fmt: skip
LOOPS: dict[str, LossOf] = {**PLAIN, **CONTAINERS, **WRITES}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss_of", LOOPS.values(), ids=LOOPS.keys())
def test_the_loop_is_refused(loss_of: LossOf) -> None:
    with pytest.raises(NotSound):
        train(run(), loss_of)


def test_what_was_changed_through_data_is_found_on_the_way_back() -> None:
    def loss_of(private: Any, x: Tensor, y: Tensor) -> Tensor:
        copy = x.clone()
        loss = functional.cross_entropy(private.model(copy), y)
        copy.data.copy_(x.sum(0) * torch.ones_like(x))
        return loss

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        train(run(), loss_of)


def test_an_error_that_tells_a_size_ends_the_run() -> None:
    rows = data(9)
    private = run(tuple(column[:8] for column in rows), public_size=9)
    with pytest.raises(NotSound, match="failed on private examples"):
        train(private, caught)


def test_an_error_does_not_tell_the_size_of_the_batch() -> None:
    def loss_of(private: Any, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(private.model(x) @ torch.ones(7, 3), y)

    with pytest.raises(RuntimeError, match=r"\[n, 3\] X \[7, 3\]") as error:
        train(run(), loss_of)
    assert "9" not in str(error.value) and error.value.__context__ is None


def test_two_runs_know_each_other_s_memory() -> None:
    one, two = run(), run()
    for (x, _), (u, v) in zip(one.loader, two.loader, strict=True):
        kept = torch.Tensor(statistic(x)) * 1
        with pytest.raises(NotSound):
            scaled(two, u, v, kept).backward()
            two.step()
        break


def test_sizes_stay_private_after_the_loop() -> None:
    private = run()
    for x, y in private.loader:
        private.zero_grad()
        drawn = torch.rand(x.shape[0])
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    with pytest.raises(NotSound):
        assert drawn.shape[0] == 9


# Modes.


class Centring(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result - result.mean(0) if func is aten.addmm.default else result


class Reading(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def beneath(mode: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    with mode():
        yield


@pytest.mark.parametrize("mode", [Centring, Reading])
def test_modes_of_the_users_beneath_the_loop_are_refused(mode: Any) -> None:
    with beneath(mode), pytest.raises(NotSound, match="mode"):
        train(run(), lambda private, x, y: scaled(private, x, y, 1.0))


def test_a_dispatch_mode_inside_the_loop_is_refused() -> None:
    def loss_of(private: Any, x: Tensor, y: Tensor) -> Tensor:
        with Centring():
            return scaled(private, x, y, 1.0)

    with pytest.raises(NotSound, match="Centring"):
        train(run(), loss_of)


def test_a_loop_that_is_no_longer_watched_is_refused() -> None:
    private = run()
    batches = iter(private.loader)
    with torch.device("cpu"):
        x, y = next(batches)
    try:
        with pytest.raises(NotSound):
            scaled(private, x, y, 1.0).backward()
            private.step()
            next(batches)
    finally:
        while torch._C._len_torch_function_stack():
            torch.overrides._pop_mode()


def test_a_device_around_the_loop_is_accepted() -> None:
    private = run()
    with torch.device("cpu"):
        train(private, lambda private, x, y: scaled(private, x, y, 1.0))
    assert private.steps == 2


# The loss of one example.


def plain(model: nn.Module, example: Any) -> Tensor:
    return functional.cross_entropy(model(example[0]), example[1])


def learned(function: Any, *, batch: Callable[[Any], Any] = lambda batch: batch, **more: Any) -> Private:
    private = run(**more)
    learn = private.loss(function)
    for rows in private.loader:
        private.zero_grad()
        KEPT["batch"] = rows
        learn(batch(rows))
        private.step()
    return private


KEPT: dict[str, Any] = {}
LEAF = torch.ones(5, requires_grad=True)


def sign() -> Tensor:
    return KEPT["batch"][0].sum().sign()


class Recomputed(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * sign()


@torch.library.custom_op("dalenius_tests::turned", mutates_args=())
def turned(x: Tensor) -> Tensor:
    return x * sign()


def reseeded(model: nn.Module, example: Any) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        noise = torch.rand(5)
    return plain(model, (example[0] + noise, example[1]))


def kept_state(model: nn.Module, example: Any) -> Tensor:
    state = torch.get_rng_state()
    loss = plain(model, (example[0] + torch.rand(5), example[1]))
    torch.set_rng_state(state)
    return loss


EXAMPLES: dict[str, Any] = {
    "a leaf from outside": lambda model, example: plain(model, (example[0] * LEAF, example[1])),
    "a function of a leaf": lambda model, example: plain(model, (example[0] * KEPT["product"], example[1])),
    "a custom function": lambda model, example: functional.cross_entropy(
        Recomputed.apply(model(example[0])), example[1]
    ),
    "a custom operator": lambda model, example: functional.cross_entropy(
        turned(model(example[0])), example[1]
    ),
    "a seed": reseeded,
    "a state that is put back": kept_state,
    "memory by another way": lambda model, example: plain(
        model,
        (example[0] * torch.from_dlpack(torch.utils.dlpack.to_dlpack(KEPT["batch"][0])).sum(), example[1]),
    ),
    "a deque": lambda model, example: plain(model, (example[0] * torch.tensor(deque([sign()])), example[1])),
    "a slice": lambda model, example: plain(
        model, (example[0] * TABLE[: KEPT["batch"][1].sum()].sum(), example[1])
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_the_loss_of_one_example_is_refused(function: Any) -> None:
    KEPT["product"] = LEAF * 2
    with pytest.raises(NotSound):
        learned(function)
    assert LEAF.grad is None


def test_a_checkpoint_computes_nothing_on_the_way_back() -> None:
    calls = []

    def part(model: nn.Module, x: Tensor) -> Any:
        calls.append(1)
        return model(x)

    def function(model: nn.Module, example: Any) -> Tensor:
        out: Any = checkpoint(part, model, example[0], use_reentrant=False)
        return functional.cross_entropy(out, example[1])

    private = learned(function)
    assert len(calls) == private.steps == 2


def test_the_size_of_the_batch_is_not_an_entry_of_its_rows() -> None:
    with pytest.raises(NotSound, match="mixed"):
        learned(
            lambda model, example: plain(model, example) * example[2],
            batch=lambda rows: (*rows, (rows[0][:, 0] * 0 + 1) * rows[0].shape[0]),
        )


def test_a_dispatch_mode_around_the_loss_is_refused() -> None:
    def function(model: nn.Module, example: Any) -> Tensor:
        with Centring():
            return plain(model, example)

    with pytest.raises(NotSound):
        learned(function)


def test_a_failure_that_is_caught_ends_the_run() -> None:
    x, y = data(9)
    x[-1] = torch.nan

    def function(model: nn.Module, example: Any) -> Tensor:
        # What is no number has no singular values: whether this fails depends on the example.
        return plain(model, example) + torch.norm(torch.outer(example[0], example[0]), p="nuc", dim=(-2, -1))

    private = run((x, y))
    learn = private.loss(function)
    for rows in private.loader:
        private.zero_grad()
        with pytest.raises(NotSound):
            learn(rows)
        with pytest.raises(NotSound, match="failed on private examples"):
            private.step()
        break


def test_what_is_kept_of_examples_is_private_in_the_loop() -> None:
    kept = [torch.zeros(5)]

    def function(model: nn.Module, example: Any) -> Tensor:
        kept[0] = example[0] * 1
        return plain(model, example)

    private = run()
    learn = private.loss(function)
    learn.vectorized = False
    for x, y in private.loader:
        private.zero_grad()
        learn((x, y))
        with pytest.raises(NotSound):
            assert kept[0].sum() > 0
        break


# What the third reading found.


def scaled_view(private: Any, x: Tensor, y: Tensor) -> Tensor:
    x[2:].mul_(statistic(x))
    return functional.cross_entropy(private.model(x), y)


def view_written_by_out(private: Any, x: Tensor, y: Tensor) -> Tensor:
    copy = x.clone()
    torch.sum(x, 0, keepdim=True, out=copy[:1])
    return functional.cross_entropy(private.model(copy), y)


def labels_written(private: Any, x: Tensor, y: Tensor) -> Tensor:
    labels = y.clone()
    labels[2:].copy_((y[2:] + many(x)) % 3)
    return functional.cross_entropy(private.model(x), labels)


def hook_on_the_graph(private: Any, x: Tensor, y: Tensor) -> Tensor:
    weight: Any = next(private.model.inner.parameters()) * 2
    weight.grad_fn.register_prehook(lambda gradients: (gradients[0] * 0 + x.mean(),))
    return scaled(private, x, y, 1.0)


def drawn_by_a_generator(private: Any, x: Tensor, y: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    x[x[:, 0] > 1].normal_(generator=generator)
    return scaled(private, x, y, torch.rand(5, generator=generator))


def drawn_from_a_known_seed(private: Any, x: Tensor, y: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        functional.dropout(x)
        noise = torch.randn(5)
    return scaled(private, x, y, noise)


def state_put_back(private: Any, x: Tensor, y: Tensor) -> Tensor:
    state = torch.get_rng_state()
    torch.poisson(x.abs().sum())
    first = torch.rand(())
    torch.set_rng_state(state)
    return scaled(private, x, y, 3.0 if first == torch.rand(()) else 0.3)


def divided(x: Tensor, y: Tensor) -> bool:
    try:
        return bool(1 / many(x).item())
    except ZeroDivisionError:
        return False


THIRD: dict[str, LossOf] = {
    **{
        function.__name__: function
        for function in (
            scaled_view, view_written_by_out, labels_written, hook_on_the_graph, drawn_by_a_generator,
            drawn_from_a_known_seed, state_put_back,
        )
    },
    "a division by zero": by(divided),
    "the rank of what a mask picks": by(lambda x, y: len(x[x[:, 0] > 4].squeeze(0).shape) == 1),
    "the layout of a slice": by(lambda x, y: x[7:].t().is_contiguous()),
}  # fmt: skip


@pytest.mark.parametrize("loss_of", THIRD.values(), ids=THIRD.keys())
def test_what_the_third_reading_found_is_refused(loss_of: LossOf) -> None:
    with pytest.raises(NotSound):
        train(run(), loss_of)


@pytest.mark.parametrize(
    "read",
    [
        torch.sym_float,
        torch.sym_not,
        lambda loss: aten.item.default(loss),
        lambda loss: loss.to_sparse()._nnz(),
    ],
)
def test_what_was_kept_of_a_loop_gives_no_plain_value(read: Any) -> None:
    private, kept = run(), []
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        kept.append(loss.detach())
    with pytest.raises(NotSound):
        assert read(kept[0])


def test_models_are_saved_and_public_data_are_read_by_workers_in_a_loop(tmp_path: Any) -> None:
    private = run()
    public = torch.utils.data.DataLoader(torch.arange(4), batch_size=2, num_workers=1)
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        torch.save({"model": private.model.inner.state_dict()}, tmp_path / "model.pt")
        assert torch.load(tmp_path / "model.pt")["model"]
        assert [len(batch) for batch in public] == [2, 2]
