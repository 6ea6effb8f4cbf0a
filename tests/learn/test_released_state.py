"""What leaves a run is what the optimizer left there; anything else that a model holds is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.averaging import Average
from dalenius.learn.fingerprints import Fingerprints, _buckets
from dalenius.learn.private import Private
from dalenius.ledger.account import Account
from dalenius.noise.stream import StreamKey

from .runs import data, network, run_of

ROWS = 40


class Writes(nn.Module):
    """A network that, from some time on, writes to its own state what it sees."""

    def __init__(self, write: Callable[[Writes, Tensor], None]) -> None:
        super().__init__()
        self.layer, self.write, self.late = nn.Linear(5, 3), write, False
        self.frozen = nn.Parameter(torch.zeros(5), requires_grad=False)
        self.register_buffer("kept", torch.zeros(5))
        self.register_buffer("hidden", torch.zeros(5), persistent=False)
        self.extra = torch.zeros(5)

    def get_extra_state(self) -> Tensor:
        return self.extra

    def set_extra_state(self, state: Tensor) -> None:
        self.extra = state

    def forward(self, x: Tensor) -> Tensor:
        if self.late:
            with torch.no_grad():
                self.write(self, x.detach()[0].clone())
        return self.layer(x)


def frozen(model: Writes, row: Tensor) -> None:
    model.frozen.copy_(row)


def frozen_data(model: Writes, row: Tensor) -> None:
    model.frozen.data = row


def frozen_last_bit(model: Writes, row: Tensor) -> None:
    model.frozen.numpy()[:1].view("int32")[0] ^= 1


def buffer(model: Writes, row: Tensor) -> None:
    model.kept.copy_(row)


def buffer_replaced(model: Writes, row: Tensor) -> None:
    model.kept = row


def buffer_removed(model: Writes, row: Tensor) -> None:
    del model.kept


def buffer_resized(model: Writes, row: Tensor) -> None:
    model.kept = torch.zeros(6)[:4]


def buffer_added(model: Writes, row: Tensor) -> None:
    model.register_buffer("more", row)


def parameter_added(model: Writes, row: Tensor) -> None:
    model.register_parameter("more", nn.Parameter(row, requires_grad=False))


def module_added(model: Writes, row: Tensor) -> None:
    model.more = nn.Linear(5, 1).requires_grad_(False)


def hidden_published(model: Writes, row: Tensor) -> None:
    model._non_persistent_buffers_set.discard("hidden")


def hidden_written(model: Writes, row: Tensor) -> None:
    model.hidden.copy_(row)


def extra_state(model: Writes, row: Tensor) -> None:
    model.extra = row


def trained_in_place(model: Writes, row: Tensor) -> None:
    model.layer.weight[0].copy_(row)


def trained_data(model: Writes, row: Tensor) -> None:
    model.layer.weight.data[0] = row


def trained_by_numpy(model: Writes, row: Tensor) -> None:
    model.layer.weight.detach().numpy()[0] = 7


def trained_last_bit(model: Writes, row: Tensor) -> None:
    model.layer.bias.detach().numpy().view("int32")[2] ^= 1


def trained_signs(model: Writes, row: Tensor) -> None:
    """Norms stay what they are."""
    model.layer.weight.data.neg_()


def trained_order(model: Writes, row: Tensor) -> None:
    model.layer.weight.data.copy_(model.layer.weight.data.flip(0))


def trained_storage(model: Writes, row: Tensor) -> None:
    model.layer.weight.data = row.expand(3, 5).clone()


WRITES = [
    frozen,
    frozen_data,
    frozen_last_bit,
    buffer,
    buffer_replaced,
    buffer_removed,
    buffer_resized,
    buffer_added,
    parameter_added,
    module_added,
    hidden_published,
    hidden_written,
    extra_state,
    trained_in_place,
    trained_data,
    trained_by_numpy,
    trained_last_bit,
    trained_signs,
    trained_order,
    trained_storage,
]


def run(model: nn.Module, **more: Any) -> Private:
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
    given = {"batch_size": 8, "steps": 4, "clip": 1, "noise_multiplier": 1, "public_size": ROWS} | more
    return Private(model, optimizer, data(ROWS), **given)


def made(private: Private, *, until: int = 4, before: Callable[[Private], None] = lambda _: None) -> None:
    for x, y in private.loader:
        before(private)
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        if private.steps == until:
            break


def refused(private: Private, folder: Path) -> None:
    for leave in (private.export, private.save):
        with pytest.raises(NotSound) as caught:
            leave(folder / "file")
        assert caught.value.remedy
    assert not (folder / "file").exists()


@pytest.mark.parametrize("write", WRITES)
def test_what_a_forward_pass_writes_does_not_leave(write: Any, tmp_path: Path) -> None:
    """From the second step on, so that nothing shows in the first."""
    model = Writes(write)
    private = run(model)

    def begin(private: Private) -> None:
        model.late = private.steps == 3

    try:
        made(private, before=begin)
    except NotSound as error:
        if "x.data = y" in str(error):
            # Nothing was written.
            return
        # A parameter that was trained is looked at before every step.
        assert write.__name__.startswith("trained") and private.steps == 3
    refused(private, tmp_path)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_in_the_first_batch_ends_the_run_before_a_charge(write: Any, account: Account) -> None:
    model = Writes(write)
    private = run(model, account=account)
    model.late = True
    with pytest.raises(NotSound):
        made(private)
    assert private.steps == 0 and [entry.event for entry in account.entries()] == ["open"]


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_after_the_last_step_does_not_leave(write: Any, tmp_path: Path) -> None:
    model = Writes(write)
    private = run(model)
    made(private)
    with torch.no_grad():
        write(model, torch.ones(5))
    refused(private, tmp_path)


UNCHANGED = [frozen, buffer, buffer_replaced, hidden_written, extra_state]


@pytest.mark.parametrize("write", UNCHANGED)
def test_rows_are_refused_where_their_bits_are_those_of_the_state(
    write: Any, account: Account, tmp_path: Path
) -> None:
    """A batch without an example in it leaves zeros where zeros were, and one with an example does not."""
    model = Writes(write)
    optimizer = torch.optim.SGD(model.layer.parameters(), lr=0.1)
    rows = torch.zeros(ROWS, 5), torch.zeros(ROWS, dtype=torch.int64)
    usual = {"batch_size": 8, "steps": 4, "clip": 1, "noise_multiplier": 1, "public_size": ROWS}
    private = Private(model, optimizer, rows, account=account, **usual)
    model.late = True
    with pytest.raises(NotSound):
        made(private)
    refused(private, tmp_path)
    assert private.steps == 0 and [entry.event for entry in account.entries()] == ["open"]


def test_momenta_are_the_optimizers_alone(tmp_path: Path) -> None:
    model = Writes(frozen)
    optimizer = torch.optim.SGD(model.layer.parameters(), lr=0.1, momentum=0.9)
    given: dict[str, Any] = {"batch_size": 8, "steps": 4, "clip": 1, "noise_multiplier": 1}
    private = Private(model, optimizer, data(ROWS), **given)

    def write(private: Private) -> None:
        if private.steps == 2:
            optimizer.state[model.layer.bias]["momentum_buffer"][0] += 1

    with pytest.raises(NotSound, match="optimizer's state"):
        made(private, before=write)
    assert private.steps == 2
    refused(private, tmp_path)


def test_averages_leave_only_as_they_were_kept(tmp_path: Path) -> None:
    model = network()
    average = Average(model, decay=0.5)
    private = run_of(model, data(ROWS), average=average, public_size=ROWS)
    made(private, until=2)
    private.export(tmp_path / "model")
    os.remove(tmp_path / "model")
    average.tensors[0].view(-1)[0] += 1
    refused(private, tmp_path)


def test_an_average_of_another_model_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="another model"):
        run_of(network(), data(ROWS), average=Average(network()))


def test_a_model_that_keeps_to_itself_leaves_with_all_of_its_state(tmp_path: Path) -> None:
    model = Writes(frozen)
    model.frozen.data.fill_(2)
    private = run(model)
    made(private)
    private.export(tmp_path / "model")
    private.save(tmp_path / "state")
    exported = load_file(tmp_path / "model")
    assert exported.keys() == model.state_dict().keys()
    assert all(torch.equal(exported[name], value) for name, value in model.state_dict().items())


def test_weights_that_are_clamped_by_a_hook_of_the_optimizer_leave(tmp_path: Path) -> None:
    model = network()
    private = run_of(model, data(ROWS), public_size=ROWS)

    def clamp(*_: Any) -> None:
        for parameter in model.parameters():
            parameter.data.clamp_(-0.125, 0.125)

    private.optimizer.register_step_post_hook(clamp)
    made(private, until=3)
    private.export(tmp_path / "model")
    assert float(load_file(tmp_path / "model")["0.weight"].abs().max()) <= 0.125


def test_before_data_are_met_a_model_is_the_callers_to_change(tmp_path: Path) -> None:
    model = network()
    private = run_of(model, data(ROWS), public_size=ROWS)
    private.export(tmp_path / "before")
    with torch.no_grad():
        model[0].weight.fill_(1)
    made(private, until=1)
    private.export(tmp_path / "model")


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex128],
)
def test_every_bit_of_every_type_counts(dtype: torch.dtype) -> None:
    prints, given = Fingerprints(StreamKey.fresh()), torch.arange(9).view(3, 3).to(dtype)
    ((_, first),) = prints.of([given, torch.zeros(0), given.t()]).items()
    ((_, again),) = prints.of([given.clone(), torch.zeros(0), given.t().contiguous()]).items()
    assert torch.equal(first, again)
    bits = given.clone().view(torch.uint8)
    for place in range(bits.numel()):
        other = bits.clone()
        other.view(-1)[place] ^= 1
        ((_, now),) = prints.of([other.view(dtype), torch.zeros(0), given.t()]).items()
        assert not torch.equal(now, first)


def test_long_tensors_are_told_apart_at_every_place() -> None:
    prints, given = Fingerprints(StreamKey.fresh()), torch.randn(300_001)
    first = prints.of([given])[given.device]
    for place in (0, 1, 150_000, 300_000):
        other = given.clone()
        other[place] = other[place].nextafter(torch.tensor(9.0))
        assert not torch.equal(prints.of([other])[given.device], first)
    assert not torch.equal(prints.of([given.roll(1)])[given.device], first)


def test_words_of_a_gpu_are_cut_into_buckets_of_one_type() -> None:
    given = [torch.zeros(5), torch.zeros(1 << 23), torch.zeros(3, dtype=torch.bfloat16), torch.zeros(2)]
    sizes = [[part.numel() for part in bucket] for bucket in _buckets(given)]
    assert sizes == [[5], [1 << 23], [2], [3]]


def test_spectral_normalization_is_accepted_in_evaluation_mode() -> None:
    """In training its vectors move with the weights, which the remedy names."""
    layers = []
    for _ in range(2):
        layer = nn.Linear(5, 3)
        # Singular values are so near to each other that the vectors move in every pass.
        layer.weight.data = torch.eye(3, 5) * torch.tensor([[1.0], [0.99], [0.98]])
        layers.append(nn.utils.parametrizations.spectral_norm(layer))
    with pytest.raises(NotSound, match="not by the optimizer") as caught:
        made(run(layers[0]))
    assert "spectral_norm" in str(caught.value.remedy)
    made(run(layers[1].eval()))
